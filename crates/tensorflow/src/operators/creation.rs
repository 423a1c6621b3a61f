//! Tensors of one number, and sequences.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, FLOATS_AND_I64};
use crate::operators::common::regions::{copy, fill};
use crate::require;
use dml_compute::Scalar;
use dml_compute::creation::sequences::{self, Sequence};

/// `Fill`.
fn fill_by_value(call: &Call) -> Result<()> {
    let (sizes, value) = (call.host_ints(0)?, call.input(1)?);
    require!(call.sizes(0)?.len() == 1, "dims must be a vector, got shape {:?}", call.sizes(0)?.as_slice());
    require!(value.dim() == 0, "value must be a scalar, got shape {:?}", value.sizes.as_slice());
    require!(sizes.iter().all(|&n| n >= 0), "dims must be nonnegative, got {:?}", sizes.as_slice());
    let out = call.output(0, &sizes)?;
    copy(call, &value, &out)
}

/// A tensor like the input, of one number.
fn like(name: &'static str, value: i64) -> Operator {
    Operator::plain(name, move |call: &Call| {
        let out = call.output_over(&[0], 0, &call.sizes(0)?)?;
        fill(call, &out, Scalar::Int(value))
    })
    .of("T", ALL)
}

/// The number of steps from `start` to below `limit`.
fn steps(start: Scalar, limit: Scalar, delta: Scalar) -> i64 {
    if let (Scalar::Int(start), Scalar::Int(limit), Scalar::Int(delta)) = (start, limit, delta) {
        let distance = i128::from(limit) - i128::from(start);
        return ((distance.abs() + i128::from(delta).abs() - 1) / i128::from(delta).abs()) as i64;
    }
    ((limit.to_f64() - start.to_f64()) / delta.to_f64()).abs().ceil() as i64
}

/// `Range`.
fn range(call: &Call) -> Result<()> {
    let [start, limit, delta] = [call.host_number(0)?, call.host_number(1)?, call.host_number(2)?];
    let [from, to, by] = [start, limit, delta].map(Scalar::to_f64);
    require!(by != 0.0, "Requires delta != 0: {by}");
    require!(by < 0.0 || from <= to, "Requires start <= limit when delta > 0: {from}/{to}");
    require!(by > 0.0 || from >= to, "Requires start >= limit when delta < 0: {from}/{to}");
    let n = steps(start, limit, delta);
    let out = call.output(0, &[n])?;
    if n == 0 {
        return Ok(());
    }
    Ok(sequences::write(&call.cx(), Sequence::Arange, &[start, delta], &out)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Fill", fill_by_value).of("T", ALL).on_host(&["dims"]),
        like("ZerosLike", 0),
        like("OnesLike", 1),
        Operator::plain("Range", range).of("Tidx", FLOATS_AND_I64).on_host(&["start", "limit", "delta"]),
    ]
}
