//! Random permutations.

use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::philox::{Source, philox};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Rounds of the network.
pub const ROUNDS: u32 = 6;

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub dtype: DType,
    pub stored: bool,
}

parameters! {
    pub Spec as s => Arguments, Parameters {
        out: Output = s.dtype,
        source: Source = s.stored,
        n: U32,
        /// Half the bits of an element's number.
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
