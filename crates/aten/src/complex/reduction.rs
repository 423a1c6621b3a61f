//! Reductions of complex tensors: norms are computed from magnitudes, variances are the sums of the
//! parts' variances, and products are computed by halving. Sums and means are computed by parts.

use crate::check;
use crate::complex::by_parts::complex_from_parts;
use crate::complex::copy::checked_copy;
use crate::complex::overload::run_on;
use crate::complex::pointwise::{operator, run_without_results};
use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, structured};
use crate::pointwise::operator::Argument;
use crate::reduction::norm::check_no_narrowing;
use crate::reduction::variance::variance;
use dml_compute::complex::copy::fill_with;
use dml_compute::complex::functions;
use dml_compute::complex::parts::parts;
use dml_compute::complex::reduction::{squeezed, working_copy};
use dml_compute::dtype::accumulator;
use dml_compute::pointwise::complex as elementwise;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::norm::norms;
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// Variances.
pub fn var(call: &mut Call, overload: &Operator) -> Result<()> {
    complex_variance(call, overload, false, false)
}

/// Standard deviations.
pub fn std(call: &mut Call, overload: &Operator) -> Result<()> {
    complex_variance(call, overload, true, false)
}

/// Variances and means.
pub fn var_mean(call: &mut Call, overload: &Operator) -> Result<()> {
    complex_variance(call, overload, false, true)
}

/// Standard deviations and means.
pub fn std_mean(call: &mut Call, overload: &Operator) -> Result<()> {
    complex_variance(call, overload, true, true)
}

/// The norm of the magnitudes.
pub fn norm(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    if !t.dtype.is_complex() {
        return Err(Error::Fallback("a norm of a complex order".into()));
    }
    let is_complex = |(name, argument): (&str, &Arg)| {
        matches!(name, "ord" | "p") && matches!(argument, Arg::Scalar(Scalar::Complex(..)))
    };
    check!(
        !overload.named(call).any(is_complex),
        Runtime,
        "linalg.vector_norm: Expected a non-complex scalar as the order of norm."
    );
    let wanted = overload.dtype_argument(call, "dtype")?;
    check!(
        wanted.is_none_or(DType::is_complex),
        Runtime,
        "linalg.vector_norm: dtype should be complex for complex inputs, but got {}",
        wanted.unwrap_or(t.dtype)
    );
    if let Some(wanted) = wanted {
        check_no_narrowing(t.dtype, wanted)?;
        // This overload's result has the requested dtype, which no norm has.
        if overload.name == "aten::norm.ScalarOpt_dim_dtype" {
            return structured::wrong_dtype(wanted.real(), wanted);
        }
    }
    let size = call.empty(wanted.unwrap_or(t.dtype).real(), &t.sizes)?;
    magnitudes(call, t, &size)?;
    let mut args: SmallVec<[Arg; 8]> = SmallVec::new();
    for (name, argument) in overload.named(call) {
        args.push(match (name, argument) {
            ("self", _) => Arg::Tensor(size.clone()),
            ("dtype", Arg::Scalar(_)) => Arg::Scalar(Scalar::Int(size.dtype as i64)),
            (_, other) => other.clone(),
        });
    }
    run_on(call, overload, &args)
}

/// Scales slices along a dimension down to a maximum norm.
pub fn renorm(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let (p, limit): (Scalar, Scalar) = (overload.argument(call, "p")?, overload.argument(call, "maxnorm")?);
    let dim: i64 = overload.argument(call, "dim")?;
    let out = overload.out(call)?;
    let real = |n: Scalar| !matches!(n, Scalar::Complex(..));
    check!(real(p), Runtime, "renorm: p must be real-valued");
    check!(p.to_f64() > 0.0, Runtime, "renorm: non-positive-norm not supported");
    check!(real(limit), Runtime, "renorm: maxnorm must be real-valued");
    check!(limit.to_f64() >= 0.0, Runtime, "renorm: expected maxnorm to be >= 0 but got {}", limit.to_f64());
    check!(t.dim() > 1, Runtime, "renorm: input needs at least 2 dimensions, got {} dimensions", t.dim());
    let kept = call.wrap_dim(dim, t.dim())? as i64;
    let others: SmallVec<[i64; 6]> = (0..t.dim() as i64).filter(|&d| d != kept).collect();
    let axes = crate::reduction::axes::axes_listed(call, &others, t.dim(), true)?;
    let size = call.empty(t.dtype.real(), &t.sizes)?;
    magnitudes(call, t, &size)?;
    let dtype = accumulator(t.dtype.real());
    let norm = call.empty(dtype, &axes.sizes(&t.sizes))?;
    norms(call, p.to_f64(), &size, &norm, axes)?;
    let arguments = [t, &norm].map(|t| Argument::Tensor(AnyTensor(t)));
    let arguments = [arguments[0], arguments[1], Argument::Number(limit)];
    operator(call, out, &functions::RENORM, &arguments)
}

/// Writes the absolute values.
fn magnitudes(call: &mut Call, t: &View, out: &View) -> Result<()> {
    run_without_results(call, |call| {
        operator(call, Out::Into(out), &elementwise::ABS, &[Argument::Tensor(AnyTensor(t))])
    })
}

/// The variance, or its root, optionally with the mean.
fn complex_variance(call: &mut Call, overload: &Operator, root: bool, mean: bool) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let dims: Option<&[i64]> = overload.argument(call, "dim")?;
    let correction: Option<Scalar> = overload.argument(call, "correction")?;
    let keep: bool = overload.argument(call, "keepdim")?;
    let out = overload.out(call)?;
    let mut of_parts: SmallVec<[View; 4]> = SmallVec::new();
    for part in parts(t) {
        let before = call.returns.len();
        variance(call, &part, dims, correction, keep, Out::New, false, mean)?;
        let results: SmallVec<[Ret; 3]> = call.returns.drain(before..).collect();
        of_parts.extend(results.into_iter().filter_map(|r| if let Ret::Tensor(t) = r { Some(t) } else { None }));
    }
    let (re, im) = of_parts.split_at(of_parts.len() / 2);
    let total = call.result(out.given(), t.dtype.real(), &re[0].sizes)?;
    let inputs = [Input::Tensor(re[0].clone()), Input::Tensor(im[0].clone())];
    let function = if root { &functions::STD } else { &functions::VAR };
    kernel::run(call, function, &[&total], &inputs, t.dtype.real())?;
    call.ret(total);
    if mean {
        let average = complex_from_parts(call, Out::New, t.dtype, &re[1], &im[1])?;
        call.ret(average);
    }
    Ok(())
}

/// The product along a dimension, or of all elements: the second half is multiplied into the first
/// until one element remains.
pub fn prod(call: &mut Call, overload: &Operator) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let dim: Option<i64> = overload.argument_or(call, "dim", None)?;
    let keep: bool = overload.argument_or(call, "keepdim", false)?;
    let out = overload.out(call)?;
    let axes = crate::reduction::axes::axes_of(call, dim.as_ref().map(std::slice::from_ref), t.dim(), keep)?;
    let result = call.result(out.given(), t.dtype, &axes.sizes(&t.sizes))?;
    let (mut factors, along) = match dim {
        Some(d) if t.dim() > 0 => (working_copy(call, t)?, call.wrap_dim(d, t.dim())?),
        _ => {
            let copy = working_copy(call, t)?;
            (copy.as_strided(&[t.numel()], &[1], 0), 0)
        }
    };
    let mut n = factors.sizes[along];
    if n == 0 {
        fill_with(call, &result, Scalar::Int(1))?;
        call.ret(result);
        return Ok(());
    }
    while n > 1 {
        let half = n / 2;
        let (first, second) = (factors.narrow(along, 0, half), factors.narrow(along, n - half, half));
        multiply_by(call, &first, &second)?;
        n -= half;
        factors = factors.narrow(along, 0, n);
    }
    let left: SmallVec<[i64; 6]> = (0..factors.dim()).filter(|&d| d != along).map(|d| factors.strides[d]).collect();
    let sizes: SmallVec<[i64; 6]> = (0..factors.dim()).filter(|&d| d != along).map(|d| factors.sizes[d]).collect();
    let single = factors.as_strided(&sizes, &left, 0);
    let target = result.as_strided(&sizes, &squeezed(&result, dim.is_some() && keep, along, sizes.len()), 0);
    checked_copy(call, &single, &target)?;
    call.ret(result);
    Ok(())
}

/// `a = a * b`, element by element.
pub fn multiply_by(call: &mut Call, a: &View, b: &View) -> Result<()> {
    let arguments = [a, b].map(|t| Argument::Tensor(AnyTensor(t)));
    run_without_results(call, |call| operator(call, Out::InPlace(a), &elementwise::MUL, &arguments))
}
