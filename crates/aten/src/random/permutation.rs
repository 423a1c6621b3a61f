//! Random permutations.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::random::Generator;
use dml_compute::random::permutation::permutation;
use dml_compute::view::layout;

operators! {
    randperm(n, generator, out) {
        "aten::randperm.generator_out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn randperm(call: &mut Call, n: i64, generator: Option<Generator>, out: Out) -> Result<()> {
    check!(n >= 0, Runtime, "n must be non-negative, got {n}");
    check!(
        n < layout::MAX_INDEX_32,
        NotImplemented,
        "randperm of {n} elements is not supported on dml; the limit is {}",
        layout::MAX_INDEX_32 - 1
    );
    let mut out = out.tensor()?.clone();
    if out.sizes.as_slice() != [n] {
        call.host.resize(&mut out, &[n], &[1])?;
    }
    permutation(call, generator.as_ref(), n, &out)?;
    call.ret(out);
    Ok(())
}
