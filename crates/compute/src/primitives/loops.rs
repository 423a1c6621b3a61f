//! How long loops may be.

use crate::context::Context;
use crate::error::{Error, Result};
use dml_engine::AdapterKind;

/// Turns of loops that an invocation may take on a software adapter: Mesa's before version 23 ends
/// loops after 65,535 turns of all of them together, without a word.
pub const SOFTWARE_TURNS: u64 = 60_000;

/// Turns that an invocation may take on the call's adapter; none: any number.
pub fn turns_allowed(cx: &Context) -> Option<i64> {
    (cx.device.info().kind == AdapterKind::Software).then_some(SOFTWARE_TURNS as i64)
}

/// Leaves an operator to the CPU whose invocations would take more turns of loops than the adapter
/// may run.
pub fn check_turns(cx: &Context, turns: i64) -> Result<()> {
    match turns_allowed(cx) {
        Some(allowed) if turns > allowed => {
            Err(Error::NoKernel(format!("{}: a loop of {turns} turns on a software adapter", cx.name)))
        }
        _ => Ok(()),
    }
}
