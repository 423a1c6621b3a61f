//! The way of a cached operator takes nothing from Rust's heap (a driver may, at a submit).
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use dml_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_cached_operator_does_not_allocate() {
    let device = open();
    let x = put(&device, &[1; 16]);
    let operator = || {
        let kernel = multiply_add(&device);
        let out = device.allocate(64).unwrap();
        launch_multiply_add(&device, &kernel, (out, x, x), 16, 1).unwrap();
        device.free(out);
    };
    for _ in 0..5000 {
        operator();
    }
    device.synchronize().unwrap();
    let before = allocations();
    for _ in 0..2000 {
        operator();
    }
    let count = allocations() - before;
    // The stream's lists of batches may still grow now and then.
    assert!(count < 200, "{count} allocations in 2000 operators");
}
