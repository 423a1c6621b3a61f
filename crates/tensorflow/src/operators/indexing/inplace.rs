//! Changes of rows in the memory of the input, which is also the result; copies, and new memory.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::{ALL, INPLACE};
use crate::operators::common::index_access::{Places, Update};
use crate::operators::common::regions::{copy, fill};
use crate::require;
use dml_compute::Scalar;

/// Updates rows of input 0 by those of input 2; input 1 has their numbers.
fn update(call: &Call, update: Update) -> Result<()> {
    let (x, rows, values) = (call.input(0)?, call.input(1)?, call.input(2)?);
    require!(rows.dim() == 1, "i must be a vector. {:?}", rows.sizes.as_slice());
    require!(
        x.dim() >= 1 && values.dim() == x.dim() && values.sizes[1..] == x.sizes[1..],
        "x and v shape doesn't match: {:?} vs. {:?}",
        x.sizes.as_slice(),
        values.sizes.as_slice()
    );
    require!(
        values.sizes[0] == rows.sizes[0],
        "i and x shape doesn't match at index 0: {} vs. {}",
        rows.sizes[0],
        values.sizes[0]
    );
    Places::of_first(&rows).update(call, &x, &values, update)?;
    call.pass_on(0, 0, &x.sizes)
}

fn operator(name: &'static str, change: Update) -> Operator {
    Operator::plain(name, move |call: &Call| update(call, change)).of("T", INPLACE)
}

/// `DeepCopy`.
fn deep_copy(call: &Call) -> Result<()> {
    let x = call.input(0)?;
    copy(call, &x, &call.output(0, &x.sizes)?)
}

/// `Empty`, whose memory is zero whether or not that is wanted.
fn empty(call: &Call) -> Result<()> {
    let sizes = call.host_ints(0)?;
    require!(sizes.iter().all(|&n| n >= 0), "shape must be nonnegative, got {:?}", sizes.as_slice());
    fill(call, &call.output(0, &sizes)?, Scalar::Int(0))
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        operator("InplaceUpdate", Update::Assign),
        operator("InplaceAdd", Update::Add),
        operator("InplaceSub", Update::Sub),
        Operator::plain("DeepCopy", deep_copy).of("T", ALL),
        Operator::plain("Empty", empty).of("dtype", ALL).on_host(&["shape"]),
    ]
}
