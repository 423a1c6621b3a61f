//! Places of numbers among sorted ones.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{BINCOUNT_WEIGHTS, INDICES, REALS_AND_I32};
use crate::operators::common::regions::fill;
use crate::require;
use dml_compute::movement::copy::cast;
use dml_compute::sorting::search::search;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

/// For each of input 1, the number of elements of the same row of input 0 that are below it, or not
/// above it if `right`.
fn bound(call: &Call, right: bool) -> Result<()> {
    let (sorted, values) = (call.input(0)?, call.input(1)?);
    require!(sorted.dim() == 2 && values.dim() == 2, "sorted_inputs and values must be matrices");
    require!(sorted.sizes[0] == values.sizes[0], "Leading dim_size of both tensors must match.");
    let out = call.output(0, &values.sizes)?;
    find(call, &sorted, &values, &out, right)
}

fn find(call: &Call, sorted: &View, values: &View, out: &View, right: bool) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if sorted.numel() == 0 {
        return fill(call, out, Scalar::Int(0));
    }
    Ok(search(&call.cx(), sorted, values, None, right, out)?)
}

/// `Bucketize`: the number of boundaries that are not above a number.
fn bucketize(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let boundaries = attributes.floats("boundaries")?;
    require!(boundaries.is_sorted(), "Expected sorted boundaries");
    Ok(move |call: &Call| {
        let (cx, values) = (call.cx(), call.input(0)?);
        let out = call.output(0, &values.sizes)?;
        // Integers are compared as float32, as float32's boundaries are.
        let dtype = if values.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let row = cx.empty(DType::F32, &[boundaries.len() as i64])?;
        if !boundaries.is_empty() {
            let bytes: Vec<u8> = boundaries.iter().flat_map(|x| x.to_le_bytes()).collect();
            cx.upload(row.data, &bytes)?;
        }
        find(call, &cast(&cx, &row, dtype)?, &cast(&cx, &values, dtype)?, &out, true)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("LowerBound", |call: &Call| bound(call, false)).of("T", REALS_AND_I32).of("out_type", INDICES),
        Operator::plain("UpperBound", |call: &Call| bound(call, true)).of("T", REALS_AND_I32).of("out_type", INDICES),
        Operator::new("Bucketize", bucketize).of("T", BINCOUNT_WEIGHTS),
    ]
}
