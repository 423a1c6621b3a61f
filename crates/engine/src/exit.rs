//! The end of a process in which the exit handlers of drivers must not run.
//!
//! In a forked child, the handlers crashed on an H100 and released the parent's memory. With a
//! device that hangs, they may block forever: a process that had reported the loss did not end.

use std::sync::atomic::{AtomicBool, Ordering};

/// This process ends without the handlers.
static WITHOUT_DRIVERS: AtomicBool = AtomicBool::new(false);

/// Makes the process end without the drivers' exit handlers. May be called from a signal handler.
pub(crate) fn without_drivers() {
    WITHOUT_DRIVERS.store(true, Ordering::Relaxed);
}

/// Makes [`without_drivers`] apply to all drivers started so far. To be called after a driver was
/// started or a device was opened: the handler that is registered last runs first.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn watch() {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        fn fflush(stream: *mut c_void) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    extern "C" fn leave(status: c_int, _: *mut c_void) {
        if WITHOUT_DRIVERS.load(Ordering::Relaxed) {
            // SAFETY: the C library's functions. Null flushes every stream; `_exit` ends the
            // process, and nothing runs after it.
            unsafe {
                fflush(std::ptr::null_mut());
                _exit(status)
            }
        }
    }
    // SAFETY: the C library's function, declared as glibc has it. The handler does not use its
    // argument, and exists until the process ends: the library that contains it is never unloaded.
    if unsafe { on_exit(leave, std::ptr::null_mut()) } != 0 {
        tracing::warn!("a process that forks or loses its device may not end as it should");
    }
}

/// Other systems have no handler that ends a process with its own status.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn watch() {}
