//! Limits on the length of loops.

use crate::context::Context;
use crate::error::{Error, Result};
use dml_engine::AdapterKind;

/// Maximum loop iterations of an invocation on a software adapter: Mesa's before version 23
/// silently ends loops after 65,535 iterations of all loops together.
pub const MAX_SOFTWARE_ITERATIONS: u64 = 60_000;

/// Maximum loop iterations of an invocation on the context's adapter; `None` if there is no limit.
pub fn max_loop_iterations(cx: &Context) -> Option<i64> {
    (cx.device.info().kind == AdapterKind::Software).then_some(MAX_SOFTWARE_ITERATIONS as i64)
}

/// Returns an error, so that the operator falls back to the CPU, if an invocation would take more
/// loop iterations than the adapter supports.
pub fn check_loop_iterations(cx: &Context, turns: i64) -> Result<()> {
    match max_loop_iterations(cx) {
        Some(allowed) if turns > allowed => {
            Err(Error::NoKernel(format!("{}: a loop of {turns} turns on a software adapter", cx.name)))
        }
        _ => Ok(()),
    }
}
