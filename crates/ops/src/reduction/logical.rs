//! any and all.

use super::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::check;
use crate::operator::call::{Call, Ret, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::kernel::{self, Input};
use dml_kernel::{DType, Scalar, Value};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::any", |c| logical(c, Quantifier::Any, Axes::all(false), None)),
    op("aten::any.all_out", |c| logical(c, Quantifier::Any, Axes::all(false), Some(1))),
    op("aten::any.dim", |c| over_dim(c, Quantifier::Any, None)),
    op("aten::any.out", |c| over_dim(c, Quantifier::Any, Some(3))),
    op("aten::any.dims", |c| over_dims(c, Quantifier::Any, None)),
    op("aten::any.dims_out", |c| over_dims(c, Quantifier::Any, Some(3))),
    op("aten::all", |c| logical(c, Quantifier::All, Axes::all(false), None)),
    op("aten::all.all_out", |c| logical(c, Quantifier::All, Axes::all(false), Some(1))),
    op("aten::all.dim", |c| over_dim(c, Quantifier::All, None)),
    op("aten::all.out", |c| over_dim(c, Quantifier::All, Some(3))),
    op("aten::all.dims", |c| over_dims(c, Quantifier::All, None)),
    op("aten::all.dims_out", |c| over_dims(c, Quantifier::All, Some(3))),
    op("aten::equal", equal),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Quantifier {
    Any,
    All,
}

impl Fold for Quantifier {
    fn name(&self) -> &'static str {
        if *self == Quantifier::Any { "any" } else { "all" }
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![Scalar::U32]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.u32(u32::from(*self == Quantifier::All))]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(Scalar::Bool).cast(Scalar::U32)]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![if *self == Quantifier::Any { x[0] | y[0] } else { x[0] & y[0] }]
    }

    fn finish<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// `any.dim(self, dim, keepdim[, out])`
fn over_dim(call: &mut Call, quantifier: Quantifier, out: Option<usize>) -> Result<()> {
    let axes = Axes::listed(call, &[call.int(1)?], call.tensor(0)?.dim(), call.flag(2)?)?;
    logical(call, quantifier, axes, out)
}

/// `any.dims(self, dim?, keepdim[, out])`; an empty list reduces nothing.
fn over_dims(call: &mut Call, quantifier: Quantifier, out: Option<usize>) -> Result<()> {
    let keep = call.flag(2)?;
    let axes = match call.opt_ints(1)? {
        None => Axes::all(keep),
        Some([]) => Axes::none(),
        Some(dims) => Axes::listed(call, dims, call.tensor(0)?.dim(), keep)?,
    };
    logical(call, quantifier, axes, out)
}

fn logical(call: &mut Call, quantifier: Quantifier, axes: Axes, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    // The result of uint8 is uint8, as it was before PyTorch had bool.
    let dtype = if input.dtype == DType::U8 { DType::U8 } else { DType::Bool };
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(
            matches!(given, DType::Bool | DType::U8),
            Runtime,
            "{} only supports bool tensor for result, got: {given}",
            quantifier.name()
        );
    }
    let out = call.out(out, if out.is_some() { DType::Bool } else { dtype }, &axes.sizes(&input.sizes))?;
    reduce(call, &quantifier, &Reduction { inputs: &[input], outs: &[&out], axes, tables: &[], numbers: &[] })?;
    call.ret(out);
    Ok(())
}

/// `equal(self, other) -> bool`: waits for the device.
fn equal(call: &mut Call) -> Result<()> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    check!(
        a.dtype == b.dtype,
        Runtime,
        "Expected object of data type {} but got data type {} for argument 'other' in call to equal",
        a.dtype,
        b.dtype
    );
    let mut same = a.sizes == b.sizes;
    if same && a.numel() > 0 {
        let flags = call.empty(DType::Bool, &a.sizes)?;
        let inputs = [Input::Tensor(a.clone()), Input::Tensor(b.clone())];
        kernel::run(call, "eq", 0, &[&flags], &inputs, a.dtype, |_, v| vec![v[0].eq(v[1])])?;
        let out = call.empty(DType::Bool, &[])?;
        let axes = Axes::all(false);
        let reduction = Reduction { inputs: &[&flags], outs: &[&out], axes, tables: &[], numbers: &[] };
        reduce(call, &Quantifier::All, &reduction)?;
        let mut byte = [0u8];
        call.device.download(out.data, &mut byte)?;
        same = byte[0] != 0;
    }
    call.ret_value(Ret::Scalar(Number::Bool(same)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        validate(&Quantifier::Any, &[DType::F16], &[DType::Bool], &[]);
        validate(&Quantifier::All, &[DType::Bool], &[DType::U8], &[]);
    }
}
