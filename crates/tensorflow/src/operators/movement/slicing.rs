//! `Slice`: a block of a tensor.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL;
use crate::operators::common::regions::copy;
use crate::require;

fn slice(call: &Call) -> Result<()> {
    let (input, begin, mut size) = (call.input(0)?, call.host_ints(1)?, call.host_ints(2)?);
    let rank = input.dim();
    require!(
        begin.len() == rank && size.len() == rank,
        "Expected begin and size arguments to be 1-D tensors of size {rank}, but got shapes [{}] and [{}] instead.",
        begin.len(),
        size.len()
    );
    let mut part = input.clone();
    for d in 0..rank {
        let (first, whole) = (begin[d], input.sizes[d]);
        if size[d] == -1 {
            size[d] = whole - first;
        }
        require!((0..=whole).contains(&first), "Expected begin[{d}] in [0, {whole}], but got {first}");
        require!(
            (0..=whole - first).contains(&size[d]),
            "Expected size[{d}] in [0, {}], but got {}",
            whole - first,
            size[d]
        );
        part = part.narrow(d, first, size[d]);
    }
    if part.sizes == input.sizes {
        return call.pass_on(0, 0, &input.sizes);
    }
    let out = call.output(0, &part.sizes)?;
    copy(call, &part, &out)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::plain("Slice", slice).of("T", ALL).on_host(&["begin", "size"])]
}
