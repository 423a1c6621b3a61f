//! Interruption of waits by the program, for example after a signal.

use crate::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How long a wait lasts between two checks.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// Whether the calling thread is to stop waiting. Called every 50 ms of a wait, without any lock of
/// the engine held.
type Check = dyn Fn() -> bool + Send + Sync;

static CHECK: RwLock<Option<Arc<Check>>> = RwLock::new(None);

/// From now on every wait for a device calls `check`, in the waiting thread, and ends with
/// [`Error::Interrupted`] when it returns true. Enqueued work stays enqueued. With `None`, waits
/// are not interrupted, which is the default.
pub fn set_interrupt_check(check: Option<Arc<Check>>) {
    *CHECK.write().unwrap_or_else(PoisonError::into_inner) = check;
}

/// Whether the calling thread is to stop waiting. Must not be called with a lock of the engine
/// held: the program may take a lock whose holder waits for the engine's.
pub(crate) fn requested() -> bool {
    let check = CHECK.read().unwrap_or_else(PoisonError::into_inner).clone();
    check.is_some_and(|check| check())
}

/// The result of a wait that may have been interrupted.
///
/// # Errors
/// [`Error::Interrupted`] unless the wait reached its end.
pub(crate) fn unless(reached: bool) -> Result<(), Error> {
    if reached { Ok(()) } else { Err(Error::Interrupted) }
}
