//! Methods that sample a distribution with a variable number of random words.

use crate::fault::Reporter;
use crate::random::philox::{normals, philox, uniform_open};
use dml_kernel::{Builder, DType, Value, Var, math};
use std::f64::consts::PI;

/// The random words of one element.
pub struct Stream<'b> {
    /// The kernel's builder.
    pub b: &'b Builder,
    /// The low half of the counters.
    pub counter: [Value<'b>; 2],
    /// The seed.
    pub key: [Value<'b>; 2],
    /// Number of blocks that were drawn.
    pub blocks_drawn: Var<'b>,
    /// The dtype of samples.
    pub dtype: DType,
    /// Where to report a parameter out of range.
    pub fault: Option<Reporter<'b>>,
}

impl<'b> Stream<'b> {
    /// Draws the next block of words.
    fn words(&self) -> [Value<'b>; 4] {
        let now = self.blocks_drawn.get();
        self.blocks_drawn.set(now + 1);
        // The fourth word of the counter distinguishes these from the words that fill tensors.
        philox(self.b, [self.counter[0], self.counter[1], now, self.b.u32(0x7361_6d70)], self.key)
    }

    /// Draws two uniform samples between 0 and 1.
    pub fn uniforms(&self) -> [Value<'b>; 2] {
        let u = uniform_open(self.words(), self.dtype);
        [u[0], u[1]]
    }

    /// Reports a parameter out of range.
    pub fn refuse(&self, bad: Value<'b>) {
        if let Some(fault) = self.fault {
            self.b.if_(bad, || fault.report_value());
        }
    }

    fn normal(&self) -> Value<'b> {
        normals(self.words(), self.dtype)[0]
    }
}

/// The remainder of Stirling's formula, `log(k!) - k log(k) + k`.
fn stirling_remainder<'b>(b: &'b Builder, k: Value<'b>) -> Value<'b> {
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

/// `k log(k / mean) + mean - k`, accurate if `k` is close to the mean.
fn deviance<'b>(k: Value<'b>, mean: Value<'b>) -> Value<'b> {
    let off = (mean - k) / k.max(1.0);
    k.eq(0).select(mean, k * (off - math::log1p(off)))
}

/// Rejection sampling: repeats `attempt`, which returns a candidate and whether it is accepted.
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

/// A Poisson sample: for a small mean by multiplying uniform samples (Knuth), else by transformed
/// rejection (W. Hörmann, "The transformed rejection method for generating Poisson random
/// variables", 1993).
pub fn poisson<'b>(s: &Stream<'b>, mean: Value<'b>) -> Value<'b> {
    let b = s.b;
    let result = b.var(mean.like(0.0));
    s.refuse(mean.lt(0));
    let proper = !(mean.is_nan() | mean.is_inf());
    b.if_(!proper, || result.set(mean));
    b.if_(mean.gt(0) & mean.lt(10), || {
        let limit = math::exp(-mean);
        let product = b.var(s.uniforms()[0]);
        b.while_(
            || product.get().gt(limit),
            || {
                result.set(result.get() + 1.0);
                product.set(product.get() * s.uniforms()[0]);
            },
        );
    });
    b.if_(mean.ge(10) & proper, || {
        let spread = math::sqrt(mean) * 2.53 + 0.931;
        let a = spread * 0.02483 - 0.059;
        let inverse_alpha = 1.1239 + 1.1328 / (spread - 3.4);
        let sure = 0.9277 - 3.6224 / (spread - 2.0);
        result.set(accept(b, mean.like(0.0), || {
            let [u, v] = s.uniforms();
            let u = u - 0.5;
            let distance = -u.abs() + 0.5;
            let k = ((a * 2.0 / distance + spread) * u + mean + 0.43).floor();
            let ratio = math::log(v * inverse_alpha / (a / (distance * distance) + spread));
            let below = ratio.le(-deviance(k.max(0.0), mean) - stirling_remainder(b, k.max(0.0)));
            let possible = k.ge(0) & !(distance.lt(0.013) & v.gt(distance));
            (k, (distance.ge(0.07) & v.le(sure)) | (possible & below))
        }));
    });
    result.get()
}

/// A binomial sample: for few expected successes by the gaps between them, else by transformed
/// rejection (W. Hörmann, "The generation of binomial random variates", 1993).
pub fn binomial<'b>(s: &Stream<'b>, count: Value<'b>, p: Value<'b>) -> Value<'b> {
    let b = s.b;
    let flipped = p.gt(0.5);
    let q = flipped.select(1.0 - p, p);
    let mean = count * q;
    let result = b.var(mean.like(0.0));
    let proper = count.gt(0) & q.gt(0) & !count.is_inf();
    b.if_(proper & mean.lt(10), || {
        let log = math::log1p(-q);
        let gap = || (math::log(s.uniforms()[0]) / log).ceil();
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
        // The logarithm of the probability of k, up to a constant.
        let log_mass = |k: Value<'b>| {
            let rest = count - k;
            -deviance(k, mean) - deviance(rest, count - mean) - stirling_remainder(b, k) - stirling_remainder(b, rest)
        };
        let mode = log_mass(((count + 1.0) * q).floor().min(count));
        result.set(accept(b, mean.like(0.0), || {
            let [u, v] = s.uniforms();
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

/// A sample of the gamma distribution with scale 1 (G. Marsaglia and W. Tsang, "A simple method for
/// generating gamma variables", 2000).
pub fn gamma<'b>(s: &Stream<'b>, shape: Value<'b>) -> Value<'b> {
    let b = s.b;
    let small = shape.lt(1);
    let boost = math::pow(s.uniforms()[0], 1.0 / shape);
    let d = small.select(shape + 1.0, shape) - (1.0 / 3.0);
    let c = math::rsqrt(d * 9.0);
    s.refuse(shape.lt(0));
    let result = b.var(shape.like(f64::NAN));
    b.if_(shape.ge(0), || {
        let v = accept(b, shape.like(0.0), || {
            let (x, [u, _]) = (s.normal(), s.uniforms());
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
