//! Random numbers of distributions whose parameters are tensors: normal, Bernoulli, Poisson,
//! binomial, gamma, Dirichlet.

use crate::operator::argument::{AnyTensor, Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::operator::{input, result_tensor};
use crate::random::fill::{self, fill};
use crate::random::in_place::{check_float, check_std};
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::pointwise::kernel::Input;
use dml_compute::random::Generator;
use dml_compute::random::distributions::{self, Distribution, sample};
use dml_compute::random::fill::Sample;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    normal(mean, std, generator, out).complex(Complex::OfReals(complex::creation::normal)) {
        "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
        "aten::normal.Tensor_float_out(Tensor mean, float std=1., *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
        "aten::normal.float_Tensor_out(float mean, Tensor std, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
        "aten::normal.Tensor_Tensor_out(Tensor mean, Tensor std, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    }
    bernoulli_(self, p, generator) {
        "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    }
    bernoulli_out(self, generator, out) {
        "aten::bernoulli.out(Tensor self, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    }
    poisson(self, generator) {
        "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
    }
    binomial(count, prob, generator) {
        "aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    }
    standard_gamma(self, generator) {
        "aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    }
    dirichlet(self, generator) {
        "aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    }
}

/// The mean, the standard deviation or both are tensors.
fn normal(
    call: &mut Call,
    mean: TensorOrScalar,
    std: TensorOrScalar,
    generator: Option<Generator>,
    out: Out,
) -> Result<()> {
    let operand = |x| match x {
        TensorOrScalar::Scalar(s) => Ok(Input::Number(s, DType::F32)),
        TensorOrScalar::Tensor(t) => input(call, &t),
    };
    if let Some(given) = out.given() {
        check_float(call, given)?;
    }
    let [mean, std] = [operand(mean)?, operand(std)?];
    if let Input::Number(std, _) = &std {
        check_std(std.to_f64())?;
    }
    let dtype = match (&mean, &std) {
        (Input::Tensor(t), _) | (_, Input::Tensor(t)) => t.dtype,
        _ => call.host.default_dtype(),
    };
    let sizes = [&mean, &std].into_iter().try_fold(Dims::new(), |sizes, input| match input {
        Input::Tensor(t) => call.broadcast(&sizes, &t.sizes),
        Input::Number(..) => Ok(sizes),
    })?;
    // The noise is contiguous, and therefore the result too.
    let noise = call.empty(dtype, &sizes)?;
    let inputs = [Input::Tensor(noise.clone()), mean, std];
    let out = result_tensor(call, out, dtype, &inputs)?;
    check_float(call, &out)?;
    fill(call, generator.as_ref(), Sample::StandardNormal, &noise, &[])?;
    let [_, mean, std] = inputs;
    distributions::normal_of(call, &noise, mean, std, &out)?;
    call.ret(out);
    Ok(())
}

fn bernoulli_(call: &mut Call, out: &View, p: AnyTensor, generator: Option<Generator>) -> Result<()> {
    let p = input(call, &p)?;
    bernoulli(call, generator, out.clone(), p)
}

fn bernoulli_out(call: &mut Call, p: &View, generator: Option<Generator>, out: Out) -> Result<()> {
    let out = call.result(out.given(), p.dtype, &p.sizes)?;
    bernoulli(call, generator, out, Input::Tensor(p.clone()))
}

/// 1 with probability `p`, else 0.
fn bernoulli(call: &mut Call, generator: Option<Generator>, out: View, p: Input) -> Result<()> {
    overlap::check_internal(&out)?;
    match p {
        Input::Number(p, _) => fill::bernoulli(call, generator.as_ref(), &out, p.to_f64())?,
        Input::Tensor(p) => {
            let dtype = p.dtype;
            check!(dtype.is_float(), NotImplemented, "\"bernoulli_tensor_cpu_p_\" not implemented for '{dtype}'");
            let sizes = call.broadcast(&out.sizes, &p.sizes)?;
            structured::check_shape(&out.sizes, &sizes)?;
            sample(call, generator.as_ref(), Distribution::Bernoulli, &out, &[&p])?;
        }
    }
    call.ret(out);
    Ok(())
}

fn poisson(call: &mut Call, mean: &View, generator: Option<Generator>) -> Result<()> {
    check_float(call, mean)?;
    let out = call.empty(mean.dtype, &mean.sizes)?;
    sample(call, generator.as_ref(), Distribution::Poisson, &out, &[mean])?;
    call.ret(out);
    Ok(())
}

fn binomial(call: &mut Call, count: &View, p: &View, generator: Option<Generator>) -> Result<()> {
    check_float(call, count)?;
    check!(count.dtype == p.dtype, Runtime, "Found dtype {} but expected {}", p.dtype, count.dtype);
    let out = call.empty(count.dtype, &call.broadcast(&count.sizes, &p.sizes)?)?;
    sample(call, generator.as_ref(), Distribution::Binomial, &out, &[count, p])?;
    call.ret(out);
    Ok(())
}

fn standard_gamma(call: &mut Call, shape: &View, generator: Option<Generator>) -> Result<()> {
    check_float(call, shape)?;
    let out = call.empty(shape.dtype, &shape.sizes)?;
    sample(call, generator.as_ref(), Distribution::Gamma, &out, &[shape])?;
    call.ret(out);
    Ok(())
}

/// Gamma samples divided by their sum along the last dimension.
fn dirichlet(call: &mut Call, shape: &View, generator: Option<Generator>) -> Result<()> {
    check_float(call, shape)?;
    let out = call.empty(shape.dtype, &shape.sizes)?;
    distributions::dirichlet(call, generator.as_ref(), shape, &out)?;
    call.ret(out);
    Ok(())
}
