//! Events. A handle owns its event.

use crate::abi::Status;
use crate::device::open;
use crate::error::{Failure, guard};
use crate::handle;
use dml_engine::Event;

/// # Safety
/// `handle` is 0, or from [`dml_event_record`] and not freed during `'a`.
unsafe fn event<'a>(handle: u64) -> Result<&'a Event, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle::get(handle) }.ok_or_else(|| Failure::new(Status::RuntimeError, "this event was not recorded"))
}

/// Records an event after all work so far; with `timing`, also the time at which the device reaches
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_record(device: i32, timing: i32, event: *mut u64) -> i32 {
    guard(|| {
        let recorded = open(device)?.record_event(timing != 0)?;
        // SAFETY: the contract's places.
        unsafe { event.write(handle::new(recorded)) };
        Ok(())
    })
}

/// Whether the work before the event is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_query(handle: u64, done: *mut i32) -> i32 {
    // SAFETY: the contract's places and handles.
    guard(|| unsafe {
        done.write(i32::from(event(handle)?.query()?));
        Ok(())
    })
}

/// Waits for the work before the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_wait(handle: u64) -> i32 {
    // SAFETY: the contract's handles.
    guard(|| unsafe { Ok(event(handle)?.wait()?) })
}

/// Milliseconds between two events recorded for timing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_elapsed(start: u64, end: u64, milliseconds: *mut f64) -> i32 {
    // SAFETY: the contract's places and handles.
    guard(|| unsafe {
        milliseconds.write(event(start)?.elapsed_ms(event(end)?)?);
        Ok(())
    })
}

/// Drops an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_free(handle: u64) {
    // SAFETY: the contract's handles.
    guard(|| unsafe { handle::free::<Event>(handle) });
}
