//! Splitting tensors along a dimension.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::axes::dimension;
use crate::operators::common::dtypes::ALL;
use crate::operators::common::regions::{Region, copy_regions, spliced};
use crate::require;
use dml_compute::View;

/// The dimension along which a tensor is split.
fn split_dimension(axis: i64, rank: usize) -> Result<usize> {
    dimension(axis, rank).ok_or_else(|| {
        Error::InvalidArgument(format!("-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}"))
    })
}

/// Writes consecutive parts of these lengths to the results.
fn split(call: &Call, value: &View, dim: usize, lengths: &[i64]) -> Result<()> {
    let mut regions = Vec::with_capacity(lengths.len());
    let mut start = 0;
    for (i, &n) in lengths.iter().enumerate() {
        let part = value.narrow(dim, start, n);
        regions.push(Region::whole(call.output(i, &part.sizes)?, part));
        start += n;
    }
    copy_regions(call, regions)
}

/// `Split`.
fn split_evenly(call: &Call) -> Result<()> {
    let (value, axis) = (call.input(1)?, call.host_number(0)?.to_i64());
    let (dim, count) = (split_dimension(axis, value.dim())?, call.outputs() as i64);
    require!(
        value.sizes[dim] % count == 0,
        "Number of ways to split should evenly divide the split dimension, but got split_dim {dim} (size = {}) and \
         num_split {count}",
        value.sizes[dim]
    );
    if count == 1 {
        return call.pass_on(1, 0, &value.sizes);
    }
    let lengths = vec![value.sizes[dim] / count; count as usize];
    split(call, &value, dim, &lengths)
}

/// `SplitV`.
fn split_by_lengths(call: &Call) -> Result<()> {
    let (value, mut lengths, axis) = (call.input(0)?, call.host_ints(1)?, call.host_number(2)?.to_i64());
    require!(
        lengths.len() == call.outputs(),
        "size_splits must have {} elements, got {}",
        call.outputs(),
        lengths.len()
    );
    let dim = split_dimension(axis, value.dim())?;
    let whole = value.sizes[dim];
    let known: i64 = lengths.iter().filter(|&&n| n != -1).sum();
    let open = lengths.iter().filter(|&&n| n == -1).count();
    require!(open <= 1, "There can only be one -1 in the input.");
    require!(lengths.iter().all(|&n| n >= -1), "Split size must be nonnegative, got {:?}", lengths.as_slice());
    require!(
        known == whole || open == 1 && known < whole,
        "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than \
         the size of the input along split_dim if not fully specified. Got: {known}"
    );
    for n in &mut lengths {
        if *n == -1 {
            *n = whole - known;
        }
    }
    if lengths.len() == 1 {
        return call.pass_on(0, 0, &value.sizes);
    }
    split(call, &value, dim, &lengths)
}

/// `Unpack`.
fn unpack(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let axis = attributes.int("axis")?;
    Ok(move |call: &Call| {
        let value = call.input(0)?;
        let rank = value.dim();
        let Some(dim) = dimension(axis, rank) else {
            require!(false, "axis = {axis} not in [{}, {rank})", -(rank as i64));
            return Ok(());
        };
        require!(
            value.sizes[dim] == call.outputs() as i64,
            "Input shape axis {dim} must equal {}, got shape {:?}",
            call.outputs(),
            value.sizes.as_slice()
        );
        let (sizes, strides) = (spliced(&value.sizes, dim, dim + 1, &[]), spliced(&value.strides, dim, dim + 1, &[]));
        let mut regions = Vec::with_capacity(call.outputs());
        for i in 0..call.outputs() {
            let part = value.as_strided(&sizes, &strides, i as i64 * value.strides[dim]);
            regions.push(Region::whole(call.output(i, &sizes)?, part));
        }
        copy_regions(call, regions)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Split", split_evenly).of("T", ALL).on_host(&["split_dim"]),
        Operator::plain("SplitV", split_by_lengths)
            .of("T", ALL)
            .on_host(&["size_splits", "split_dim"])
            .int32_on_host(&["value", "size_splits", "split_dim", "output"]),
        Operator::new("Unpack", unpack).of("T", ALL),
    ]
}
