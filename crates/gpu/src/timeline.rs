//! How far a queue has come, and waiting for it.

use std::fmt::Debug;

use crate::error::Error;
use crate::ticket::Ticket;

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
