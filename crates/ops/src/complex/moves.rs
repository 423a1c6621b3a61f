//! Operators that only move elements, on the bits of complex ones.

use super::by_parts::{by_parts, only_dtype};
use crate::operator::Operator;
use crate::operator::call::{Arg, Call, Host, Ret};
use crate::operator::error::{Error, Result};
use crate::tensor::Tensor;
use dml_kernel::DType;
use smallvec::SmallVec;

/// A host for which elements of one dtype are complex numbers of the same size.
struct Bits<'h> {
    host: &'h dyn Host,
    bits: DType,
    complex: DType,
}

impl Host for Bits<'_> {
    fn empty(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        let made = if dtype == self.bits { self.complex } else { dtype };
        Ok(Tensor { dtype, ..self.host.empty(device, made, sizes, strides)? })
    }

    fn resize(&self, tensor: &mut Tensor, sizes: &[i64], strides: &[i64]) -> Result<()> {
        let dtype = tensor.dtype;
        if dtype == self.bits {
            tensor.dtype = self.complex;
        }
        self.host.resize(tensor, sizes, strides)?;
        tensor.dtype = dtype;
        Ok(())
    }

    fn view(&self, base: &Tensor, view: &Tensor) -> Result<Tensor> {
        self.host.view(base, view)
    }

    fn warn(&self, message: &str) {
        self.host.warn(message);
    }

    fn default_dtype(&self) -> DType {
        self.host.default_dtype()
    }

    fn deterministic(&self) -> bool {
        self.host.deterministic()
    }
}

/// The integers that stand for elements of a complex dtype, of 4 or 8 bytes.
fn bits(complex: DType) -> Option<DType> {
    match complex {
        DType::C32 => Some(DType::I32),
        DType::C64 => Some(DType::I64),
        _ => None,
    }
}

/// Runs the operator of reals on integers of the elements' size. Elements of 16 bytes go by parts.
pub fn moves(call: &mut Call, operator: &Operator) -> Result<()> {
    let complex = only_dtype(call, operator)?;
    if operator.outs(call)?.iter().flatten().any(|out| out.dtype != complex) {
        return Err(Error::Fallback(format!("{} into another dtype", operator.name)));
    }
    let Some(bits) = bits(complex) else { return by_parts(call, operator) };
    let as_bits = |t: &Tensor| Tensor { dtype: if t.dtype == complex { bits } else { t.dtype }, ..t.clone() };
    let args: SmallVec<[Arg; 8]> = call
        .args
        .iter()
        .map(|argument| match argument {
            Arg::Tensor(t) => Arg::Tensor(as_bits(t)),
            Arg::Tensors(list) => Arg::Tensors(list.iter().map(|t| t.as_ref().map(as_bits)).collect()),
            other => other.clone(),
        })
        .collect();
    let host = Bits { host: call.host, bits, complex };
    let mut inner = Call { name: call.name, args: &args, device: call.device, host: &host, returns: SmallVec::new() };
    (operator.run)(&mut inner)?;
    let returns: SmallVec<[Ret; 3]> = inner.returns;
    call.returns = returns;
    Ok(())
}
