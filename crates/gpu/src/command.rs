//! Recording commands, and submitting them.

use std::fmt::Debug;

use crate::api::Api;
use crate::error::Error;
use crate::query::{Clocks, Span};
use crate::ticket::Ticket;

/// Records commands. They run in the order of the calls, and overlap unless there is a [`barrier`](Self::barrier) between
/// them.
pub trait Commands: Debug {
    /// Whose commands they are.
    type Api: Api;

    /// Runs a kernel with parameters `push` over `groups` workgroups. No group along an axis is no work.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `push` is not as long as the kernel's parameters, if there are more groups than
    /// [`max_groups`](crate::Capabilities::max_groups), or if the pipeline is another device's; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`].
    fn dispatch(&mut self, pipeline: &<Self::Api as Api>::Pipeline, push: &[u8], groups: [u32; 3])
    -> Result<(), Error>;

    /// As [`dispatch`](Self::dispatch), where the workgroups' indices begin at `base`. The number of workgroups that a kernel is told is
    /// that of this run.
    ///
    /// # Errors
    /// As [`dispatch`](Self::dispatch), where `base` counts as workgroups.
    fn dispatch_from(
        &mut self,
        pipeline: &<Self::Api as Api>::Pipeline,
        push: &[u8],
        base: [u32; 3],
        groups: [u32; 3],
    ) -> Result<(), Error>;

    /// Makes what earlier commands wrote visible to later ones, and keeps later ones from writing
    /// what earlier ones read. Costs 2 µs of GPU time. Two in a row are one; one with no
    /// later command is none. A [`Recorder`]'s also holds across submissions.
    fn barrier(&mut self);

    /// Copies `bytes` bytes. Large copies inside a device's memory are three times faster as a kernel.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range outside its segment, an overlap or another device's segment; [`Error::DeviceLost`];
    /// [`Error::OutOfMemory`].
    fn copy(
        &mut self,
        src: &<Self::Api as Api>::Segment,
        src_offset: u64,
        dst: &<Self::Api as Api>::Segment,
        dst_offset: u64,
        bytes: u64,
    ) -> Result<(), Error>;
}

/// The command stream of a queue: records commands and submits them in batches. Dropping a recorder discards what was not
/// submitted and waits for what was.
pub trait Recorder: Commands + Sized + Send + 'static {
    /// Makes what the commands up to the next submit write to mapped memory visible to the host once
    /// that submit is complete. Costs about 3.5 µs of GPU time, once a submit.
    fn host_barrier(&mut self);

    /// Runs a recording after everything that was recorded before. Costs the host next to nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a recording of another device; [`Error::DeviceLost`]; what the driver said, and what was recorded since the last submit is then discarded.
    fn execute(&mut self, recording: &<Self::Api as Api>::Recording) -> Result<(), Error>;

    /// Records the time at which all earlier commands are done. A pair costs 1.8 µs of GPU time.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    fn timestamp(&mut self) -> Result<<Self::Api as Api>::TimestampId, Error>;

    /// Nanoseconds from one timestamp to another, negative if that came before; `None` while their submissions are not complete,
    /// and for ever if one was discarded. Right also where the device's clock began again between them, which some do every
    /// hour.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timestamp of another recorder; [`Error::DeviceLost`].
    fn elapsed_ns(
        &self,
        from: &<Self::Api as Api>::TimestampId,
        to: &<Self::Api as Api>::TimestampId,
    ) -> Result<Option<f64>, Error>;

    /// Runs `command`, which records one command, and has the device note when that began and ended: behind the
    /// barrier that was asked for, if any. [`take_spans`](Self::take_spans) gives the times under the name `id`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`]; the
    /// command's.
    fn timed(&mut self, id: u64, command: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error>;

    /// Moves the spans that are known into `out`; those of work that is not done follow later. One that the driver lost
    /// is left out.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or what the driver said.
    fn take_spans(&mut self, out: &mut Vec<(u64, Span)>) -> Result<(), Error>;

    /// Reads the device's clock and the host's. Where the driver cannot read the device's, a timestamp that is submitted
    /// alone stands for it: the queue should then have nothing to do.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the queue has no timestamps; [`Error::DeviceLost`]; [`Error::OutOfMemory`].
    fn clocks(&mut self) -> Result<Clocks, Error>;

    /// Commands recorded since the last submit, barriers not counted.
    fn recorded(&self) -> usize;

    /// Sends what was recorded to the GPU. With nothing recorded, returns the last ticket.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], [`Error::OutOfMemory`], or what the driver said; what was recorded is
    /// then discarded.
    fn submit(&mut self) -> Result<Ticket, Error>;

    /// As [`submit`](Self::submit), but always as the next ticket, also with nothing recorded, and if the driver refuses
    /// the commands: for a caller that promised the ticket before.
    ///
    /// # Errors
    /// As [`submit`](Self::submit). The ticket completes all the same, unless it is [`Error::DeviceLost`].
    fn submit_next(&mut self) -> Result<Ticket, Error>;

    /// The last ticket that [`submit`](Self::submit) returned.
    fn last_ticket(&self) -> Ticket;

    /// Returns when `ticket` is complete; see [`Timeline::wait`](crate::Timeline::wait).
    ///
    /// # Errors
    /// As [`Timeline::wait`](crate::Timeline::wait).
    fn wait(&mut self, ticket: Ticket) -> Result<(), Error>;

    /// Submits what was recorded, and returns when the GPU is done with everything. Afterwards the
    /// driver, too, knows that it is done with every segment, whichever way completion is reported.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`wait`](Self::wait).
    fn wait_idle(&mut self) -> Result<(), Error>;

    /// The progress of this recorder, for other threads.
    fn timeline(&self) -> &<Self::Api as Api>::Timeline;
}
