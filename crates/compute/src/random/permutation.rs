//! Random permutations.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::Generator;
use crate::random::philox::{Source, draw, is_stored, philox};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Rounds of the network.
const ROUNDS: u32 = 6;

/// Writes a permutation of `0..n`, `n < 2^29`, to the vector `out` of any stride. Element `i` is
/// `i` encrypted by a Feistel network on the smallest even number of bits that holds `n`, repeated
/// until it is below `n` ("cycle walking": J. Black and P. Rogaway, "Ciphers with arbitrary finite
/// domains", 2002).
pub fn permutation(cx: &Context, generator: Option<&Generator>, n: i64, out: &View) -> Result<()> {
    let source = draw(cx, generator, u64::from(ROUNDS))?;
    if n == 0 {
        return Ok(());
    }
    let half_bits = (64 - (n as u64 - 1).leading_zeros()).div_ceil(2).max(1);
    let spec = Spec { dtype: out.dtype, stored: is_stored(source) };
    let arguments = Arguments { out, source, n: n as u32, half_bits, stride: out.strides[0] as u32 };
    cx.run_threads(&spec, &arguments, n as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    dtype: DType,
    stored: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        source: Source = s.stored,
        n: U32,
        /// Half the number of bits of an index.
        half_bits: U32,
        stride: U32,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "randperm"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (words, half_bits) = (p.source, p.half_bits);
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.n), || {
            let mask = (b.u32(1) << half_bits) - 1;
            let x = b.var(i);
            let walking = b.var(b.bool(true));
            b.while_(
                || walking.get(),
                || {
                    let (left, right) = (b.var(x.get() >> half_bits), b.var(x.get() & mask));
                    b.for_(0, b.u32(ROUNDS), 1, |round| {
                        let counter = [words[2] + round, words[3], right.get(), b.u32(0x7065_726d)];
                        let mixed = philox(b, counter, [words[0], words[1]])[0];
                        let next = (left.get() ^ mixed) & mask;
                        left.set(right.get());
                        right.set(next);
                    });
                    x.set((left.get() << half_bits) | right.get());
                    walking.set(x.get().ge(p.n));
                },
            );
            p.out.store(i * p.stride, x.get());
        });
    }
}
