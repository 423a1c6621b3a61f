//! Samples of gamma distributions of counters that the caller gives, in the order that TensorFlow
//! documents: each result has 256 counters of its own.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::random::counters::{State, StateParameter, box_muller, skipped, unit};
use crate::random::philox::{Words, philox};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, Var, math};

/// Counters of a result.
const COUNTERS: u32 = 256;

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    out: DType,
    index: ScalarType,
    stored: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        alpha: Input = s.out,
        state: StateParameter = s.stored,
        numel: Index = s.index,
        /// Number of shapes, and of samples of each.
        alphas: Index = s.index,
        samples: Index = s.index,
    }
}

/// Fills a contiguous tensor `[samples, alphas]` with samples of scale 1 of the distributions whose
/// shapes are `alpha`, contiguous and of as many elements as `out` has columns.
pub fn gamma(cx: &Context, state: State, alpha: &View, out: &View) -> Result<()> {
    let (numel, alphas) = (out.numel(), alpha.numel());
    if numel == 0 {
        return Ok(());
    }
    let spec = Spec { out: out.dtype, index: index_type(numel), stored: matches!(state, State::Stored { .. }) };
    let arguments = Arguments { out, alpha, state, numel, alphas, samples: numel / alphas };
    cx.run_threads(&spec, &arguments, numel as u64)
}

/// The words of a result, of which each block gives two normal or two uniform samples; the second
/// one is taken first.
struct Stream<'b> {
    b: &'b Builder,
    key: [Value<'b>; 2],
    first: Words<'b>,
    /// Blocks that were drawn.
    drawn: Var<'b>,
    is_wide: bool,
}

/// The sample of a block that is still to be taken, and whether there is one.
struct Pending<'b> {
    sample: Var<'b>,
    is_there: Var<'b>,
}

impl<'b> Stream<'b> {
    fn pending(&self) -> Pending<'b> {
        let zero = self.b.float(if self.is_wide { ScalarType::F64 } else { ScalarType::F32 }, 0.0);
        Pending { sample: self.b.var(zero), is_there: self.b.var(self.b.u32(0)) }
    }

    /// The next sample of a kind that makes two of a block.
    fn next(&self, pending: &Pending<'b>, two: impl FnOnce(Words<'b>) -> [Value<'b>; 2]) -> Value<'b> {
        let (b, found) = (self.b, self.b.var(pending.sample.get()));
        let is_there = pending.is_there.get();
        b.if_(is_there.eq(0), || {
            let words = philox(b, skipped(self.first, self.drawn.get()), self.key);
            self.drawn.set(self.drawn.get() + 1);
            let [first, second] = two(words);
            pending.sample.set(first);
            found.set(second);
        });
        pending.is_there.set(1 - is_there);
        found.get()
    }

    /// A number of `[0, 1)` from two words: TensorFlow's of 52 bits, or the upper ones of it.
    fn unit(&self, [low, high]: [Value<'b>; 2]) -> Value<'b> {
        if self.is_wide {
            return unit(&[low, high], DType::F64);
        }
        let upper = (((low & 0xf_ffff) << 12) | (high >> 20)).cast(ScalarType::F32) * 2f64.powi(-32);
        upper.min(1.0 - 2f64.powi(-24))
    }

    fn uniform(&self, pending: &Pending<'b>) -> Value<'b> {
        self.next(pending, |words| [self.unit([words[0], words[1]]), self.unit([words[2], words[3]])])
    }

    fn normal(&self, pending: &Pending<'b>) -> Value<'b> {
        self.next(pending, |words| {
            let [radius, angle] = [self.unit([words[0], words[1]]), self.unit([words[2], words[3]])];
            box_muller(radius, angle, self.is_wide)
        })
    }

    /// A sample for the shape `alpha`: of the exponential distribution for 1, else by G. Marsaglia
    /// and W. Tsang, "A simple method for generating gamma variables", 2000.
    fn gamma(&self, alpha: Value<'b>) -> Value<'b> {
        let b = self.b;
        let (uniforms, normals) = (self.pending(), self.pending());
        let result = b.var(alpha.like(f64::NAN));
        b.if_else(
            alpha.eq(1.0),
            || result.set(-math::log1p(-self.uniform(&uniforms))),
            || {
                let is_small = alpha.lt(1.0);
                let d = alpha + is_small.select(alpha.like(2.0 / 3.0), alpha.like(-1.0 / 3.0));
                let c = (1.0 / 3.0) / math::sqrt(d);
                // The loop would not end for NaN, nor for shapes that are not positive.
                let open = b.var(alpha.gt(0.0).select(b.u32(1), b.u32(0)));
                b.while_(
                    || open.get().ne(0),
                    || {
                        let x = self.normal(&normals);
                        let y = x * c + 1.0;
                        b.if_(y.gt(0.0), || {
                            let (square, v) = (x * x, y * y * y);
                            let u = self.uniform(&uniforms);
                            let near = u.lt(1.0 - 0.0331 * square * square);
                            let bound = 0.5 * square + d * (1.0 - v + math::log(v));
                            b.if_(near | math::log(u).lt(bound), || {
                                result.set(d * v);
                                open.set(b.u32(0));
                            });
                        });
                    },
                );
                b.if_(is_small, || {
                    let boost = math::pow(self.uniform(&uniforms), 1.0 / alpha);
                    result.set(result.get() * boost);
                });
            },
        );
        result.get()
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "counter_gamma"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let (key, counter) = p.state;
            let stream = Stream {
                b,
                key,
                first: skipped(counter, i.cast(ScalarType::U64) * COUNTERS),
                drawn: b.var(b.u32(0)),
                is_wide: accumulator(self.out) == DType::F64,
            };
            let which = i / p.samples;
            let sample = stream.gamma(p.alpha.load(which));
            p.out.store(which + (i - which * p.samples) * p.alphas, sample);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (stored, index) in [(false, ScalarType::U32), (true, ScalarType::U64)] {
            for out in [DType::F16, DType::BF16, DType::F32, DType::F64] {
                accepted(&Spec { out, index, stored }.build());
            }
        }
    }
}
