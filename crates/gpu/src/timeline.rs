//! How far a queue has come, and waiting for it.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::adapter::{AdapterInfo, AdapterKind};
use crate::error::Error;
use crate::ticket::Ticket;

/// How long a wait polls before it blocks.
const POLL: Duration = Duration::from_micros(100);

/// How [`Timeline::wait_for`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// What was waited for has arrived.
    Arrived,
    /// The ticket is complete, and it has not arrived.
    Missing,
    /// The wait was told to stop.
    Stopped,
}

/// The progress of a [`Recorder`](crate::Recorder). A clone is another handle of the same timeline,
/// which any thread may use without the recorder's lock.
pub trait Timeline: Clone + Debug + Send + Sync + 'static {
    /// The last ticket that was submitted.
    fn last_ticket(&self) -> Ticket;

    /// The last ticket that is complete. Cheap: from a few nanoseconds to 0.3 µs.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    fn completed(&self) -> Result<Ticket, Error>;

    /// Returns when `ticket` is complete: polls for 100 µs, then blocks.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], also when nothing completes for `TORCH_DML_TIMEOUT_S` seconds;
    /// [`Error::Invalid`] for a ticket that was not submitted.
    fn wait(&self, ticket: Ticket) -> Result<(), Error> {
        self.wait_unless(ticket, || false).map(drop)
    }

    /// As [`wait`](Self::wait), until `stop` is true, which is asked about every 50 ms, with nothing locked: false then, and
    /// true when the ticket is complete.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    fn wait_unless(&self, ticket: Ticket, stop: impl FnMut() -> bool) -> Result<bool, Error>;

    /// Waits until `arrived` is true, asked at least once: what work of `ticket` wrote to mapped memory
    /// may be seen long before the ticket is complete. Stops as [`wait_unless`](Self::wait_unless).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    fn wait_for(
        &self,
        ticket: Ticket,
        arrived: impl FnMut() -> bool,
        stop: impl FnMut() -> bool,
    ) -> Result<Waited, Error>;

    /// Calls `done` with the last complete ticket until it is true: often at first, every millisecond later. Has nothing
    /// signalled, so it suits a wait for work that has more behind it. Stops as [`wait_unless`](Self::wait_unless).
    ///
    /// # Errors
    /// [`Error::DeviceLost`], also when nothing completes for `TORCH_DML_TIMEOUT_S` seconds.
    fn look_until(&self, done: impl FnMut(Ticket) -> bool, stop: impl FnMut() -> bool) -> Result<bool, Error>;
}

/// Asks `done` until it is true, or for 100 µs: what a wait does before it blocks.
///
/// # Errors
/// Those of `done`.
pub fn poll_until(kind: AdapterKind, mut done: impl FnMut() -> Result<bool, Error>) -> Result<bool, Error> {
    let mut started = None;
    while !done()? {
        if started.get_or_insert_with(Instant::now).elapsed() > POLL {
            return Ok(false);
        }
        // Polling takes a processor from a driver that computes on it, so that one gets it back.
        if kind == AdapterKind::Software { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
    Ok(true)
}

/// Fails for a ticket that was not submitted, of which `last` is the last.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_submitted(call: &'static str, ticket: Ticket, last: Ticket) -> Result<(), Error> {
    if ticket > last {
        let what = format!("ticket {} was not submitted; the last is {}", ticket.0, last.0);
        return Err(Error::Invalid { call, what });
    }
    Ok(())
}

/// What a wait has seen complete, and how long ago.
pub struct Progress {
    done: u64,
    since: Instant,
}

impl Progress {
    /// A wait begins with this ticket complete.
    pub fn new(done: u64) -> Self {
        Self { done, since: Instant::now() }
    }

    /// Notes what is complete. False, which is logged, if nothing has completed for `limit`: the device hangs.
    pub fn goes_on(&mut self, done: u64, last: Ticket, limit: Duration, adapter: &AdapterInfo) -> bool {
        if done > self.done {
            *self = Self::new(done);
        } else if self.since.elapsed() >= limit {
            tracing::error!(
                "{}: no progress for {limit:?} (ticket {done} is complete, {} is submitted): the device counts as lost",
                adapter.name,
                last.0
            );
            return false;
        }
        true
    }
}
