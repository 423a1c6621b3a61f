//! Captures of a few launches.

use super::launch_multiply_add;
use dml_engine::{Device, Error, Graph, KernelRef};

/// The number of elements of each tensor.
pub const N: usize = 200;

/// Captures what `body` does.
pub fn capture<T>(device: &Device, body: impl FnOnce() -> T) -> (Graph, T) {
    let capture = device.capture(None).unwrap();
    assert!(device.is_capturing());
    let made = body();
    let graph = capture.end().unwrap();
    assert!(!device.is_capturing());
    (graph, made)
}

/// Enqueues `out = x * scale + y` for [`N`] numbers.
pub fn step(device: &Device, kernel: &KernelRef, (out, x, y): (u64, u64, u64), scale: i32) {
    launch_multiply_add(device, kernel, (out, x, y), N as u32, scale).unwrap();
}

/// What a graph's error says.
pub fn is_graph_error<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Graph { what, .. }) => what,
        other => panic!("not refused: {other:?}"),
    }
}
