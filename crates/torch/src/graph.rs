//! Graphs. A handle owns its pool, capture or graph.

use crate::abi::Status;
use crate::device::{open, publish};
use crate::error::{Failure, guard, guard_value};
use crate::handle;
use dml_engine::{Capture, Graph, GraphPool};
use serde_json::json;
use std::ffi::c_char;
use std::sync::Arc;

/// # Safety
/// `handle` is 0, or from [`dml_graph_end`] and not freed during `'a`.
unsafe fn graph<'a>(handle: u64) -> Result<&'a Graph, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle::get(handle) }.ok_or_else(|| Failure::new(Status::RuntimeError, "no graph was captured"))
}

/// A pool of memory that several graphs share.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_pool_new(device: i32, pool: *mut u64) -> i32 {
    guard(|| {
        let made = open(device)?.graph_pool();
        // SAFETY: the contract's places.
        unsafe { pool.write(handle::new(made)) };
        Ok(())
    })
}

/// Drops a handle of a pool. The pool's graphs keep the pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_pool_free(pool: u64) {
    // SAFETY: the contract's handles.
    guard(|| unsafe { handle::free::<Arc<GraphPool>>(pool) });
}

/// Begins a capture of the calling thread's work on a device. The thread's work is recorded, not
/// run, until the capture ends. Pool 0: a new pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_begin(device: i32, pool: u64, capture: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the contract's handles.
        let begun = open(device)?.capture(unsafe { handle::get(pool) })?;
        // SAFETY: the contract's places.
        unsafe { capture.write(handle::new(begun)) };
        Ok(())
    })
}

/// Ends a capture, on the thread that began it. The capture is over and its handle invalid also on
/// failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_end(capture: u64, graph: *mut u64) -> i32 {
    guard(|| {
        // SAFETY: the contract's handles; this one is freed here.
        let capture = unsafe { handle::take::<Capture>(capture)? }
            .ok_or_else(|| Failure::new(Status::RuntimeError, "no graph is being captured"))?;
        let ended = capture.end()?;
        // SAFETY: the contract's places.
        unsafe { graph.write(handle::new(ended)) };
        Ok(())
    })
}

/// Ends a capture without a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_discard(capture: u64) {
    // SAFETY: the contract's handles.
    guard(|| unsafe { handle::free::<Capture>(capture) });
}

/// Enqueues a graph's work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_replay(handle: u64) -> i32 {
    // SAFETY: the contract's handles.
    guard(|| unsafe { Ok(graph(handle)?.replay()?) })
}

/// Statistics of a graph as JSON: `captured` (launches), `launches` and `barriers` (of a replay),
/// `barriers_in_order` (barriers that a replay in the order of the capture would need). Null on
/// error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_stats_json(handle: u64) -> *const c_char {
    guard_value(std::ptr::null(), || {
        // SAFETY: the contract's handles.
        let stats = unsafe { graph(handle)? }.stats();
        Ok(publish(&json!({
            "captured": stats.captured,
            "launches": stats.launches,
            "barriers": stats.barriers,
            "barriers_in_order": stats.barriers_in_order,
        })))
    })
}

/// Drops a graph. Enqueued replays run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_graph_free(graph: u64) {
    // SAFETY: the contract's handles.
    guard(|| unsafe { handle::free::<Graph>(graph) });
}

/// Whether the calling thread is capturing. Opens no device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_is_capturing(device: i32, capturing: *mut i32) -> i32 {
    guard(|| {
        let open = usize::try_from(device).ok().and_then(dml_engine::opened);
        // SAFETY: the contract's places.
        unsafe { capturing.write(i32::from(open.is_some_and(|device| device.is_capturing()))) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_go_round() {
        let (mut count, mut pool, mut capture, mut graph, mut on) = (0, 0, 0, 0, 0);
        // SAFETY: valid places, and handles used according to the contract.
        unsafe {
            if crate::device::dml_device_count(&raw mut count) != 0 || count == 0 {
                return; // a machine with no Vulkan
            }
            assert_eq!(dml_graph_pool_new(0, &raw mut pool), 0);
            assert_eq!(dml_graph_begin(0, pool, &raw mut capture), 0);
            assert_eq!((dml_is_capturing(0, &raw mut on), on), (0, 1));
            let mut second = 0;
            assert_eq!(dml_graph_begin(0, 0, &raw mut second), Status::RuntimeError as i32);
            assert_eq!(dml_graph_end(capture, &raw mut graph), 0);
            assert_eq!((dml_is_capturing(0, &raw mut on), on), (0, 0));
            assert_eq!(dml_graph_replay(graph), 0);
            assert!(!dml_graph_stats_json(graph).is_null());
            dml_graph_free(graph);
            dml_graph_pool_free(pool);
            assert_eq!(dml_graph_begin(0, 0, &raw mut capture), 0);
            dml_graph_discard(capture);
            assert_eq!(dml_graph_end(0, &raw mut graph), Status::RuntimeError as i32);
            assert_eq!(dml_graph_replay(0), Status::RuntimeError as i32);
            assert!(dml_graph_stats_json(0).is_null());
            dml_graph_free(0);
        }
    }
}
