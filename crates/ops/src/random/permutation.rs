//! Random permutations.

use crate::operator::argument::{Generator, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::philox::{Source, draw, is_stored, philox};
use crate::tensor::layout;
use crate::{check, operators};
use dml_engine::{interface::U32, parameters};
use dml_kernel::{Builder, DType, ScalarType, dense::linear_id};

operators! {
    randperm(n, generator, out) {
        "aten::randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Rounds of the network.
const ROUNDS: u32 = 6;

/// Everything that changes the code.
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
        /// Half the bits of an element's number.
        half_bits: U32,
        stride: U32,
    }
}

/// Element `i` is `i` encrypted by a Feistel network on the smallest even
/// number of bits that holds `n`, repeated until it lands below `n` ("cycle walking": J. Black and P. Rogaway,
/// "Ciphers with arbitrary finite domains", 2002).
fn randperm(call: &mut Call, n: i64, generator: Option<Generator>, out: Out) -> Result<()> {
    check!(n >= 0, Runtime, "n must be non-negative, got {n}");
    check!(
        n < layout::SHORT,
        NotImplemented,
        "randperm of {n} elements is not supported on dml; the limit is {}",
        layout::SHORT - 1
    );
    let mut out = out.tensor()?.clone();
    if out.sizes.as_slice() != [n] {
        call.host.resize(&mut out, &[n], &[1])?;
    }
    let source = draw(call, generator.as_ref(), u64::from(ROUNDS))?;
    if n > 0 {
        let half_bits = (64 - (n as u64 - 1).leading_zeros()).div_ceil(2).max(1);
        let spec = Spec { dtype: out.dtype, stored: is_stored(source) };
        let arguments = Arguments { out: &out, source, n: n as u32, half_bits, stride: out.strides[0] as u32 };
        call.run_threads(&spec, &arguments, n as u64)?;
    }
    call.ret(out);
    Ok(())
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
