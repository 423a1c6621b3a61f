//! Pointwise functions of complex tensors.

use crate::check;
use crate::complex::pointwise::operator;
use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, schema};
use crate::pointwise::operator::{Argument, strided};
use dml_compute::pointwise::complex as functions;
use dml_compute::pointwise::function::Function;
use dml_compute::view::View;
use smallvec::SmallVec;

/// Runs a function with all arguments of an overload, in order.
pub fn pointwise(call: &mut Call, overload: &Operator, function: &'static Function) -> Result<()> {
    let written = schema::written(overload.schema);
    let mut arguments: SmallVec<[Argument; 4]> = SmallVec::new();
    for i in (0..call.args.len()).filter(|&i| written.in_place || !written.contains(i)) {
        arguments.push(call.arguments().get::<TensorOrScalar>(i)?.into());
    }
    let out = overload.out(call)?;
    operator(call, out, function, &arguments)
}

/// The absolute value.
pub fn abs(call: &mut Call, overload: &Operator) -> Result<()> {
    let (x, out): (AnyTensor, Out) = (overload.argument(call, "self")?, overload.out(call)?);
    check!(!matches!(out, Out::InPlace(_)), Runtime, "In-place abs is not supported for complex tensors.");
    operator(call, out, &functions::ABS, &[x.into()])
}

/// The angles, contiguous, as on the CPU.
pub fn angle(call: &mut Call, overload: &Operator) -> Result<()> {
    let (x, out): (AnyTensor, Out) = (overload.argument(call, "self")?, overload.out(call)?);
    let mut new = None;
    let shape = (x.sizes.as_slice(), &View::contiguous_strides(&x.sizes)[..]);
    let out = strided(call, out, &mut new, x.dtype.real(), shape)?;
    operator(call, out, &functions::ANGLE, &[x.into()])
}
