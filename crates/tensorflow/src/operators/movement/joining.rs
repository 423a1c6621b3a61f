//! Joining tensors along an existing or a new dimension.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::axes::dimension;
use crate::operators::common::dtypes::ALL;
use crate::operators::common::regions::{Region, copy_regions, spliced};
use crate::require;
use dml_compute::View;

/// The concatenation of the inputs `first..first + count` along an axis.
fn concatenate(call: &Call, first: usize, count: usize, axis: i64) -> Result<()> {
    let parts: Vec<View> = (first..first + count).map(|i| call.input(i)).collect::<Result<_>>()?;
    let shape = &parts[0].sizes;
    let rank = shape.len();
    let Some(dim) = dimension(axis, rank) else {
        require!(
            false,
            "ConcatOp : Expected concatenating dimensions in the range [{}, {rank}), but got {axis}",
            -(rank as i64)
        );
        return Ok(());
    };
    for (i, part) in parts.iter().enumerate() {
        let fits = part.dim() == rank && (0..rank).all(|d| d == dim || part.sizes[d] == shape[d]);
        require!(
            fits,
            "ConcatOp : Dimensions of inputs should match: shape[0] = {:?} vs. shape[{i}] = {:?}",
            shape.as_slice(),
            part.sizes.as_slice()
        );
    }
    let mut sizes = shape.clone();
    sizes[dim] = parts.iter().map(|part| part.sizes[dim]).sum();
    if let [_] = parts[..] {
        return call.pass_on(first, 0, &sizes);
    }
    let out = call.output(0, &sizes)?;
    let mut start = 0;
    let regions = parts.into_iter().map(|part| {
        let n = part.sizes[dim];
        start += n;
        Region::whole(out.narrow(dim, start - n, n), part)
    });
    copy_regions(call, regions.collect())
}

/// `Pack`.
fn pack(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let axis = attributes.int("axis")?;
    Ok(move |call: &Call| {
        let parts: Vec<View> = (0..call.inputs()).map(|i| call.input(i)).collect::<Result<_>>()?;
        let shape = &parts[0].sizes;
        let rank = shape.len() + 1;
        let Some(dim) = dimension(axis, rank) else {
            require!(false, "axis = {axis} not in [{}, {rank})", -(rank as i64));
            return Ok(());
        };
        for (i, part) in parts.iter().enumerate() {
            require!(
                part.sizes == *shape,
                "Shapes of all inputs must match: values[0].shape = {:?} != values[{i}].shape = {:?}",
                shape.as_slice(),
                part.sizes.as_slice()
            );
        }
        let sizes = spliced(shape, dim, dim, &[parts.len() as i64]);
        let out = call.output(0, &sizes)?;
        let strides = spliced(&out.strides, dim, dim + 1, &[]);
        let regions = parts.iter().enumerate().map(|(i, part)| {
            let place = out.as_strided(shape, &strides, i as i64 * out.strides[dim]);
            Region::whole(place, part.clone())
        });
        copy_regions(call, regions.collect())
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("ConcatV2", |call: &Call| {
            let count = call.inputs() - 1;
            concatenate(call, 0, count, call.host_number(count)?.to_i64())
        })
        .of("T", ALL)
        .on_host(&["axis"]),
        Operator::plain("Concat", |call: &Call| concatenate(call, 1, call.inputs() - 1, call.host_number(0)?.to_i64()))
            .of("T", ALL)
            .on_host(&["concat_dim"]),
        Operator::new("Pack", pack).of("T", ALL).int32_on_host(&["values", "output"]),
    ]
}
