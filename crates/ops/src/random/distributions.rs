//! Random numbers of distributions whose parameters are tensors: normal, Bernoulli, Poisson, binomial, gamma, Dirichlet.
//!
//! Each element has a counter of its own, and draws as many blocks of random words under it as its method takes: most
//! methods reject some of their candidates.

use crate::operator::argument::{AnyTensor, Generator, Out, TensorOrScalar};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::{Fault, Refusal};
use crate::pointwise::kernel::{self, Domain, Guard, Input, Variant};
use crate::pointwise::operator::{input, result_tensor};
use crate::primitives::kernel::{Input as Read, KernelSpec, Output};
use crate::random::fill::{self, Sample, fill};
use crate::random::in_place::{check_float, check_std};
use crate::random::methods::{self, Stream};
use crate::random::philox::{Source, draw, is_stored, sample_dtype};
use crate::reduction::{Axes, sum};
use crate::tensor::layout::{Layout, LayoutSpec, Walked};
use crate::tensor::overlap;
use crate::tensor::{Dims, Tensor};
use crate::{check, operators};
use dml_engine::{
    interface::{Each, Index},
    parameters,
};
use dml_kernel::{Builder, DType, ScalarType, Value, dense::linear_id};
use smallvec::SmallVec;

operators! {
    normal(mean, std, generator, out) {
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

/// What is drawn, with the parameters that it takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Distribution {
    /// Ones with probability `p`.
    Bernoulli,
    /// Of `mean`.
    Poisson,
    /// Of `count, p`.
    Binomial,
    /// Of `shape`, of scale 1.
    Gamma,
}

impl Distribution {
    #[cfg(test)]
    fn parameters(self) -> usize {
        if self == Distribution::Binomial { 2 } else { 1 }
    }

    /// What to say of parameters that it does not take, if there are such.
    fn refusal(self) -> Option<&'static str> {
        match self {
            Distribution::Bernoulli => Some("bernoulli: a probability is not between 0 and 1"),
            Distribution::Poisson => Some("poisson: a rate is negative"),
            Distribution::Binomial => None,
            Distribution::Gamma => Some("a shape of a gamma distribution is negative"),
        }
    }

    /// A sample; `v` are the parameters in their compute type.
    fn sample<'b>(self, s: &Stream<'b>, v: &[Value<'b>]) -> Value<'b> {
        match self {
            Distribution::Bernoulli => {
                let p = v[0].cast(s.dtype.compute());
                s.refuse(!(p.ge(0) & p.le(1)));
                s.units()[0].lt(p)
            }
            Distribution::Poisson => methods::poisson(s, v[0]),
            Distribution::Binomial => methods::binomial(s, v[0], v[1]),
            Distribution::Gamma => methods::gamma(s, v[0]),
        }
    }
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    distribution: Distribution,
    out: DType,
    parameters: SmallVec<[DType; 4]>,
    layout: LayoutSpec,
    stored: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        parameters: Each<Read> = s.parameters.clone(),
        source: Source = s.stored,
        fault: Option<Fault> = s.distribution.refusal().map(|_| ()),
        numel: Index = s.layout.index,
        layout: Walked = s.layout,
    }
}

/// Fills `out` with samples; the parameters broadcast to it.
fn sample(
    call: &Call,
    generator: Option<&Generator>,
    distribution: Distribution,
    out: &Tensor,
    parameters: &[&Tensor],
) -> Result<()> {
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let source = draw(call, generator, numel as u64)?;
    let parameters: SmallVec<[Tensor; 2]> = parameters.iter().map(|t| t.expand(&out.sizes)).collect();
    let strides: SmallVec<[&[i64]; 3]> = [out].into_iter().chain(&parameters).map(|t| t.strides.as_slice()).collect();
    let layout = Layout::row_major(&out.sizes, &strides);
    let spec = Spec {
        distribution,
        out: out.dtype,
        parameters: parameters.iter().map(|t| t.dtype).collect(),
        layout: layout.spec(),
        stored: is_stored(source),
    };
    let arguments = Arguments {
        out,
        parameters: parameters.iter().collect(),
        source,
        fault: distribution.refusal().map(|message| call.fault_of_value(message)),
        numel,
        layout: &layout,
    };
    call.run_threads(&spec, &arguments, numel as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.distribution {
            Distribution::Bernoulli => "bernoulli_of",
            Distribution::Poisson => "poisson",
            Distribution::Binomial => "binomial",
            Distribution::Gamma => "standard_gamma",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (words, index) = (p.source, self.layout.index);
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let low = words[2] + i.cast(ScalarType::U32);
            let carry = low.lt(words[2]).cast(ScalarType::U32);
            let high = if index == ScalarType::U64 { (i >> 32).cast(ScalarType::U32) } else { b.u32(0) };
            let stream = Stream {
                b,
                counter: [low, words[3] + carry + high],
                key: [words[0], words[1]],
                drawn: b.var(b.u32(0)),
                fault: p.fault,
                dtype: sample_dtype(self.out),
            };
            let offsets = p.layout.offsets(b, i);
            let values: Vec<Value> = p.parameters.iter().zip(&offsets[1..]).map(|(t, &at)| t.load(at)).collect();
            p.out.store(offsets[0], self.distribution.sample(&stream, &values));
        });
    }
}

/// What a tensor of deviations, the third operand, must hold.
const STD: [Guard; 1] = [Guard {
    operand: 2,
    domain: Domain::Deviation,
    refusal: Refusal::Value("normal expects all elements of std >= 0.0"),
}];

/// Either of mean and deviation is a tensor.
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
    let std_number = matches!(std, Input::Number(..));
    let dtype = match (&mean, &std) {
        (Input::Tensor(t), _) | (_, Input::Tensor(t)) => t.dtype,
        _ => call.host.default_dtype(),
    };
    let sizes = [&mean, &std].into_iter().try_fold(Dims::new(), |sizes, input| match input {
        Input::Tensor(t) => call.broadcast(&sizes, &t.sizes),
        Input::Number(..) => Ok(sizes),
    })?;
    // The first input is contiguous, and the result with it.
    let noise = call.empty(dtype, &sizes)?;
    let inputs = [Input::Tensor(noise.clone()), mean, std];
    let out = result_tensor(call, out, dtype, &inputs)?;
    check_float(call, &out)?;
    fill(call, generator.as_ref(), Sample::StandardNormal, &noise, &[])?;
    let variant = Variant::Guarded(if std_number { &[] } else { &STD }, std_number);
    kernel::run_variant(call, "normal_of", variant, &[&out], &kernel::operands(&inputs), dtype, &|_, v| {
        vec![v[0] * v[2] + v[1]]
    })?;
    call.ret(out);
    Ok(())
}

fn bernoulli_(call: &mut Call, out: &Tensor, p: AnyTensor, generator: Option<Generator>) -> Result<()> {
    let p = input(call, &p)?;
    bernoulli(call, generator, out.clone(), p)
}

fn bernoulli_out(call: &mut Call, p: &Tensor, generator: Option<Generator>, out: Out) -> Result<()> {
    let out = call.result(out.given(), p.dtype, &p.sizes)?;
    bernoulli(call, generator, out, Input::Tensor(p.clone()))
}

/// Ones with probability `p`.
fn bernoulli(call: &mut Call, generator: Option<Generator>, out: Tensor, p: Input) -> Result<()> {
    overlap::check_internal(&out)?;
    match p {
        Input::Number(p, _) => fill::bernoulli(call, generator.as_ref(), &out, p.to_f64())?,
        Input::Tensor(p) => {
            let dtype = p.dtype;
            check!(dtype.is_float(), NotImplemented, "\"bernoulli_tensor_cpu_p_\" not implemented for '{dtype}'");
            let sizes = call.broadcast(&out.sizes, &p.sizes)?;
            check!(
                sizes == out.sizes,
                Runtime,
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                out.sizes.as_slice(),
                sizes.as_slice()
            );
            sample(call, generator.as_ref(), Distribution::Bernoulli, &out, &[&p])?;
        }
    }
    call.ret(out);
    Ok(())
}

fn poisson(call: &mut Call, mean: &Tensor, generator: Option<Generator>) -> Result<()> {
    check_float(call, mean)?;
    let out = call.empty(mean.dtype, &mean.sizes)?;
    sample(call, generator.as_ref(), Distribution::Poisson, &out, &[mean])?;
    call.ret(out);
    Ok(())
}

fn binomial(call: &mut Call, count: &Tensor, p: &Tensor, generator: Option<Generator>) -> Result<()> {
    check_float(call, count)?;
    check!(count.dtype == p.dtype, Runtime, "Found dtype {} but expected {}", p.dtype, count.dtype);
    let out = call.empty(count.dtype, &call.broadcast(&count.sizes, &p.sizes)?)?;
    sample(call, generator.as_ref(), Distribution::Binomial, &out, &[count, p])?;
    call.ret(out);
    Ok(())
}

fn standard_gamma(call: &mut Call, shape: &Tensor, generator: Option<Generator>) -> Result<()> {
    check_float(call, shape)?;
    let out = call.empty(shape.dtype, &shape.sizes)?;
    sample(call, generator.as_ref(), Distribution::Gamma, &out, &[shape])?;
    call.ret(out);
    Ok(())
}

/// Gamma samples as parts of their sum along the last dimension.
fn dirichlet(call: &mut Call, shape: &Tensor, generator: Option<Generator>) -> Result<()> {
    check_float(call, shape)?;
    let out = call.empty(shape.dtype, &shape.sizes)?;
    if out.numel() > 0 {
        let wide = sample_dtype(shape.dtype);
        let parts = call.empty(wide, &shape.sizes)?;
        sample(call, generator.as_ref(), Distribution::Gamma, &parts, &[shape])?;
        let axes = if shape.dim() == 0 { Axes::all(true) } else { Axes::listed(call, &[-1], shape.dim(), true)? };
        let total = sum::add_up(call, &parts, axes)?;
        let inputs = [Input::Tensor(parts), Input::Tensor(total)];
        let (least, most) = if wide == DType::F64 {
            (f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0)
        } else {
            (f64::from(f32::MIN_POSITIVE), 1.0 - f64::from(f32::EPSILON) / 2.0)
        };
        let bounds = [least, most].map(|x| Input::Number(Number::Double(x), wide));
        let inputs: Vec<Input> = inputs.into_iter().chain(bounds).collect();
        kernel::run(call, "dirichlet", &[&out], &inputs, wide, |_, v| vec![(v[0] / v[1]).max(v[2]).min(v[3])])?;
    }
    call.ret(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for distribution in
            [Distribution::Bernoulli, Distribution::Poisson, Distribution::Binomial, Distribution::Gamma]
        {
            for (dtype, index, stored) in [(DType::F16, ScalarType::U32, false), (DType::F64, ScalarType::U64, true)] {
                let count = distribution.parameters();
                let parameters = SmallVec::from_elem(dtype, count);
                let layout = LayoutSpec { rank: 2, operands: 1 + count as u32, index };
                accepted(&Spec { distribution, out: dtype, parameters, layout, stored }.build());
            }
        }
    }
}
