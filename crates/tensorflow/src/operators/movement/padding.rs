//! Padding by a number, and by reflection.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, FLOATS};
use crate::operators::common::regions::{copy, copy_regions, fill, reversed};
use crate::require;
use dml_compute::pointwise::arithmetic::ADD;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::{Dims, Scalar, View};

/// The elements before and after each dimension, from a host input of `[rank, 2]`.
fn paddings(call: &Call, input: usize, rank: usize) -> Result<Vec<[i64; 2]>> {
    let shape = call.sizes(input)?;
    require!(matches!(shape[..], [_, 2]), "paddings must be a matrix with 2 columns: {:?}", shape.as_slice());
    require!(
        shape[0] == rank as i64,
        "The first dimension of paddings must be the rank of inputs [{rank}, 2], got {:?}",
        shape.as_slice()
    );
    let numbers = call.host_ints(input)?;
    let pairs: Vec<[i64; 2]> = numbers.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
    require!(pairs.iter().flatten().all(|&n| n >= 0), "Paddings must be non-negative: {:?}", numbers.as_slice());
    Ok(pairs)
}

/// The sizes with paddings.
pub fn padded(sizes: &[i64], paddings: &[[i64; 2]]) -> Dims {
    sizes.iter().zip(paddings).map(|(&n, [before, after])| n + before + after).collect()
}

/// The part of a padded tensor that is not padding.
pub fn inside(t: &View, paddings: &[[i64; 2]]) -> View {
    paddings
        .iter()
        .enumerate()
        .fold(t.clone(), |t, (d, [before, after])| t.narrow(d, *before, t.sizes[d] - before - after))
}

/// Pads input 0 by a number.
fn pad(call: &Call, value: Scalar) -> Result<()> {
    let input = call.input(0)?;
    let paddings = paddings(call, 1, input.dim())?;
    let sizes = padded(&input.sizes, &paddings);
    if sizes == input.sizes {
        return call.pass_on(0, 0, &sizes);
    }
    let out = call.output(0, &sizes)?;
    fill(call, &out, value)?;
    copy(call, &input, &inside(&out, &paddings))
}

/// The reflected part of a dimension.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    Before,
    Middle,
    After,
}

/// What a part of the result reads along a dimension of `n` elements: the position in the result,
/// the position in the input, and the length. The edge is repeated unless `offset` is 1.
fn reflected(part: Part, n: i64, [before, after]: [i64; 2], offset: i64) -> [i64; 3] {
    match part {
        Part::Before => [0, offset, before],
        Part::Middle => [before, 0, n],
        Part::After => [before + n, n - offset - after, after],
    }
}

/// 1 if the edge is not repeated, else 0.
fn edge_offset(attributes: &Attributes) -> Result<i64> {
    match attributes.string("mode")?.as_str() {
        "REFLECT" => Ok(1),
        "SYMMETRIC" => Ok(0),
        mode => Err(Error::InvalidArgument(format!("mode must be either REFLECT or SYMMETRIC, not {mode}"))),
    }
}

/// Whether paddings are no longer than what they reflect.
fn check_reflection(sizes: &[i64], paddings: &[[i64; 2]], offset: i64) -> Result<()> {
    for (&n, pair) in sizes.iter().zip(paddings) {
        require!(
            pair.iter().all(|&p| p <= (n - offset).max(0)),
            "paddings must be no greater than the dimension size: {pair:?} greater than {}",
            n - offset
        );
    }
    Ok(())
}

/// `MirrorPad`.
fn mirror_pad(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let offset = edge_offset(attributes)?;
    Ok(move |call: &Call| {
        let input = call.input(0)?;
        let paddings = paddings(call, 1, input.dim())?;
        check_reflection(&input.sizes, &paddings, offset)?;
        let sizes = padded(&input.sizes, &paddings);
        if sizes == input.sizes {
            return call.pass_on(0, 0, &sizes);
        }
        let out = call.output(0, &sizes)?;
        // Each dimension divides the result in up to three parts.
        let mut parts = vec![(out, input.clone(), Vec::new())];
        for (d, &pair) in paddings.iter().enumerate() {
            let divide = |(out, input, kinds): &(View, View, Vec<Part>), part: Part| {
                let [to, from, length] = reflected(part, input.sizes[d], pair, offset);
                let kinds: Vec<Part> = kinds.iter().copied().chain([part]).collect();
                (out.narrow(d, to, length), input.narrow(d, from, length), kinds)
            };
            parts = parts
                .iter()
                .flat_map(|whole| [Part::Before, Part::Middle, Part::After].map(|part| divide(whole, part)))
                .filter(|(out, ..)| out.numel() > 0)
                .collect();
        }
        let regions = parts.into_iter().map(|(out, input, kinds)| reversed(&input, out, |d| kinds[d] != Part::Middle));
        copy_regions(call, regions.collect())
    })
}

/// `MirrorPadGrad`.
fn mirror_pad_gradient(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let offset = edge_offset(attributes)?;
    Ok(move |call: &Call| {
        let mut gradient = call.input(0)?;
        let paddings = paddings(call, 1, gradient.dim())?;
        let sizes: Dims = gradient.sizes.iter().zip(&paddings).map(|(&n, [a, b])| n - a - b).collect();
        require!(sizes.iter().all(|&n| n >= 0), "paddings must be less than the dimension size");
        check_reflection(&sizes, &paddings, offset)?;
        let cx = call.cx();
        let padded: Vec<usize> = (0..sizes.len()).filter(|&d| paddings[d] != [0, 0]).collect();
        let out = call.output(0, &sizes)?;
        if padded.is_empty() {
            return copy(call, &gradient, &out);
        }
        // One dimension after the other: what lies in its padding is added to what it reflects.
        for (i, &d) in padded.iter().enumerate() {
            let mut shape = gradient.sizes.clone();
            shape[d] = sizes[d];
            let is_last = i + 1 == padded.len();
            let next = if is_last { out.clone() } else { cx.empty(out.dtype, &shape)? };
            copy(call, &gradient.narrow(d, paddings[d][0], sizes[d]), &next)?;
            for part in [Part::Before, Part::After] {
                let [from, to, length] = reflected(part, sizes[d], paddings[d], offset);
                let piece = gradient.narrow(d, from, length);
                if piece.numel() == 0 {
                    continue;
                }
                let turned = cx.empty(out.dtype, &piece.sizes)?;
                copy_regions(call, vec![reversed(&piece, turned.clone(), |dim| dim == d)])?;
                let place = next.narrow(d, to, length);
                let operands = [Input::Tensor(place.clone()), Input::Tensor(turned)];
                kernel::run(&cx, &ADD, &[&place], &operands, out.dtype)?;
            }
            gradient = next;
        }
        Ok(())
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Pad", |call: &Call| pad(call, Scalar::Int(0)))
            .of("T", ALL)
            .on_host(&["paddings"])
            .int32_on_host(&["input", "paddings", "output"]),
        Operator::plain("PadV2", |call: &Call| {
            let value = call.host_number(2)?;
            pad(call, value)
        })
        .of("T", ALL)
        .on_host(&["paddings", "constant_values"])
        .int32_on_host(&["input", "paddings", "constant_values", "output"]),
        Operator::new("MirrorPad", mirror_pad).of("T", ALL).on_host(&["paddings"]),
        Operator::new("MirrorPadGrad", mirror_pad_gradient).of("T", FLOATS).on_host(&["paddings"]),
    ]
}
