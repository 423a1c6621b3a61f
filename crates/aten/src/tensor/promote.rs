//! Type promotion: `torch.result_type`.

use crate::check;
use crate::operator::argument::{AnyTensor, TensorOrScalar};
use crate::operator::error::Result;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;

/// An operand of type promotion.
#[derive(Copy, Clone)]
pub enum Promoted<'t> {
    /// A tensor; 0-dim tensors and Python numbers have lower priority.
    Tensor(&'t View),
    /// A Python number.
    Scalar(Scalar),
}

impl<'t> From<TensorOrScalar<'t>> for Promoted<'t> {
    fn from(operand: TensorOrScalar<'t>) -> Self {
        match operand {
            TensorOrScalar::Tensor(AnyTensor(t)) => Promoted::Tensor(t),
            TensorOrScalar::Scalar(s) => Promoted::Scalar(s),
        }
    }
}

/// The common dtype of two dtypes of the same category, as in `torch.promote_types`.
pub fn promote_types(a: DType, b: DType) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    if a.is_complex() || b.is_complex() {
        return promote_types(a.real(), b.real()).complex();
    }
    match (a.is_float(), b.is_float()) {
        (true, false) => return a,
        (false, true) => return b,
        (true, true) => {
            return if a == F64 || b == F64 {
                F64
            } else if a == F32 || b == F32 || a != b {
                // f16 and bf16 are promoted to f32.
                F32
            } else {
                a
            };
        }
        _ => {}
    }
    if a == Bool {
        return b;
    }
    if b == Bool {
        return a;
    }
    match (a.is_signed_integer(), b.is_signed_integer()) {
        (x, y) if x == y => {
            if a.bytes() >= b.bytes() {
                a
            } else {
                b
            }
        }
        (signed, _) => {
            let (s, u) = if signed { (a, b) } else { (b, a) };
            if s.bytes() > u.bytes() {
                return s;
            }
            match u.bytes() {
                1 => I16,
                2 => I32,
                _ => I64,
            }
        }
    }
}

/// The dtype in which operands with this common dtype are multiplied or divided: 0-dim factors are
/// not rounded to 16 bits first, as on the CPU. For example, 100,000 as an integer is infinite in
/// float16, but its product with a small number is not.
pub fn unrounded<'t>(common: DType, mut factors: impl Iterator<Item = &'t View>) -> DType {
    let half = matches!(common, DType::F16 | DType::BF16);
    if half && factors.any(|t| t.dim() == 0 && t.dtype != common) { DType::F32 } else { common }
}

/// The dtype of a Python number that PyTorch passes as a tensor of `dtype`.
fn of_number(dtype: DType, default: DType) -> DType {
    match dtype {
        _ if dtype.is_float() => default,
        _ if dtype.is_complex() => default.complex(),
        _ => dtype,
    }
}

/// The promoted dtype of operands. Tensors with dimensions decide; 0-dim tensors count only in a
/// higher category (bool < integer < float < complex), Python numbers only above those.
pub fn result_type(operands: &[Promoted], default: DType) -> DType {
    let mut dim: Option<DType> = None;
    let mut zero: Option<DType> = None;
    let mut wrapped: Option<DType> = None;
    let join = |slot: &mut Option<DType>, d: DType| *slot = Some(slot.map_or(d, |s| promote_types(s, d)));
    for operand in operands {
        match operand {
            Promoted::Tensor(t) if t.weak => {
                join(&mut wrapped, of_number(t.dtype, default));
            }
            Promoted::Tensor(t) if t.dim() == 0 => join(&mut zero, t.dtype),
            Promoted::Tensor(t) => join(&mut dim, t.dtype),
            Promoted::Scalar(s) => join(
                &mut wrapped,
                match s {
                    Scalar::Bool(_) => DType::Bool,
                    Scalar::Int(_) => DType::I64,
                    Scalar::Complex(..) => default.complex(),
                    _ => default,
                },
            ),
        }
    }
    let category = |d: DType| {
        if d.is_complex() {
            3
        } else if d.is_float() {
            2
        } else {
            i32::from(d.is_integer())
        }
    };
    let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
        // A float keeps its precision as a complex number.
        (Some(h), Some(l)) if h.is_float() && l.is_complex() => Some(h.complex()),
        (Some(h), Some(l)) => Some(if category(h) >= category(l) { h } else { promote_types(h, l) }),
        (h, l) => h.or(l),
    };
    combine(combine(dim, zero), wrapped).unwrap_or(default)
}

/// Checks that the tensors can be promoted at all: unsigned integers of 16, 32 or 64 bits only with
/// floats, and 8-bit floats with nothing.
///
/// # Errors
/// PyTorch's, for the first two that cannot.
pub fn check_promotable(operands: &[Promoted]) -> Result<()> {
    let unsigned = |dtype| matches!(dtype, DType::U16 | DType::U32 | DType::U64);
    let dtypes = |with_dims: bool| {
        operands.iter().filter_map(move |operand| match operand {
            Promoted::Tensor(t) if !t.weak && (t.dim() > 0) == with_dims => Some(t.dtype),
            _ => None,
        })
    };
    for with_dims in [true, false] {
        let mut met: Option<DType> = None;
        for dtype in dtypes(with_dims) {
            let before = *met.get_or_insert(dtype);
            if before == dtype {
                continue;
            }
            check!(
                !before.is_float8() && !dtype.is_float8(),
                Runtime,
                "Promotion for Float8 Types is not supported, attempted to promote {before} and {dtype}"
            );
            check!(
                !(unsigned(before) || unsigned(dtype)) || before.is_float() || dtype.is_float(),
                Runtime,
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {before} and {dtype}"
            );
            met = Some(promote_types(before, dtype));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::*;

    #[test]
    fn pairs_follow_pytorch() {
        for (a, b, want) in [
            (U8, I8, I16),
            (U8, I32, I32),
            (Bool, U8, U8),
            (I64, F16, F16),
            (F16, BF16, F32),
            (F16, F32, F32),
            (F64, BF16, F64),
            (I16, I64, I64),
            (C64, F64, C128),
            (C64, I64, C64),
            (C32, F32, C64),
            (C32, BF16, C64),
            (C128, F16, C128),
            (F16, C32, C32),
        ] {
            assert_eq!(promote_types(a, b), want, "{a} {b}");
            assert_eq!(promote_types(b, a), want, "{b} {a}");
        }
    }
}
