//! Random numbers of distributions whose parameters are tensors: normal, Bernoulli, Poisson, binomial, gamma, Dirichlet.
//!
//! Each element has a counter of its own, and draws as many blocks of random words under it as its method takes: most
//! methods reject some of their candidates.

use crate::operator::argument::{AnyTensor, Generator, Out, TensorOrScalar};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::{Fault, Reporter};
use crate::pointwise::kernel::{self, Input};
use crate::pointwise::operator::{check_no_self_overlap, input, result_tensor};
use crate::primitives::kernel::{Input as Read, KernelSpec, Output};
use crate::random::fill::{self, Sample, fill};
use crate::random::in_place::{check_float, check_std};
use crate::random::philox::{Source, draw, is_stored, normals, philox, sample_dtype, unit_open};
use crate::reduction::{Axes, sum};
use crate::tensor::Tensor;
use crate::tensor::layout::{Layout, LayoutSpec, Walked};
use crate::{check, operators};
use dml_engine::{
    interface::{Each, Index},
    parameters,
};
use dml_kernel::{Builder, DType, Scalar, Value, Var, dense::linear_id, math};
use smallvec::SmallVec;
use std::f64::consts::PI;

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

/// The random words of one element.
struct Stream<'b> {
    b: &'b Builder,
    counter: [Value<'b>; 2],
    key: [Value<'b>; 2],
    drawn: Var<'b>,
    dtype: DType,
    fault: Option<Reporter<'b>>,
}

impl<'b> Stream<'b> {
    /// The next block of words.
    fn words(&self) -> [Value<'b>; 4] {
        let now = self.drawn.get();
        self.drawn.set(now + 1);
        // The fourth word keeps these apart from the words that fill tensors.
        philox(self.b, [self.counter[0], self.counter[1], now, self.b.u32(0x7361_6d70)], self.key)
    }

    /// Two uniform samples between 0 and 1.
    fn units(&self) -> [Value<'b>; 2] {
        let u = unit_open(self.words(), self.dtype);
        [u[0], u[1]]
    }

    /// Reports the distribution's refusal if a parameter is not one.
    fn refuse(&self, bad: Value<'b>) {
        if let Some(fault) = self.fault {
            self.b.if_(bad, || fault.report_value());
        }
    }

    fn normal(&self) -> Value<'b> {
        normals(self.words(), self.dtype)[0]
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
            Distribution::Poisson => poisson_of(s, v[0]),
            Distribution::Binomial => binomial_of(s, v[0], v[1]),
            Distribution::Gamma => gamma_of(s, v[0]),
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
            let low = words[2] + i.cast(Scalar::U32);
            let carry = low.lt(words[2]).cast(Scalar::U32);
            let high = if index == Scalar::U64 { (i >> 32).cast(Scalar::U32) } else { b.u32(0) };
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

/// `log(k!) - k log(k) + k`: what Stirling's formula leaves.
fn excess<'b>(b: &'b Builder, k: Value<'b>) -> Value<'b> {
    let inverse = 1.0 / k.max(1.0);
    let series = 0.5 * math::log(2.0 * PI * k.max(1.0)) + inverse * (1.0 / 12.0 - inverse * inverse * (1.0 / 360.0));
    let factorial = b.var(k.like(1.0));
    for i in 2..10 {
        let i = f64::from(i);
        factorial.set(k.ge(i).select(factorial.get() * i, factorial.get()));
    }
    let exact = math::log(factorial.get()) - k * math::log(k.max(1.0)) + k;
    k.lt(10).select(exact, series)
}

/// `k log(k / mean) + mean - k`, exact where `k` is near the mean.
fn deviance<'b>(k: Value<'b>, mean: Value<'b>) -> Value<'b> {
    let off = (mean - k) / k.max(1.0);
    k.eq(0).select(mean, k * (off - math::log1p(off)))
}

/// Repeats `attempt`, which yields a candidate and whether it is accepted.
fn accept<'b>(b: &'b Builder, zero: Value<'b>, attempt: impl FnOnce() -> (Value<'b>, Value<'b>)) -> Value<'b> {
    let (result, go_on) = (b.var(zero), b.var(b.bool(true)));
    b.while_(
        || go_on.get(),
        || {
            let (candidate, good) = attempt();
            result.set(candidate);
            go_on.set(!good);
        },
    );
    result.get()
}

/// A Poisson sample: of a small mean by multiplying uniform samples (Knuth), else by transformed rejection (W. Hörmann,
/// "The transformed rejection method for generating Poisson random variables", 1993).
fn poisson_of<'b>(s: &Stream<'b>, mean: Value<'b>) -> Value<'b> {
    let b = s.b;
    let result = b.var(mean.like(0.0));
    s.refuse(mean.lt(0));
    let proper = !(mean.is_nan() | mean.is_inf());
    b.if_(!proper, || result.set(mean));
    b.if_(mean.gt(0) & mean.lt(10), || {
        let limit = math::exp(-mean);
        let product = b.var(s.units()[0]);
        b.while_(
            || product.get().gt(limit),
            || {
                result.set(result.get() + 1.0);
                product.set(product.get() * s.units()[0]);
            },
        );
    });
    b.if_(mean.ge(10) & proper, || {
        let spread = math::sqrt(mean) * 2.53 + 0.931;
        let a = spread * 0.02483 - 0.059;
        let inverse_alpha = 1.1239 + 1.1328 / (spread - 3.4);
        let sure = 0.9277 - 3.6224 / (spread - 2.0);
        result.set(accept(b, mean.like(0.0), || {
            let [u, v] = s.units();
            let u = u - 0.5;
            let distance = -u.abs() + 0.5;
            let k = ((a * 2.0 / distance + spread) * u + mean + 0.43).floor();
            let ratio = math::log(v * inverse_alpha / (a / (distance * distance) + spread));
            let below = ratio.le(-deviance(k.max(0.0), mean) - excess(b, k.max(0.0)));
            let possible = k.ge(0) & !(distance.lt(0.013) & v.gt(distance));
            (k, (distance.ge(0.07) & v.le(sure)) | (possible & below))
        }));
    });
    result.get()
}

/// A binomial sample: of few expected successes by the gaps between them, else by transformed rejection (W. Hörmann,
/// "The generation of binomial random variates", 1993).
fn binomial_of<'b>(s: &Stream<'b>, count: Value<'b>, p: Value<'b>) -> Value<'b> {
    let b = s.b;
    let flipped = p.gt(0.5);
    let q = flipped.select(1.0 - p, p);
    let mean = count * q;
    let result = b.var(mean.like(0.0));
    let proper = count.gt(0) & q.gt(0) & !count.is_inf();
    b.if_(proper & mean.lt(10), || {
        let log = math::log1p(-q);
        let gap = || (math::log(s.units()[0]) / log).ceil();
        let reached = b.var(gap());
        b.while_(
            || reached.get().le(count),
            || {
                result.set(result.get() + 1.0);
                reached.set(reached.get() + gap());
            },
        );
    });
    b.if_(proper & mean.ge(10), || {
        let deviation = math::sqrt(mean * (1.0 - q));
        let spread = deviation * 2.53 + 1.15;
        let a = spread * 0.0248 + q * 0.01 - 0.0873;
        let sure = 0.92 - 4.2 / spread;
        let alpha = (2.83 + 5.1 / spread) * deviation;
        // Logarithm of the probability of k, up to a constant.
        let log_mass = |k: Value<'b>| {
            let rest = count - k;
            -deviance(k, mean) - deviance(rest, count - mean) - excess(b, k) - excess(b, rest)
        };
        let mode = log_mass(((count + 1.0) * q).floor().min(count));
        result.set(accept(b, mean.like(0.0), || {
            let [u, v] = s.units();
            let u = u - 0.5;
            let distance = -u.abs() + 0.5;
            let k = ((a * 2.0 / distance + spread) * u + mean + 0.5).floor();
            let possible = k.ge(0) & k.le(count);
            let ratio = math::log(v * alpha / (a / (distance * distance) + spread));
            let below = ratio.le(log_mass(k.max(0.0).min(count)) - mode);
            (k, possible & ((distance.ge(0.07) & v.le(sure)) | below))
        }));
    });
    let result = flipped.select(count - result.get(), result.get());
    let nan = count.is_nan() | count.is_inf() | p.is_nan();
    nan.select(mean.like(f64::NAN), count.le(0).select(mean.like(0.0), result))
}

/// A sample of the gamma distribution of scale 1 (G. Marsaglia and W. Tsang, "A simple method for generating gamma
/// variables", 2000).
fn gamma_of<'b>(s: &Stream<'b>, shape: Value<'b>) -> Value<'b> {
    let b = s.b;
    let small = shape.lt(1);
    let boost = math::pow(s.units()[0], 1.0 / shape);
    let d = small.select(shape + 1.0, shape) - (1.0 / 3.0);
    let c = math::rsqrt(d * 9.0);
    s.refuse(shape.lt(0));
    let result = b.var(shape.like(f64::NAN));
    b.if_(shape.ge(0), || {
        let v = accept(b, shape.like(0.0), || {
            let (x, [u, _]) = (s.normal(), s.units());
            let y = x * c + 1.0;
            let (square, v) = (x * x, y * y * y);
            let near = u.lt(1.0 - 0.0331 * square * square);
            let bound = 0.5 * square + d * (1.0 - v + math::log(y.gt(0).select(v, 1)));
            (v, y.gt(0) & (near | math::log(u).lt(bound)))
        });
        let x = d * v;
        let x = small.select(boost * x, x);
        let least = if s.dtype == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
        result.set(x.max(least));
    });
    result.get()
}

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
    let [mean, std] = [operand(mean)?, operand(std)?];
    if let Input::Number(std, _) = std {
        check_std(std.to_f64())?;
    }
    let dtype = match (&mean, &std) {
        (Input::Tensor(t), _) | (_, Input::Tensor(t)) => t.dtype,
        _ => call.host.default_dtype(),
    };
    let inputs = [mean, std];
    let out = result_tensor(call, out, dtype, &inputs)?;
    check_float(call, &out)?;
    let noise = call.empty(dtype, &out.sizes)?;
    fill(call, generator.as_ref(), Sample::StandardNormal, &noise, &[])?;
    let [mean, std] = inputs;
    let inputs = [Input::Tensor(noise), mean, std];
    kernel::run(call, "normal_of", 0, &[&out], &inputs, dtype, |_, v| vec![v[0] * v[2] + v[1]])?;
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
    check_no_self_overlap(&out)?;
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
    let out = result_tensor(call, Out::New, mean.dtype, &[Input::Tensor(mean.clone())])?;
    sample(call, generator.as_ref(), Distribution::Poisson, &out, &[mean])?;
    call.ret(out);
    Ok(())
}

fn binomial(call: &mut Call, count: &Tensor, p: &Tensor, generator: Option<Generator>) -> Result<()> {
    check_float(call, count)?;
    check!(count.dtype == p.dtype, Runtime, "Found dtype {} but expected {}", p.dtype, count.dtype);
    let inputs = [count, p].map(|t| Input::Tensor(t.clone()));
    let out = result_tensor(call, Out::New, count.dtype, &inputs)?;
    sample(call, generator.as_ref(), Distribution::Binomial, &out, &[count, p])?;
    call.ret(out);
    Ok(())
}

fn standard_gamma(call: &mut Call, shape: &Tensor, generator: Option<Generator>) -> Result<()> {
    check_float(call, shape)?;
    let out = result_tensor(call, Out::New, shape.dtype, &[Input::Tensor(shape.clone())])?;
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
        kernel::run(call, "dirichlet", 0, &[&out], &inputs, wide, |_, v| vec![(v[0] / v[1]).max(v[2]).min(v[3])])?;
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
            for (dtype, index, stored) in [(DType::F16, Scalar::U32, false), (DType::F64, Scalar::U64, true)] {
                let count = distribution.parameters();
                let parameters = SmallVec::from_elem(dtype, count);
                let layout = LayoutSpec { rank: 2, operands: 1 + count as u32, index };
                accepted(&Spec { distribution, out: dtype, parameters, layout, stored }.build());
            }
        }
    }
}
