//! Tensors that are the input's memory: other dtypes of the same bits, and the input itself.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL_AND_I32;
use crate::require;

/// `Bitcast`: elements of another size are grouped, or divided, along the last dimension.
fn bitcast(call: &Call) -> Result<()> {
    let (from, to) = (call.tensor(0)?.dtype()?, call.output_dtype(0)?);
    let mut sizes = call.sizes(0)?;
    let (old, new) = (from.bytes(), to.bytes());
    if new > old {
        let group = (new / old) as i64;
        require!(
            sizes.last() == Some(&group),
            "Cannot bitcast from {from} to {to} because the last dimension of {:?} is not {group}",
            sizes.as_slice()
        );
        sizes.pop();
    } else if new < old {
        sizes.push((old / new) as i64);
    }
    call.pass_on_as(0, 0, to, &sizes)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("Bitcast", bitcast).of("T", ALL_AND_I32).of("type", ALL_AND_I32),
        Operator::plain("Snapshot", |call: &Call| call.pass_on(0, 0, &call.sizes(0)?)).of("T", ALL_AND_I32),
    ]
}
