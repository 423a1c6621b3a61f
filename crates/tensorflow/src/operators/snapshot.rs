//! `Snapshot`: what Grappler makes of a product with 1 and the like. A variable may change later,
//! so it is a copy unless nobody else has the tensor.

use super::dtypes::ALL;
use super::{Call, Operator};
use crate::error::Result;
use dml_compute::movement::copy;

fn snapshot(call: &Call) -> Result<()> {
    let input = call.input(0)?;
    let out = call.output_over(&[0], 0, &input.sizes)?;
    Ok(if out.data != input.data {
        copy::device_copy(&call.cx(), &input, &out)?
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::plain("Snapshot", snapshot).of("T", ALL)]
}
