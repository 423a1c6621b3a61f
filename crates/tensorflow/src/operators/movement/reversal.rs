//! Reversal and rotation along dimensions.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::axes::dimension;
use crate::operators::common::dtypes::{ALL, ALL_AND_I32, INDICES};
use crate::operators::common::index_access::read;
use crate::operators::common::regions::{copy_regions, reshaped, reversed};
use crate::require;
use dml_compute::complex::parts::as_bits;
use dml_compute::creation::sequences::{self, Sequence};
use dml_compute::movement::rearrange;
use dml_compute::pointwise::kernel::{self, Input as Operand};
use dml_compute::primitives::indexed_access::Selector;
use dml_compute::{Dims, Scalar};
use dml_kernel::DType;

/// Reverses input 0 along these dimensions.
fn reverse(call: &Call, is_reversed: &[bool]) -> Result<()> {
    let input = call.input(0)?;
    if input.numel() == 0 || (0..input.dim()).all(|d| !is_reversed[d] || input.sizes[d] == 1) {
        return call.pass_on(0, 0, &input.sizes);
    }
    let out = call.output(0, &input.sizes)?;
    copy_regions(call, vec![reversed(&input, out, |d| is_reversed[d])])
}

/// `Reverse`: a flag for each dimension.
fn reverse_flagged(call: &Call) -> Result<()> {
    let (rank, flags) = (call.sizes(0)?.len(), call.host_ints(1)?);
    require!(
        flags.len() == rank,
        "'dims' must have the same number of values as 'input' has dimensions. 'input' has {rank}'dims' has {} values",
        flags.len()
    );
    let flags: Vec<bool> = flags.iter().map(|&flag| flag != 0).collect();
    reverse(call, &flags)
}

/// `ReverseV2`: a list of axes.
fn reverse_listed(call: &Call) -> Result<()> {
    let rank = call.sizes(0)?.len();
    let mut flags = vec![false; rank];
    for &axis in &call.host_ints(1)? {
        let found = dimension(axis, rank);
        require!(found.is_some(), "'axis'[0] = {axis} is out of valid range [0, {rank}");
        let flag = &mut flags[found.unwrap_or(0)];
        require!(!*flag, "axis {axis} specified more than once.");
        *flag = true;
    }
    reverse(call, &flags)
}

/// `Roll`.
fn roll(call: &Call) -> Result<()> {
    let (input, shifts, axes) = (call.input(0)?, call.host_ints(1)?, call.host_ints(2)?);
    let rank = input.dim();
    require!(rank >= 1, "input must be 1-D or higher");
    require!(call.sizes(1)? == call.sizes(2)?, "shift and axis must have the same size");
    let mut total = vec![0i64; rank];
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let found = dimension(axis, rank);
        require!(found.is_some(), "axis {axis} is out of range");
        let d = found.unwrap_or(0);
        let n = input.sizes[d].max(1);
        total[d] = (total[d] + shift.rem_euclid(n)) % n;
    }
    let moved: Vec<(usize, i64)> = total.into_iter().enumerate().filter(|&(_, shift)| shift != 0).collect();
    if moved.is_empty() || input.numel() == 0 {
        return call.pass_on(0, 0, &input.sizes);
    }
    let out = call.output(0, &input.sizes)?;
    Ok(rearrange::rotate(&call.cx(), as_bits(&input), as_bits(&out), &moved)?)
}

dml_compute::functions! {
    /// The position that is read for position `i` of a row whose first `n` elements are reversed.
    REVERSED_POSITION = "reversed_position"(i, n) => i.lt(n).select(n - 1 - i, i);
}

/// `ReverseSequence`: the first elements of each row, as many as input 1 says, are reversed.
fn reverse_sequence(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let [along, batch] = [attributes.int("seq_dim")?, attributes.int("batch_dim")?];
    Ok(move |call: &Call| {
        let (cx, input, lengths) = (call.cx(), call.input(0)?, call.input(1)?);
        let rank = input.dim();
        let (Some(along), Some(batch)) = (dimension(along, rank), dimension(batch, rank)) else {
            require!(false, "seq_dim and batch_dim must be < input rank ({along} and {batch} vs. {rank})");
            return Ok(());
        };
        require!(along != batch, "batch_dim == seq_dim == {along}");
        let [n, rows] = [input.sizes[along], input.sizes[batch]];
        require!(
            lengths.sizes.as_slice() == [rows],
            "Length of seq_lengths != input.dims({batch}), ({:?} vs. {rows})",
            lengths.sizes.as_slice()
        );
        let out = call.output(0, &input.sizes)?;
        if out.numel() == 0 {
            return Ok(());
        }
        let (positions, places) = (cx.empty(DType::I64, &[n])?, cx.empty(DType::I64, &[rows, n])?);
        sequences::write(&cx, Sequence::Arange, &[Scalar::Int(0), Scalar::Int(1)], &positions)?;
        let operands = [Operand::Tensor(positions), Operand::Tensor(reshaped(&lengths, &[rows, 1]))];
        kernel::run(&cx, &REVERSED_POSITION, &[&places], &operands, DType::I64)?;
        let mut index = Dims::from_elem(0, rank);
        (index[batch], index[along]) = (n, 1);
        let mut strides = input.strides.clone();
        strides[along] = 0;
        let index = places.as_strided(&input.sizes, &index, 0);
        let selector = Selector { index, size: n, stride: input.strides[along], dim: along };
        read(call, &input, &strides, &[selector], &out)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Reverse", reverse_flagged)
            .of("T", ALL)
            .on_host(&["dims"])
            .int32_on_host(&["tensor", "dims", "output"]),
        Operator::plain("ReverseV2", reverse_listed)
            .of("T", ALL)
            .on_host(&["axis"])
            .int32_on_host(&["tensor", "axis", "output"]),
        Operator::new("ReverseSequence", reverse_sequence).of("T", ALL).of("Tlen", INDICES),
        Operator::plain("Roll", roll).of("T", ALL_AND_I32).on_host(&["shift", "axis"]),
    ]
}
