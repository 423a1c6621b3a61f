//! Random permutations.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::random::Generator;
use dml_compute::random::permutation::{Arguments, ROUNDS, Spec};
use dml_compute::random::philox::{draw, is_stored};
use dml_compute::view::layout;

operators! {
    randperm(n, generator, out) {
        "aten::randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Element `i` is `i` encrypted by a Feistel network on the smallest even number of bits that holds
/// `n`, repeated until it lands below `n` ("cycle walking": J. Black and P. Rogaway, "Ciphers with
/// arbitrary finite domains", 2002).
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
