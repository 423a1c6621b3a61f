//! Blocks of images moved to channels or to the batch, and back.

use super::padding::{inside, padded};
use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL;
use crate::operators::common::regions::{copy, fill, reshaped};
use crate::require;
use dml_compute::{Dims, Scalar, View};

/// Copies a tensor, regarded as one of the sizes `as_sizes`, to `out` in another order of
/// dimensions.
fn rearrange(call: &Call, t: &View, as_sizes: &[i64], order: &[usize], out: &View) -> Result<()> {
    let from = reshaped(t, as_sizes).permute(order);
    copy(call, &from, &reshaped(out, &from.sizes))
}

/// The block size of a node, and whether channels come last.
fn block_and_format(attributes: &Attributes) -> Result<(i64, bool)> {
    let block = attributes.int("block_size")?;
    require!(block > 1, "Block size should be > 1, but was: {block}");
    match attributes.string("data_format")?.as_str() {
        "NHWC" => Ok((block, true)),
        "NCHW" => Ok((block, false)),
        format => Err(Error::Unimplemented(format!("data format {format}"))),
    }
}

/// `[batch, height, width, channels]` of an image.
fn image(t: &View, channels_last: bool) -> Result<[i64; 4]> {
    require!(t.dim() == 4, "Input rank should be: 4 instead of: {}", t.dim());
    let n = &t.sizes;
    Ok(if channels_last { [n[0], n[1], n[2], n[3]] } else { [n[0], n[2], n[3], n[1]] })
}

/// `SpaceToDepth`.
fn space_to_depth(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let (b, channels_last) = block_and_format(attributes)?;
    Ok(move |call: &Call| {
        let input = call.input(0)?;
        let [n, h, w, c] = image(&input, channels_last)?;
        require!(h % b == 0 && w % b == 0, "Image width {w} and height {h} should be divisible by block_size: {b}");
        let (h, w) = (h / b, w / b);
        if channels_last {
            let out = call.output(0, &[n, h, w, c * b * b])?;
            return rearrange(call, &input, &[n, h, b, w, b, c], &[0, 1, 3, 2, 4, 5], &out);
        }
        let out = call.output(0, &[n, c * b * b, h, w])?;
        rearrange(call, &input, &[n, c, h, b, w, b], &[0, 3, 5, 1, 2, 4], &out)
    })
}

/// `DepthToSpace`.
fn depth_to_space(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let (b, channels_last) = block_and_format(attributes)?;
    Ok(move |call: &Call| {
        let input = call.input(0)?;
        let [n, h, w, c] = image(&input, channels_last)?;
        require!(c % (b * b) == 0, "Input depth dimension {c} should be divisible by: {}", b * b);
        let c = c / (b * b);
        if channels_last {
            let out = call.output(0, &[n, h * b, w * b, c])?;
            return rearrange(call, &input, &[n, h, w, b, b, c], &[0, 1, 3, 2, 4, 5], &out);
        }
        let out = call.output(0, &[n, c, h * b, w * b])?;
        rearrange(call, &input, &[n, b, b, c, h, w], &[0, 3, 4, 1, 5, 2], &out)
    })
}

/// The blocks, and the pairs of paddings or crops, of a call: from its inputs, or from an attribute
/// for the first two dimensions.
fn blocks_and_margins(call: &Call, input: &View, block_size: Option<i64>) -> Result<(Dims, Vec<[i64; 2]>)> {
    let (blocks, margins) = match block_size {
        Some(b) => (Dims::from_slice(&[b, b]), 1),
        None => (call.host_ints(1)?, 2),
    };
    require!(block_size.is_none() || input.dim() == 4, "Input rank should be: 4 instead of {}", input.dim());
    let shape = call.sizes(margins)?;
    require!(
        shape.as_slice() == [blocks.len() as i64, 2],
        "paddings or crops should have shape [{}, 2] instead of {:?}",
        blocks.len(),
        shape.as_slice()
    );
    require!(input.dim() > blocks.len(), "Input rank should be >= {} instead of {}", blocks.len() + 1, input.dim());
    require!(blocks.iter().all(|&b| b >= 1), "All values in block_shape must be positive, got {:?}", blocks.as_slice());
    let margins = call.host_ints(margins)?;
    require!(margins.iter().all(|&n| n >= 0), "Paddings and crops must be non-negative: {:?}", margins.as_slice());
    Ok((blocks, margins.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()))
}

/// The margins of all dimensions, given those from the second one on.
fn margins_of_all(margins: &[[i64; 2]], rank: usize) -> Vec<[i64; 2]> {
    let mut all = vec![[0, 0]; rank];
    all[1..=margins.len()].copy_from_slice(margins);
    all
}

/// `SpaceToBatch` and `SpaceToBatchND`.
fn space_to_batch(call: &Call, block_size: Option<i64>) -> Result<()> {
    let input = call.input(0)?;
    let (blocks, margins) = blocks_and_margins(call, &input, block_size)?;
    let (count, rank) = (blocks.len(), input.dim());
    let margins = margins_of_all(&margins, rank);
    let sizes = padded(&input.sizes, &margins);
    for (d, &b) in blocks.iter().enumerate() {
        require!(sizes[d + 1] % b == 0, "padded_shape[{d}]={} is not divisible by block_shape[{d}]={b}", sizes[d + 1]);
    }
    let rest = &sizes[count + 1..];
    let mut results = sizes.clone();
    results[0] *= blocks.iter().product::<i64>();
    for (d, &b) in blocks.iter().enumerate() {
        results[d + 1] /= b;
    }
    let out = call.output(0, &results)?;
    let whole = if sizes == input.sizes {
        input
    } else {
        let whole = call.cx().empty(input.dtype, &sizes)?;
        fill(call, &whole, Scalar::Int(0))?;
        copy(call, &input, &inside(&whole, &margins))?;
        whole
    };
    // `[batch, (rows of blocks, rows of a block).., rest]`.
    let mut apart = Dims::from_slice(&sizes[..1]);
    for (d, &b) in blocks.iter().enumerate() {
        apart.extend([sizes[d + 1] / b, b]);
    }
    apart.push(rest.iter().product());
    let within = (0..count).map(|d| 2 * d + 2);
    let outside = (0..count).map(|d| 2 * d + 1);
    let order: Vec<usize> = within.chain([0]).chain(outside).chain([2 * count + 1]).collect();
    rearrange(call, &whole, &apart, &order, &out)
}

/// `BatchToSpace` and `BatchToSpaceND`.
fn batch_to_space(call: &Call, block_size: Option<i64>) -> Result<()> {
    let input = call.input(0)?;
    let (blocks, margins) = blocks_and_margins(call, &input, block_size)?;
    let (count, rank) = (blocks.len(), input.dim());
    let product: i64 = blocks.iter().product();
    require!(
        input.sizes[0] % product == 0,
        "Input batch dimension ({}) is not divisible by product of block sizes ({product})",
        input.sizes[0]
    );
    let mut sizes = input.sizes.clone();
    sizes[0] /= product;
    for (d, &b) in blocks.iter().enumerate() {
        sizes[d + 1] *= b;
    }
    let margins = margins_of_all(&margins, rank);
    let results: Dims = sizes.iter().zip(&margins).map(|(n, [a, b])| n - a - b).collect();
    require!(results.iter().all(|&n| n >= 0), "cropped_shape must be non-negative: {:?}", results.as_slice());
    let out = call.output(0, &results)?;
    // `[blocks.., batch, (rows of blocks).., rest]`.
    let mut apart = blocks.clone();
    apart.push(sizes[0]);
    apart.extend_from_slice(&input.sizes[1..=count]);
    apart.push(input.sizes[count + 1..].iter().product());
    let pairs = (0..count).flat_map(|d| [count + 1 + d, d]);
    let order: Vec<usize> = [count].into_iter().chain(pairs).chain([2 * count + 1]).collect();
    if results == sizes {
        return rearrange(call, &input, &apart, &order, &out);
    }
    let whole = call.cx().empty(input.dtype, &sizes)?;
    rearrange(call, &input, &apart, &order, &whole)?;
    copy(call, &inside(&whole, &margins), &out)
}

/// An operator whose blocks are an attribute.
fn square(
    name: &'static str,
    margins: &'static [&'static str],
    kernel: fn(&Call, Option<i64>) -> Result<()>,
) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let block = attributes.int("block_size")?;
        require!(block > 1, "Block size should be > 1: {block}");
        Ok(move |call: &Call| kernel(call, Some(block)))
    })
    .of("T", ALL)
    .on_host(margins)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::new("SpaceToDepth", space_to_depth).of("T", ALL),
        Operator::new("DepthToSpace", depth_to_space).of("T", ALL),
        square("SpaceToBatch", &["paddings"], space_to_batch),
        square("BatchToSpace", &["crops"], batch_to_space),
        Operator::plain("SpaceToBatchND", |call: &Call| space_to_batch(call, None))
            .of("T", ALL)
            .on_host(&["block_shape", "paddings"]),
        Operator::plain("BatchToSpaceND", |call: &Call| batch_to_space(call, None))
            .of("T", ALL)
            .on_host(&["block_shape", "crops"]),
    ]
}
