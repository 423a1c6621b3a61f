//! The way of a cached operator takes nothing from Rust's heap (a driver may, at a submit).
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands every call on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|c| c.set(c.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
    let before = COUNT.get();
    for _ in 0..2000 {
        operator();
    }
    let count = COUNT.get() - before;
    // The stream's lists of batches may still grow now and then.
    assert!(count < 200, "{count} allocations in 2000 operators");
}
