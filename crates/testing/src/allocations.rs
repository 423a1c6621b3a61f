//! How often a thread asks for memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting: to be a test's `#[global_allocator]`.
pub struct CountingAllocator;

/// Allocations of the calling thread so far; 0 where [`CountingAllocator`] is not the allocator.
pub fn allocations() -> u64 {
    COUNT.get()
}

// SAFETY: the system's allocator does the work and keeps to the trait's contract; the other
// methods' defaults build on these two. Counting touches a plain thread-local number, which
// allocates nothing, and is left out where that is gone.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}
