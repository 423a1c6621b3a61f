//! The value for filling under a mask or at indices, given as a tensor: it must fit the dtype to
//! which it is converted.

use crate::bounds::{Bounds, overflow_message};
use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::kernel::{Input as Read, KernelSpec};
use crate::view::View;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Enqueues a kernel that reports a fault if `value`, one element, does not fit `to`.
pub fn check_tensor(cx: &Context, value: &View, to: DType) -> Result<()> {
    let spec = Spec { from: value.dtype, to };
    if spec.always_fits() {
        return Ok(());
    }
    let fault = cx.fault_of_value(overflow_message(to));
    cx.run_threads(&spec, &Arguments { value, fault }, 1)
}

/// Converts one value to another dtype.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    from: DType,
    to: DType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        value: Read = s.from,
        fault: Fault,
    }
}

impl Spec {
    /// Whether every number of the one dtype is a number of the other.
    fn always_fits(&self) -> bool {
        let (given, wanted) = (Bounds::of(self.from), Bounds::of(self.to));
        if self.from == self.to || self.from == DType::Bool || self.to == DType::Bool {
            return true;
        }
        if self.from.is_float() {
            let ((low, high), (least, largest)) = (given.of_floats(), wanted.of_floats());
            return wanted.special() && least <= low && high <= largest;
        }
        let ((low, high), (least, largest)) = (given.of_integers(), wanted.of_integers());
        least <= if self.from.is_signed_integer() { low } else { 0 } && high <= largest
    }

    fn fits<'b>(&self, b: &'b Builder, x: Value<'b>) -> Value<'b> {
        let bounds = Bounds::of(self.to);
        let scalar = x.scalar();
        if scalar.is_float() {
            let (low, high) = bounds.of_floats();
            let (low, high) = if scalar == ScalarType::F32 { (-inward(-low), inward(high)) } else { (low, high) };
            let inside = x.ge(b.float(scalar, low)) & x.le(b.float(scalar, high));
            return if bounds.special() {
                inside | x.ne(x) | x.abs().eq(b.float(scalar, f64::INFINITY))
            } else {
                inside
            };
        }
        let (low, high) = bounds.of_integers();
        let (least, largest) = match scalar {
            ScalarType::U32 => (0, i128::from(u32::MAX)),
            ScalarType::U64 => (0, i128::from(u64::MAX)),
            ScalarType::I64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
            _ => (i128::from(i32::MIN), i128::from(i32::MAX)),
        };
        let limit = |x: i128| b.int(scalar, x.clamp(least, largest) as u64);
        x.ge(limit(low)) & x.le(limit(high))
    }
}

/// The largest float32 that is not above a double.
fn inward(x: f64) -> f64 {
    let nearest = x as f32;
    f64::from(if f64::from(nearest) > x { nearest.next_down() } else { nearest })
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "check_fill_value"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        b.if_(linear_id(b, ScalarType::U32).eq(0), || {
            let x = p.value.load(b.u32(0));
            b.if_(!self.fits(b, x), || p.fault.report_value());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for from in [DType::I16, DType::I64, DType::U32, DType::U64, DType::F16, DType::F32, DType::F64] {
            for to in [DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32] {
                accepted(&Spec { from, to }.build());
            }
        }
    }

    #[test]
    fn what_always_fits_is_not_checked() {
        let fits = |from, to| Spec { from, to }.always_fits();
        assert!(fits(DType::F16, DType::F32) && fits(DType::I64, DType::F32) && fits(DType::U8, DType::I16));
        assert!(fits(DType::I8, DType::U8), "a negative number wraps");
        assert!(!fits(DType::F32, DType::I64) && !fits(DType::I32, DType::F16) && !fits(DType::BF16, DType::F16));
        assert!(!fits(DType::I16, DType::U8) && !fits(DType::I64, DType::I32));
    }

    #[test]
    fn limits_round_inward() {
        assert_eq!(inward(2147483647.0), 2147483520.0);
        assert_eq!(inward(255.0), 255.0);
    }
}
