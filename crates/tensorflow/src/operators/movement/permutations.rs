//! Transposes.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL_AND_I32;
use crate::operators::common::regions::copy;
use crate::require;

/// The transpose of input 0 by the permutation of input 1; the elements' conjugates if wanted.
fn transpose(call: &Call, conjugate: bool) -> Result<()> {
    let (mut input, order) = (call.input(0)?, call.host_ints(1)?);
    let rank = input.dim();
    require!(
        order.len() == rank,
        "transpose expects a vector of size {rank}. But input(1) is a vector of size {}",
        order.len()
    );
    let mut dims = Vec::with_capacity(rank);
    for &axis in &order {
        let dim = if axis < 0 { axis + rank as i64 } else { axis };
        require!((0..rank as i64).contains(&dim), "{axis} is out of range [0 .. {rank})");
        require!(!dims.contains(&(dim as usize)), "{axis} is missing from {:?}", order.as_slice());
        dims.push(dim as usize);
    }
    let conjugate = conjugate && input.dtype.is_complex();
    let moves = dims.iter().copied().filter(|&d| input.sizes[d] != 1);
    if !conjugate && (moves.is_sorted() || input.numel() == 0) {
        let sizes: Vec<i64> = dims.iter().map(|&d| input.sizes[d]).collect();
        return call.pass_on(0, 0, &sizes);
    }
    input.conjugate = conjugate;
    let input = input.permute(&dims);
    let out = call.output(0, &input.sizes)?;
    copy(call, &input, &out)
}

fn operator(name: &'static str, conjugate: bool) -> Operator {
    Operator::plain(name, move |call: &Call| transpose(call, conjugate)).of("T", ALL_AND_I32).on_host(&["perm"])
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![operator("Transpose", false), operator("ConjugateTranspose", true)]
}
