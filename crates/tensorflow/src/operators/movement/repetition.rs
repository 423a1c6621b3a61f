//! Repetition of tensors along their dimensions.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, ALL_AND_I32, NUMBERS_AND_I32};
use crate::operators::common::regions::{copy, reshaped};
use crate::operators::reduction::reductions::accumulate;
use crate::require;
use dml_compute::Dims;
use dml_compute::reduction::Axes;
use dml_compute::reduction::sum::Kind;

/// `Tile`.
fn tile(call: &Call) -> Result<()> {
    let (input, multiples) = (call.input(0)?, call.host_ints(1)?);
    require!(
        multiples.len() == input.dim(),
        "Expected multiples argument to be a vector of length {} but got length {}",
        input.dim(),
        multiples.len()
    );
    require!(multiples.iter().all(|&n| n >= 0), "Expected multiples >= 0, but got {:?}", multiples.as_slice());
    let sizes: Dims = input.sizes.iter().zip(&multiples).map(|(n, times)| n * times).collect();
    if sizes == input.sizes {
        return call.pass_on(0, 0, &sizes);
    }
    let out = call.output(0, &sizes)?;
    // Each dimension of the result is two: the repetitions, and the input's own.
    let mut apart = (Dims::new(), Dims::new(), Dims::new());
    for d in 0..input.dim() {
        apart.0.extend([multiples[d], input.sizes[d]]);
        apart.1.extend([input.sizes[d] * out.strides[d], out.strides[d]]);
        apart.2.extend([0, input.strides[d]]);
    }
    let (sizes, to, from) = apart;
    copy(call, &input.as_strided(&sizes, &from, 0), &out.as_strided(&sizes, &to, 0))
}

/// `TileGrad`, of graphs of old versions: the sums over the repetitions.
fn tile_grad(call: &Call) -> Result<()> {
    let (grad, multiples) = (call.input(0)?, call.host_ints(1)?);
    require!(
        multiples.len() == grad.dim(),
        "Expected multiples argument to be a vector of length {} but got length {}",
        grad.dim(),
        multiples.len()
    );
    let divides = |(&n, &times): (&i64, &i64)| times > 0 && n % times == 0;
    require!(
        grad.sizes.iter().zip(&multiples).all(divides),
        "Expected input_dim divisible by multiples, but got {:?} and {:?}",
        grad.sizes.as_slice(),
        multiples.as_slice()
    );
    let sizes: Dims = grad.sizes.iter().zip(&multiples).map(|(n, times)| n / times).collect();
    if sizes == grad.sizes {
        return call.pass_on(0, 0, &sizes);
    }
    let out = call.output(0, &sizes)?;
    let apart: Dims = sizes.iter().zip(&multiples).flat_map(|(&n, &times)| [times, n]).collect();
    let repetitions: Dims = (0..sizes.len() as i64).map(|d| 2 * d).collect();
    let axes = Axes::of_dims(&repetitions, apart.len(), false);
    accumulate(call, Kind::Sum, &reshaped(&grad, &apart), &out, axes)
}

/// `BroadcastTo`.
fn broadcast_to(call: &Call) -> Result<()> {
    let (input, sizes) = (call.input(0)?, call.host_ints(1)?);
    let fits = sizes.len() >= input.dim()
        && input.sizes.iter().rev().zip(sizes.iter().rev()).all(|(&n, &m)| n == m || n == 1)
        && sizes.iter().all(|&n| n >= 0);
    require!(
        fits,
        "Unable to broadcast tensor of shape {:?} to tensor of shape {:?}",
        input.sizes.as_slice(),
        sizes.as_slice()
    );
    if sizes == input.sizes {
        return call.pass_on(0, 0, &sizes);
    }
    let out = call.output(0, &sizes)?;
    copy(call, &input, &out)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Tile", tile).of("T", ALL_AND_I32).on_host(&["multiples"]),
        Operator::plain("TileGrad", tile_grad).of("T", NUMBERS_AND_I32).on_host(&["multiples"]),
        Operator::plain("BroadcastTo", broadcast_to)
            .of("T", ALL)
            .on_host(&["shape"])
            .int32_on_host(&["input", "shape", "output"]),
    ]
}
