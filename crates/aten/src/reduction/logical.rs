//! any and all.

use crate::operator::argument::Out;
use crate::operator::call::{Call, Ret};
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::pointwise::comparison;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::logical::{Quantifier, quantify};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    over_dim(self, dim = None, keepdim = false, out; Quantifier::Any)
        .complex(Complex::Run(complex::of_truth))
        .float8(float8::own)
    {
        "aten::any(Tensor self) -> Tensor",
        "aten::any.all_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        "aten::any.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    over_dims(self, dim, keepdim, out; Quantifier::Any).complex(Complex::Run(complex::of_truth)).float8(float8::own) {
        "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        "aten::any.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    over_dim(self, dim = None, keepdim = false, out; Quantifier::All)
        .complex(Complex::Run(complex::of_truth))
        .float8(float8::own)
    {
        "aten::all(Tensor self) -> Tensor",
        "aten::all.all_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
        "aten::all.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    over_dims(self, dim, keepdim, out; Quantifier::All).complex(Complex::Run(complex::of_truth)).float8(float8::own) {
        "aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        "aten::all.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    equal(self, other).complex(Complex::Run(complex::equal)) {
        "aten::equal(Tensor self, Tensor other) -> bool",
    }
}

fn over_dim(
    call: &mut Call,
    input: &View,
    dim: Option<i64>,
    keep: bool,
    out: Out,
    quantifier: Quantifier,
) -> Result<()> {
    check_out(out, quantifier)?;
    let axes = crate::reduction::axes::axes_of(call, Some(dim.as_slice()), input.dim(), keep)?;
    run(call, input, axes, out, quantifier)
}

/// An empty list reduces no dimension.
fn over_dims(
    call: &mut Call,
    input: &View,
    dims: Option<&[i64]>,
    keep: bool,
    out: Out,
    quantifier: Quantifier,
) -> Result<()> {
    check_out(out, quantifier)?;
    let axes = match dims {
        None => Axes::all(keep),
        Some([]) => Axes::none(),
        Some(dims) => crate::reduction::axes::axes_listed(call, dims, input.dim(), keep)?,
    };
    run(call, input, axes, out, quantifier)
}

fn check_out(out: Out, quantifier: Quantifier) -> Result<()> {
    if let Some(given) = out.given() {
        check!(
            matches!(given.dtype, DType::Bool | DType::U8),
            Runtime,
            "{} only supports bool tensor for result, got: {}",
            match quantifier {
                Quantifier::Any => "any",
                Quantifier::All => "all",
            },
            given.dtype
        );
    }
    Ok(())
}

fn run(call: &mut Call, input: &View, axes: Axes, out: Out, quantifier: Quantifier) -> Result<()> {
    // The result of uint8 is uint8, from the time before PyTorch had bool.
    let mut dtype = if input.dtype == DType::U8 { DType::U8 } else { DType::Bool };
    if out.given().is_some() {
        dtype = DType::Bool;
    }
    let out = call.result(out.given(), dtype, &axes.sizes(&input.sizes))?;
    quantify(call, quantifier, input, axes, &out)?;
    call.ret(out);
    Ok(())
}

/// Waits for the device.
fn equal(call: &mut Call, a: &View, b: &View) -> Result<()> {
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
        comparison::equal(call, a, b, &flags)?;
        let out = call.empty(DType::Bool, &[])?;
        quantify(call, Quantifier::All, &flags, Axes::all(false), &out)?;
        let mut byte = [0u8];
        call.download(out.data, &mut byte)?;
        same = byte[0] != 0;
    }
    call.ret_value(Ret::Scalar(Number::Bool(same)));
    Ok(())
}
