//! Whether a wait is to end early: the program around the engine says so, as when it was sent a signal.

use crate::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How long a wait goes on before it asks.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// Says whether the calling thread is to stop waiting. Asked every 50 ms of a wait, with nothing of the engine locked.
type Check = dyn Fn() -> bool + Send + Sync;

static CHECK: RwLock<Option<Arc<Check>>> = RwLock::new(None);

/// From now on every wait for a device asks `check`, in the thread that waits, and ends with [`Error::Interrupted`] when it says
/// true. What was enqueued stays enqueued. With `None`, waits are not interrupted, as at the start.
pub fn set_interrupt_check(check: Option<Arc<Check>>) {
    *CHECK.write().unwrap_or_else(PoisonError::into_inner) = check;
}

/// Whether the calling thread is to stop waiting. Not to be asked with a lock of the engine: the program may take one of its own,
/// whose holder wants the engine's.
pub(crate) fn requested() -> bool {
    let check = CHECK.read().unwrap_or_else(PoisonError::into_inner).clone();
    check.is_some_and(|check| check())
}

/// What a wait returns that was told to stop.
///
/// # Errors
/// [`Error::Interrupted`] unless it reached its end.
pub(crate) fn unless(reached: bool) -> Result<(), Error> {
    if reached { Ok(()) } else { Err(Error::Interrupted) }
}
