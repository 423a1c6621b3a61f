//! A driver does not survive `fork`: the child has its handles and none of its threads.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

/// This process was forked from one that had started Vulkan.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Marks the children that this process forks from now on. To be called when a driver was started or a device opened.
pub(crate) fn watch() {
    #[cfg(unix)]
    {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn pthread_atfork(
                prepare: Option<unsafe extern "C" fn()>,
                parent: Option<unsafe extern "C" fn()>,
                child: Option<extern "C" fn()>,
            ) -> c_int;
        }
        extern "C" fn child() {
            FORKED.store(true, Ordering::Relaxed);
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the C library's function, declared as POSIX has it. The handler only stores to an atomic, which a forked
            // child may do. It is there as long as it is registered: if this library is ever unloaded, the C library
            // forgets its handlers.
            if unsafe { pthread_atfork(None, None, Some(child)) } != 0 {
                tracing::warn!("forked processes will not be told from their parents");
            }
        });
        skip_drivers_at_exit();
    }
}

/// Has a forked child end without the drivers' exit handlers: on an H100 they crashed the child and took the parent's
/// memory with them. What is registered last runs first, so this comes after each start of a driver.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn skip_drivers_at_exit() {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        fn fflush(stream: *mut c_void) -> c_int;
        fn _exit(status: c_int) -> !;
    }
    extern "C" fn leave(status: c_int, _: *mut c_void) {
        if FORKED.load(Ordering::Relaxed) {
            // SAFETY: the C library's functions. Null flushes every stream; `_exit` ends the process, and nothing runs after it.
            unsafe {
                fflush(std::ptr::null_mut());
                _exit(status)
            }
        }
    }
    // SAFETY: the C library's function, declared as glibc has it. The handler does not use its argument, and is there until the
    // process ends: Python unloads no library, and the plugin, which uses this one, cannot be unloaded.
    if unsafe { on_exit(leave, std::ptr::null_mut()) } != 0 {
        tracing::warn!("a forked process that exits may disturb its parent's devices");
    }
}

#[cfg(all(unix, not(all(target_os = "linux", target_env = "gnu"))))]
fn skip_drivers_at_exit() {}

/// Whether this process is such a child.
#[inline]
pub fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Fails in such a child.
#[inline]
pub(crate) fn check() -> Result<(), Error> {
    if forked() { Err(Error::Forked) } else { Ok(()) }
}
