//! New complex tensors: from two real ones, sequences, and random numbers.

use crate::complex::copy::checked_copy;
use crate::complex::overload::run_on;
use crate::complex::pointwise::run_without_results;
use crate::creation::sequences::linspace;
use crate::operator::argument::{Out, TensorOrScalar};
use crate::operator::call::{Arg, Call, Ret};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, torch_version};
use crate::{check, operators};
use dml_compute::complex::functions;
use dml_compute::complex::parts::{as_real, parts};
use dml_compute::complex::pointwise::parts_of_number;
use dml_compute::dtype::accumulator;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::scalar::Scalar;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    of_two(real, imag, out; false).complex(Complex::Own) {
        "aten::complex.out(Tensor real, Tensor imag, *, Tensor(a!) out) -> Tensor(a!)",
    }
    of_two(abs, angle, out; true).complex(Complex::Own) {
        "aten::polar.out(Tensor abs, Tensor angle, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// A complex tensor from its parts, or from magnitude and angle.
fn of_two(call: &mut Call, a: &View, b: &View, out: Out, polar: bool) -> Result<()> {
    let floats = |t: &View| matches!(t.dtype, DType::F16 | DType::F32 | DType::F64);
    check!(
        floats(a) && floats(b),
        Runtime,
        "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
        a.dtype,
        b.dtype
    );
    check!(
        a.dtype == b.dtype,
        Runtime,
        "Expected object of scalar type {} but got scalar type {} for second argument",
        a.dtype,
        b.dtype
    );
    let given = out.tensor()?;
    let dtype = a.dtype.complex();
    check!(
        given.dtype == dtype,
        Runtime,
        "Expected object of scalar type {dtype} but got scalar type {} for argument 'out'",
        given.dtype
    );
    let sizes = call.broadcast(&a.sizes, &b.sizes)?;
    let result = call.result(Some(given), dtype, &sizes)?;
    if polar && a.dtype == DType::F16 && !torch_version::at_least(15) {
        return Err(Error::NotImplemented("\"polar_cpu\" not implemented for 'Half'".into()));
    }
    let [re, im] = parts(&result);
    let inputs = [Input::Tensor(a.clone()), Input::Tensor(b.clone())];
    let function = if polar { &functions::POLAR } else { &functions::JOIN };
    kernel::run(call, function, &[&re, &im], &inputs, a.dtype)?;
    call.ret(result);
    Ok(())
}

/// A sequence of reals as complex numbers.
pub fn of_reals(call: &mut Call, overload: &Operator) -> Result<()> {
    let out = overload.out(call)?.tensor()?;
    if !out.dtype.is_complex() {
        return Err(Error::Fallback("a sequence of complex numbers".into()));
    }
    let reals = call.empty(out.dtype.real(), &[0])?;
    let args: SmallVec<[Arg; 8]> = overload
        .named(call)
        .map(|(name, argument)| if name == "out" { Arg::Tensor(reals.clone()) } else { argument.clone() })
        .collect();
    if args.iter().any(|a| matches!(a, Arg::Scalar(Scalar::Complex(..)))) {
        return Err(Error::Fallback("a sequence of complex numbers".into()));
    }
    run_on(call, overload, &args)?;
    let Some(Ret::Tensor(reals)) = call.returns.pop() else { return Ok(()) };
    let result = call.result(Some(out), out.dtype, &reals.sizes)?;
    checked_copy(call, &reals, &result)?;
    call.ret(result);
    Ok(())
}

/// Powers of a number with exponents on a line in the complex plane.
pub fn logspace(call: &mut Call, overload: &Operator) -> Result<()> {
    let [start, end]: [Scalar; 2] = [overload.argument(call, "start")?, overload.argument(call, "end")?];
    let (steps, base): (i64, f64) = (overload.argument(call, "steps")?, overload.argument(call, "base")?);
    let out = overload.out(call)?.tensor()?;
    let ((start_re, start_im), (end_re, end_im)) = (parts_of_number(start), parts_of_number(end));
    if start_im == 0.0 && end_im == 0.0 && base > 0.0 {
        return of_reals(call, overload);
    }
    if !out.dtype.is_complex() {
        return Err(Error::Fallback("complex powers as reals".into()));
    }
    let dtype = accumulator(out.dtype.real());
    let mut inputs: SmallVec<[Input; 3]> = SmallVec::new();
    for (from, to) in [(start_re, end_re), (start_im, end_im)] {
        let part = call.empty(dtype, &[0])?;
        linspace(call, Scalar::Double(from), Scalar::Double(to), steps, Out::Into(&part))?;
        if let Some(Ret::Tensor(part)) = call.returns.pop() {
            inputs.push(Input::Tensor(part));
        }
    }
    inputs.push(Input::Number(Scalar::Double(base), dtype));
    let result = call.result(Some(out), out.dtype, &[steps])?;
    let [re, im] = parts(&result);
    kernel::run(call, &functions::LOGSPACE, &[&re, &im], &inputs, dtype)?;
    call.ret(result);
    Ok(())
}

/// Samples both parts from the same distribution, as a real tensor with twice the elements.
pub fn uniform(call: &mut Call, overload: &Operator) -> Result<()> {
    sampled(call, overload, |argument, _| argument.clone())
}

/// Each part has half the variance; both parts have the mean.
pub fn normal(call: &mut Call, overload: &Operator) -> Result<()> {
    let TensorOrScalar::Scalar(std) = overload.argument(call, "std")? else {
        return Err(Error::Fallback("deviations that are complex".into()));
    };
    let std = std.to_f64();
    check!(std >= 0.0, Runtime, "normal expects std >= 0.0, but found std {std}");
    sampled(call, overload, |argument, name| {
        if name == "std" { Arg::Scalar(Scalar::Double(std / std::f64::consts::SQRT_2)) } else { argument.clone() }
    })
}

fn sampled<'a>(call: &mut Call<'a>, overload: &Operator, argument: impl Fn(&Arg<'a>, &str) -> Arg<'a>) -> Result<()> {
    let t: &View = overload.argument(call, "self")?;
    let args: SmallVec<[Arg; 8]> = overload
        .named(call)
        .map(|(name, given)| if name == "self" { Arg::Tensor(as_real(t)) } else { argument(given, name) })
        .collect();
    run_without_results(call, |call| run_on(call, overload, &args))?;
    call.ret(t.clone());
    Ok(())
}
