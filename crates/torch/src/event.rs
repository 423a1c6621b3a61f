//! Events. A handle owns its event.

use crate::device::open;
use crate::error::{Failure, guard};
use dml_engine::Event;

/// # Safety
/// `handle` is from [`dml_event_record`] and not yet freed.
unsafe fn event<'a>(handle: u64) -> Result<&'a Event, Failure> {
    // SAFETY: the caller's promise; null is refused.
    unsafe { (handle as usize as *const Event).as_ref() }
        .ok_or_else(|| Failure::new(crate::abi::Status::Runtime, "this event was not recorded"))
}

/// Records an event after the work so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_record(device: i32, timing: i32, handle: *mut u64) -> i32 {
    guard(|| {
        let recorded = Box::new(open(device)?.record_event(timing != 0)?);
        // SAFETY: the contract.
        unsafe { handle.write(Box::into_raw(recorded) as usize as u64) };
        Ok(())
    })
}

/// Whether the work before the event is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_query(handle: u64, done: *mut i32) -> i32 {
    // SAFETY: the contract.
    guard(|| unsafe {
        done.write(i32::from(event(handle)?.query()?));
        Ok(())
    })
}

/// Waits for the work before the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_wait(handle: u64) -> i32 {
    // SAFETY: the contract.
    guard(|| unsafe { Ok(event(handle)?.wait()?) })
}

/// Milliseconds between two events recorded for timing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_elapsed(start: u64, end: u64, milliseconds: *mut f64) -> i32 {
    // SAFETY: the contract.
    guard(|| unsafe {
        milliseconds.write(event(start)?.elapsed_ms(event(end)?)?);
        Ok(())
    })
}

/// Drops an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_event_free(handle: u64) {
    // In a forked child another thread may have held a lock of the device: the event is left alone.
    if handle != 0 && !dml_engine::forked() {
        guard(|| {
            // SAFETY: the handle owns the box.
            drop(unsafe { Box::from_raw(handle as usize as *mut Event) });
            Ok(())
        });
    }
}
