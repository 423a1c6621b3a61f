//! Reading slices of a tensor or of a variable by index. For an index out of range see
//! [`index_access`](crate::operators::common::index_access).

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::axes::dimension;
use crate::operators::common::dtypes::{ALL, ALL_AND_I32, INDICES};
use crate::operators::common::index_access::{Places, read};
use crate::operators::common::regions::spliced;
use crate::require;
use dml_compute::primitives::indexed_access::Selector;
use dml_compute::{Dims, View};

/// A view of an index tensor with the sizes of an iteration, in which the index tensor's dimensions
/// from `from` on begin at `at`, and those before are the iteration's first.
fn spread(indices: &View, sizes: &[i64], from: usize, at: usize) -> View {
    let mut strides = Dims::from_elem(0, sizes.len());
    for (d, &stride) in indices.strides.iter().enumerate() {
        strides[if d < from { d } else { at + d - from }] = stride;
    }
    indices.as_strided(sizes, &strides, 0)
}

/// The slices of `params` along dimension `dim` with these indices, for each element of the first
/// `batch` dimensions.
fn gather(call: &Call, params: &View, indices: &View, dim: usize, batch: usize) -> Result<()> {
    let sizes = spliced(&params.sizes, dim, dim + 1, &indices.sizes[batch..]);
    let out = call.output(0, &sizes)?;
    let zeros = Dims::from_elem(0, indices.dim() - batch);
    let strides = spliced(&params.strides, dim, dim + 1, &zeros);
    let index = spread(indices, &sizes, batch, dim);
    let selector = Selector { index, size: params.sizes[dim], stride: params.strides[dim], dim };
    read(call, params, &strides, &[selector], &out)
}

/// The dimensions of the batch, given as an attribute, of two tensors.
fn batch_dims(given: i64, params: &View, indices: &View) -> Result<usize> {
    let rank = indices.dim() as i64;
    let batch = if given < 0 { given + rank } else { given };
    require!((0..=rank).contains(&batch), "Expected batch_dims in the range [-{rank}, {rank}], but got {given}");
    let batch = batch as usize;
    require!(batch <= params.dim(), "batch_dims ({batch}) must be less than rank(params) ({})", params.dim());
    for d in 0..batch {
        require!(
            params.sizes[d] == indices.sizes[d],
            "params.shape[{d}]: {} should be equal to indices.shape[{d}]: {}",
            params.sizes[d],
            indices.sizes[d]
        );
    }
    Ok(batch)
}

/// `GatherV2`.
fn gather_v2(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let batch = attributes.int("batch_dims")?;
    Ok(move |call: &Call| {
        let (params, indices, axis) = (call.input(0)?, call.input(1)?, call.host_number(2)?.to_i64());
        require!(params.dim() >= 1, "params must be at least 1 dimensional");
        let found = dimension(axis, params.dim());
        require!(
            found.is_some(),
            "Shape must be at least rank {} but is rank {}",
            if axis < 0 { -axis } else { axis + 1 },
            params.dim()
        );
        let dim = found.unwrap_or(0);
        let batch = batch_dims(batch, &params, &indices)?;
        require!(batch <= dim, "batch_dims ({batch}) must be less than or equal to axis ({dim})");
        gather(call, &params, &indices, dim, batch)
    })
}

/// `Gather`.
fn gather_v1(call: &Call) -> Result<()> {
    let (params, indices) = (call.input(0)?, call.input(1)?);
    require!(params.dim() >= 1, "params must be at least 1 dimensional");
    gather(call, &params, &indices, 0, 0)
}

/// Slices of `params` whose first dimensions the last dimension of `indices` gives.
fn gather_nd(call: &Call, params: &View, indices: &View) -> Result<()> {
    require!(params.dim() >= 1, "params must be at least a vector");
    require!(indices.dim() >= 1, "indices must be at least a vector");
    let places = Places::of_last_dimension(indices);
    require!(
        places.depth() <= params.dim(),
        "index innermost dimension length must be <= params rank; saw: {} vs. {}",
        places.depth(),
        params.dim()
    );
    let sizes = places.slices(&params.sizes);
    require!(
        params.numel() > 0 || sizes.contains(&0),
        "Requested more than 0 entries, but params is empty.  Params shape: {:?}",
        params.sizes.as_slice()
    );
    places.read(call, params, &call.output(0, &sizes)?)
}

/// `ResourceGather`.
fn resource_gather(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let batch = attributes.int("batch_dims")?;
    Ok(move |call: &Call| {
        let variables = call.lock(&[0], true, true)?;
        let (params, indices) = (variables.tensor(0, true)?, call.input(1)?);
        require!(params.dim() >= 1, "params must be at least 1 dimensional");
        let batch = batch_dims(batch, &params, &indices)?;
        require!(batch < params.dim(), "batch_dims ({batch}) must be less than rank(params) ({})", params.dim());
        gather(call, &params, &indices, batch, batch)
    })
}

/// `ResourceGatherNd`.
fn resource_gather_nd(call: &Call) -> Result<()> {
    let variables = call.lock(&[0], true, true)?;
    gather_nd(call, &variables.tensor(0, true)?, &call.input(1)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("GatherV2", gather_v2).of("Tparams", ALL_AND_I32).of("Tindices", INDICES).on_host(&["axis"]),
        Operator::plain("Gather", gather_v1).of("Tparams", ALL_AND_I32).of("Tindices", INDICES),
        Operator::plain("GatherNd", |call: &Call| gather_nd(call, &call.input(0)?, &call.input(1)?))
            .of("Tparams", ALL_AND_I32)
            .of("Tindices", INDICES),
        Operator::new("ResourceGather", resource_gather)
            .of("dtype", ALL)
            .of("Tindices", INDICES)
            .on_host(&["resource"]),
        Operator::plain("ResourceGatherNd", resource_gather_nd)
            .of("dtype", ALL)
            .of("Tindices", INDICES)
            .on_host(&["resource"]),
    ]
}
