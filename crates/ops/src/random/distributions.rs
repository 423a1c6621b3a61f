//! Random numbers of distributions whose parameters are tensors: Bernoulli, Poisson, binomial, gamma, Dirichlet.
//!
//! Each element has a counter of its own, and draws as many blocks of random words under it as its method takes: most
//! methods reject some of their candidates.

use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::launch::{GROUP, linear_id};
use crate::random::philox::{self, check_float, declare_source, is_stored, normals, pass, philox, reserve, unit_open};
use crate::reduction::{Axes, sum};
use crate::tensor::Tensor;
use crate::tensor::layout::{self, Layout};
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value, Var, math};
use std::f64::consts::PI;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::bernoulli_.Tensor", |c| {
        let (out, p) = (c.tensor(0)?.clone(), elementwise::input(c, 1)?);
        bernoulli(c, 2, out, p)
    }),
    op("aten::bernoulli.out", |c| {
        let p = c.tensor(0)?;
        let out = c.out(Some(2), p.dtype, &p.sizes)?;
        bernoulli(c, 1, out, Input::Tensor(p.clone()))
    }),
    op("aten::poisson", poisson),
    op("aten::binomial", binomial),
    op("aten::_standard_gamma", standard_gamma),
    op("aten::_sample_dirichlet", dirichlet),
];

/// The random words of one element.
struct Stream<'b> {
    b: &'b Builder,
    counter: [Value<'b>; 2],
    key: [Value<'b>; 2],
    drawn: Var<'b>,
    dtype: DType,
    fault: Pointer<'b>,
    refusal: Value<'b>,
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

    /// Reports the operator's refusal if a parameter is not one.
    fn refuse(&self, bad: Value<'b>) {
        let zero = self.b.u32(0);
        self.b.if_(bad, || fault::report(self.b, self.fault, self.refusal, zero, zero, 0));
    }

    fn normal(&self) -> Value<'b> {
        normals(self.words(), self.dtype)[0]
    }
}

type Sampler<'f> = &'f dyn for<'b> Fn(&Stream<'b>, &[Value<'b>]) -> Value<'b>;

/// Fills `out` with samples; `refusal` is what to say of parameters that
/// the body refuses. It gets the inputs' elements, which broadcast to `out`, in the compute type.
fn sample(
    call: &Call,
    generator: usize,
    family: &'static str,
    refusal: Option<&'static str>,
    out: &Tensor,
    inputs: &[&Tensor],
    body: Sampler<'_>,
) -> Result<()> {
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let source = reserve(call, generator, numel as u64)?;
    let stored = is_stored(source);
    let inputs: Vec<Tensor> = inputs.iter().map(|t| t.expand(&out.sizes)).collect();
    let operands: Vec<&Tensor> = [out].into_iter().chain(&inputs).collect();
    let strides: Vec<&[i64]> = operands.iter().map(|t| t.strides.as_slice()).collect();
    let layout = Layout::row_major(&out.sizes, &strides);
    let dtypes: Vec<DType> = operands.iter().map(|t| t.dtype).collect();
    let code = dtypes.iter().fold(0, |code, &d| code << 8 | d as u32);
    let (rank, index) = (layout.rank(), layout.index);
    let key = [code, rank as u32, index.bytes(), u32::from(stored), 0, 0];
    let kernel = call.kernel(family, key, || build(family, &dtypes, rank, index, stored, body))?;
    let mut launcher = call.launch(kernel).write(out);
    for t in &inputs {
        launcher = launcher.read(t);
    }
    let launcher = pass(launcher, source).fault().u32(refusal.map_or(0, fault::value));
    layout.pass(launcher.index(index, numel)).threads(numel as u64)
}

fn build(family: &str, dtypes: &[DType], rank: usize, index: Scalar, stored: bool, body: Sampler<'_>) -> Kernel {
    let b = Builder::new(family, [GROUP, 1, 1]);
    let pointers: Vec<_> = dtypes.iter().map(|&d| b.pointer("t", d)).collect();
    let words = declare_source(&b, stored);
    let (fault, refusal) = (b.pointer("fault", DType::U32), b.param("refusal", Scalar::U32));
    let n = b.param("numel", index);
    let params = layout::declare(&b, rank, dtypes.len(), index);
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let low = words[2] + i.cast(Scalar::U32);
        let carry = low.lt(words[2]).cast(Scalar::U32);
        let high = if index == Scalar::U64 { (i >> 32).cast(Scalar::U32) } else { b.u32(0) };
        let stream = Stream {
            b: &b,
            counter: [low, words[3] + carry + high],
            key: [words[0], words[1]],
            drawn: b.var(b.u32(0)),
            fault,
            refusal,
            dtype: if dtypes[0] == DType::F64 { DType::F64 } else { DType::F32 },
        };
        let offsets = params.offsets(&b, i);
        let values: Vec<Value> = pointers[1..].iter().zip(&offsets[1..]).map(|(p, &at)| p.load(at)).collect();
        pointers[0].store(offsets[0], body(&stream, &values));
    });
    b.finish()
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

/// `bernoulli_.Tensor(self, p, generator)`, `bernoulli.out(self, generator, out)`: ones with probability `p`
fn bernoulli(call: &mut Call, generator: usize, out: Tensor, p: Input) -> Result<()> {
    elementwise::check_no_self_overlap(&out)?;
    match p {
        Input::Number(p, _) => philox::bernoulli(call, generator, &out, p.to_f64())?,
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
            let refusal = Some("bernoulli: a probability is not between 0 and 1");
            sample(call, generator, "bernoulli_of", refusal, &out, &[&p], &|s, v| {
                let p = v[0].cast(s.dtype.compute());
                s.refuse(!(p.ge(0) & p.le(1)));
                s.units()[0].lt(p)
            })?;
        }
    }
    call.ret(out);
    Ok(())
}

/// `poisson(self, generator)`
fn poisson(call: &mut Call) -> Result<()> {
    let mean = call.tensor(0)?;
    check_float(call, mean)?;
    let out = elementwise::result_tensor(call, Out::New, mean.dtype, &[Input::Tensor(mean.clone())])?;
    sample(call, 1, "poisson", Some("poisson: a rate is negative"), &out, &[mean], &|s, v| poisson_of(s, v[0]))?;
    call.ret(out);
    Ok(())
}

/// `binomial(count, prob, generator)`
fn binomial(call: &mut Call) -> Result<()> {
    let (count, p) = (call.tensor(0)?, call.tensor(1)?);
    check_float(call, count)?;
    check!(count.dtype == p.dtype, Runtime, "Found dtype {} but expected {}", p.dtype, count.dtype);
    let inputs = [count, p].map(|t| Input::Tensor(t.clone()));
    let out = elementwise::result_tensor(call, Out::New, count.dtype, &inputs)?;
    sample(call, 2, "binomial", None, &out, &[count, p], &|s, v| binomial_of(s, v[0], v[1]))?;
    call.ret(out);
    Ok(())
}

const GAMMA: &str = "a shape of a gamma distribution is negative";

/// `_standard_gamma(self, generator)`
fn standard_gamma(call: &mut Call) -> Result<()> {
    let shape = call.tensor(0)?;
    check_float(call, shape)?;
    let out = elementwise::result_tensor(call, Out::New, shape.dtype, &[Input::Tensor(shape.clone())])?;
    sample(call, 1, "standard_gamma", Some(GAMMA), &out, &[shape], &|s, v| gamma_of(s, v[0]))?;
    call.ret(out);
    Ok(())
}

/// `_sample_dirichlet(self, generator)`: gamma samples as parts of their sum along the last dimension
fn dirichlet(call: &mut Call) -> Result<()> {
    let shape = call.tensor(0)?;
    check_float(call, shape)?;
    let out = call.empty(shape.dtype, &shape.sizes)?;
    if out.numel() > 0 {
        let wide = if shape.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let parts = call.empty(wide, &shape.sizes)?;
        sample(call, 1, "standard_gamma", Some(GAMMA), &parts, &[shape], &|s, v| gamma_of(s, v[0]))?;
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
        let samplers: [(usize, Sampler); 3] =
            [(1, &|s, v| poisson_of(s, v[0])), (2, &|s, v| binomial_of(s, v[0], v[1])), (1, &|s, v| gamma_of(s, v[0]))];
        for (inputs, body) in samplers {
            for (dtype, index) in [(DType::F16, Scalar::U32), (DType::F64, Scalar::U64)] {
                accepted(&build("sample", &vec![dtype; inputs + 1], 2, index, inputs > 1, body));
            }
        }
    }
}
