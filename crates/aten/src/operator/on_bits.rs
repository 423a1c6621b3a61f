//! Operators that only copy elements, run on integers of the elements' size.

use crate::operator::call::{Arg, Call, Host, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, schema};
use dml_compute::Environment;
use dml_compute::context::Policy;
use dml_compute::view::View;
use dml_engine::{AddressRange, Device, KernelRef};
use dml_kernel::DType;
use smallvec::SmallVec;

/// A host that presents elements of one dtype as integers of the same size.
struct BitsHost<'h> {
    host: &'h dyn Host,
    bits: DType,
    dtype: DType,
}

impl Environment for BitsHost<'_> {
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> dml_compute::Result<View> {
        let made = if dtype == self.bits { self.dtype } else { dtype };
        Ok(View { dtype, ..self.host.allocate(device, made, sizes, strides)? })
    }

    fn policy(&self) -> &dyn Policy {
        self.host.policy()
    }

    fn probe(&self, device: &Device, kernel: &KernelRef, writes: &[AddressRange]) -> dml_compute::Result<()> {
        self.host.probe(device, kernel, writes)
    }
}

impl Host for BitsHost<'_> {
    fn resize(&self, tensor: &mut View, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let dtype = tensor.dtype;
        if dtype == self.bits {
            tensor.dtype = self.dtype;
        }
        self.host.resize(tensor, sizes, strides)?;
        tensor.dtype = dtype;
        Ok(())
    }

    fn view(&self, base: &View, view: &View) -> Result<View> {
        self.host.view(base, view)
    }

    fn warn(&self, message: &str) {
        self.host.warn(message);
    }

    fn default_dtype(&self) -> DType {
        self.host.default_dtype()
    }
}

/// Whether a tensor argument with this name gives positions: it is not copied as bits.
fn is_index_argument(name: &str) -> bool {
    matches!(name, "index" | "indices" | "mask" | "repeats" | "condition")
}

/// The only dtype among the arguments for which `is_one` is true. Other tensors must give
/// positions.
pub fn only_dtype(call: &Call, operator: &Operator, is_one: fn(DType) -> bool) -> Result<DType> {
    let mut only = None;
    let written = schema::written(operator.schema);
    for (i, (name, argument)) in operator.named(call).enumerate() {
        // The dtype of `out=` is checked with the result.
        if !written.in_place && written.contains(i) {
            continue;
        }
        let tensors: SmallVec<[&View; 4]> = match argument {
            Arg::Tensor(t) => [t].into_iter().collect(),
            Arg::Tensors(list) => list.iter().flatten().collect(),
            _ => continue,
        };
        for t in tensors {
            let known = if is_one(t.dtype) { *only.get_or_insert(t.dtype) == t.dtype } else { is_index_argument(name) };
            if !known {
                return Err(Error::Fallback(format!("{} of several dtypes", operator.name)));
            }
        }
    }
    only.ok_or_else(|| Error::Fallback(format!("{} of no elements of such a dtype", operator.name)))
}

/// Checks that the `out=` arguments have this dtype.
pub fn check_outs(call: &Call, operator: &Operator, dtype: DType) -> Result<()> {
    if operator.outs(call)?.iter().flatten().any(|out| out.dtype != dtype) {
        return Err(Error::Fallback(format!("{} into another dtype", operator.name)));
    }
    Ok(())
}

/// Runs the operator with elements of `dtype` as integers of their size.
pub fn run_on_bits(call: &mut Call, operator: &Operator, dtype: DType, bits: DType) -> Result<()> {
    let as_bits = |t: &View| View { dtype: if t.dtype == dtype { bits } else { t.dtype }, ..t.clone() };
    let args: SmallVec<[Arg; 8]> = call
        .args
        .iter()
        .map(|argument| match argument {
            Arg::Tensor(t) => Arg::Tensor(as_bits(t)),
            Arg::Tensors(list) => Arg::Tensors(list.iter().map(|t| t.as_ref().map(as_bits)).collect()),
            other => other.clone(),
        })
        .collect();
    let host = BitsHost { host: call.host, bits, dtype };
    let mut inner = call.with_host(&args, &host);
    (operator.run)(&mut inner)?;
    let returns: SmallVec<[Ret; 3]> = inner.returns;
    call.returns = returns;
    Ok(())
}
