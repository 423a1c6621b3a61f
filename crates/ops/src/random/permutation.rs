//! Random permutations.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::random::philox::{declare_source, is_stored, pass, philox, reserve};
use crate::tensor::layout;
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[op("aten::randperm.generator_out", randperm)];

/// `randperm.generator_out(n, generator, out)`: element `i` is `i` encrypted by a Feistel network on the smallest even
/// number of bits that holds `n`, repeated until it lands below `n` ("cycle walking": J. Black and P. Rogaway,
/// "Ciphers with arbitrary finite domains", 2002).
fn randperm(call: &mut Call) -> Result<()> {
    let n = call.int(0)?;
    check!(n >= 0, Runtime, "n must be non-negative, got {n}");
    check!(
        n < layout::SHORT,
        NotImplemented,
        "randperm of {n} elements is not supported on dml; the limit is {}",
        layout::SHORT - 1
    );
    let mut out = call.tensor(2)?.clone();
    if out.sizes.as_slice() != [n] {
        call.host.resize(&mut out, &[n], &[1])?;
    }
    let dtype = out.dtype;
    let keys = 6;
    let source = reserve(call, 1, keys)?;
    if n > 0 {
        let half_bits = (64 - (n as u64 - 1).leading_zeros()).div_ceil(2).max(1);
        let stored = is_stored(source);
        let key = [dtype as u32, u32::from(stored), 0, 0, 0, 0];
        let kernel = call.kernel("randperm", key, || randperm_kernel(dtype, stored))?;
        let launcher = pass(call.launch(kernel).write(&out), source);
        launcher.u32(n as u32).u32(half_bits).u32(out.strides[0] as u32).threads(n as u64)?;
    }
    call.ret(out);
    Ok(())
}

fn randperm_kernel(dtype: DType, stored: bool) -> Kernel {
    let b = Builder::new("randperm", [GROUP, 1, 1]);
    let out = b.pointer("out", dtype);
    let words = declare_source(&b, stored);
    let (n, half_bits, stride) =
        (b.param("n", Scalar::U32), b.param("half_bits", Scalar::U32), b.param("stride", Scalar::U32));
    let i = linear_id(&b, Scalar::U32);
    b.if_(i.lt(n), || {
        let mask = (b.u32(1) << half_bits) - 1;
        let x = b.var(i);
        let walking = b.var(b.bool(true));
        b.while_(
            || walking.get(),
            || {
                let (left, right) = (b.var(x.get() >> half_bits), b.var(x.get() & mask));
                b.for_(0, b.u32(6), 1, |round| {
                    let counter = [words[2] + round, words[3], right.get(), b.u32(0x7065_726d)];
                    let mixed = philox(&b, counter, [words[0], words[1]])[0];
                    let next = (left.get() ^ mixed) & mask;
                    left.set(right.get());
                    right.set(next);
                });
                x.set((left.get() << half_bits) | right.get());
                walking.set(x.get().ge(n));
            },
        );
        out.store(i * stride, x.get());
    });
    b.finish()
}
