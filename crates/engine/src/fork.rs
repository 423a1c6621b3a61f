//! Forked processes. A driver does not survive `fork`: the child has its handles and none of its
//! threads.

use crate::error::Error;
#[cfg(unix)]
use crate::exit;
use std::sync::atomic::{AtomicBool, Ordering};

/// This process was forked from one that had started a driver.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Marks the children that this process forks from now on. To be called when a driver was started
/// or a device was opened.
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
            exit::without_drivers();
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the C library's function, declared as POSIX has it. The handler only stores
            // to atomics, which a forked child may do. It exists as long as it is registered: if
            // this library is ever unloaded, the C library forgets its handlers.
            if unsafe { pthread_atfork(None, None, Some(child)) } != 0 {
                tracing::warn!("forked processes will not be told from their parents");
            }
        });
    }
}

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
