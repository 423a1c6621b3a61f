//! Operators on the representation of floats: the next number, mantissa and exponent.

use crate::operator::argument::{AnyTensor, Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{
    check_float, check_not_bool, common_dtype, input, operator, resized, result_tensor, strided,
};
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::pointwise::float_parts::{self as functions, next_after};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::view::View;
use dml_compute::view::layout::{preserved_strides, result_strides};
use dml_kernel::DType;

operators! {
    nextafter(self, other, out) {
        "aten::nextafter(Tensor self, Tensor other) -> Tensor",
        "aten::nextafter_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "aten::nextafter.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    }
    frexp(self, outs) {
        "aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
        "aten::frexp.Tensor_out(Tensor self, *, Tensor(a!) mantissa, Tensor(b!) exponent) -> (Tensor(a!) mantissa, Tensor(b!) exponent)",
    }
    ldexp(self, exponent, out) {
        "torch_dml::ldexp.out(Tensor self, Tensor exponent, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// The number of the common dtype next to `self` in the direction of `other`.
fn nextafter(call: &mut Call, x: AnyTensor, y: AnyTensor, out: Out) -> Result<()> {
    let common = common_dtype(call, &[x, y]);
    check!(common.is_float(), NotImplemented, "\"nextafter_cpu\" not implemented for '{common}'");
    operator(call, out, next_after(common), &[x, y], &[])
}

/// Mantissa and exponent: `self = mantissa * 2^exponent`, the mantissa's magnitude 1/2 to 1.
fn frexp(call: &mut Call, t: &View, outs: Outs) -> Result<()> {
    check!(t.dtype.is_float(), Runtime, "torch.frexp() only supports floating-point dtypes");
    let inputs = [Input::Tensor(t.clone())];
    let outs = match outs {
        None => [Out::New, Out::New],
        Some(given) => {
            let (mantissa, exponent) = (given[0].dtype, given[1].dtype);
            check!(
                mantissa == t.dtype,
                Runtime,
                "torch.frexp() expects mantissa to have dtype {} but got {mantissa}",
                t.dtype
            );
            check!(
                exponent == DType::I32,
                Runtime,
                "torch.frexp() expects exponent to have int dtype but got {exponent}"
            );
            [Out::Into(given[0]), Out::Into(given[1])]
        }
    };
    // A result that is not resized determines the strides of one that is.
    let strides = match outs.iter().filter_map(|out| out.given()).find(|given| given.sizes == t.sizes) {
        Some(kept) => result_strides(&t.sizes, &[kept, t]),
        None => preserved_strides(t),
    };
    for given in outs.iter().filter_map(|out| out.given()) {
        overlap::check_internal(given)?;
        overlap::check_partial(given, [t])?;
    }
    let laid_out = (t.sizes.as_slice(), strides.as_slice());
    let (mut mantissa, mut exponent) = (None, None);
    let outs = match outs {
        [Out::New, _] => [
            strided(call, outs[0], &mut mantissa, t.dtype, laid_out)?,
            strided(call, outs[1], &mut exponent, DType::I32, laid_out)?,
        ],
        [first, second] => {
            [resized(call, first, &mut mantissa, laid_out)?, resized(call, second, &mut exponent, laid_out)?]
        }
    };
    let mantissa = result_tensor(call, outs[0], t.dtype, &inputs)?;
    let exponent = result_tensor(call, outs[1], DType::I32, &inputs)?;
    kernel::run(call, &functions::FREXP, &[&mantissa, &exponent], &inputs, t.dtype)?;
    call.ret(mantissa);
    call.ret(exponent);
    Ok(())
}

/// `self * 2^exponent` of a float and an integer, rounded once. Of other dtypes PyTorch composes it
/// (`plugin/operators/stubs.cpp`).
fn ldexp(call: &mut Call, x: AnyTensor, exponent: AnyTensor, out: Out) -> Result<()> {
    check_float(&x, "ldexp_cpu")?;
    check_not_bool(&exponent, "ldexp_cpu_exp")?;
    let inputs = [input(call, &x)?, input(call, &exponent)?];
    let out = result_tensor(call, out, x.dtype, &inputs)?;
    // bfloat16 cannot represent the exponents that lead from its smallest to its largest numbers.
    let wide = if x.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    kernel::run(call, &functions::LDEXP, &[&out], &inputs, wide)?;
    call.ret(out);
    Ok(())
}
