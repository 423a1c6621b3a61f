//! A batch: the commands of one submission, from the first that is enqueued until the driver has
//! them all.
//!
//! Each state is a type of its own, and a transition consumes the state before it. So nothing can
//! be added to a batch that has a ticket, no batch is recorded twice, and only what was recorded is
//! submitted.
//!
//! | state | the commands | made by |
//! |---|---|---|
//! | [`PendingBatch`] | can be added to | [`PendingBatch::new`] |
//! | [`EndedBatch`] | have their ticket, and may go to another thread | [`PendingBatch::end`] |
//! | [`RecordedBatch`] | are in the driver's command buffer | [`Stream::record`] |
//! | [`SubmittedBatch`] | were given to the driver | [`Stream::submit`] |
//!
//! A batch is not stored until it is complete, so there is no type for that state: its ticket
//! tells.
//!
//! [`Stream::record`]: crate::submit::stream::Stream::record
//! [`Stream::submit`]: crate::submit::stream::Stream::submit

use crate::commands::list::CommandList;
use crate::error::Error;
use crate::submit::errors::Errors;
use dml_gpu::Ticket;
use std::ops::Deref;

/// Commands that nobody records yet. It can be appended to.
pub(crate) struct PendingBatch {
    pub(crate) commands: CommandList,
}

/// Commands that are to be recorded and submitted as their ticket. All of them are known.
pub(crate) struct EndedBatch {
    ticket: Ticket,
    commands: CommandList,
}

/// Commands that are in the driver's command buffer. Those that failed are left out.
pub(crate) struct RecordedBatch {
    ended: EndedBatch,
    errors: Errors,
}

/// Commands that were given to the driver. Their ticket completes, whatever failed, unless the
/// device is lost.
pub(crate) struct SubmittedBatch {
    ended: EndedBatch,
    errors: Errors,
}

impl PendingBatch {
    /// A batch in the memory of an empty list.
    #[inline]
    pub(crate) fn new(empty: CommandList) -> Self {
        Self { commands: empty }
    }

    /// Ends the batch, which is to be submitted as `ticket`.
    #[inline]
    pub(crate) fn end(self, ticket: Ticket) -> EndedBatch {
        EndedBatch { ticket, commands: self.commands }
    }
}

impl Deref for PendingBatch {
    type Target = CommandList;

    #[inline]
    fn deref(&self) -> &CommandList {
        &self.commands
    }
}

impl EndedBatch {
    #[inline]
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    #[inline]
    pub(crate) fn commands(&self) -> &CommandList {
        &self.commands
    }

    /// The batch was recorded, but for the commands with these errors.
    #[inline]
    pub(super) fn recorded(self, errors: Errors) -> RecordedBatch {
        RecordedBatch { ended: self, errors }
    }
}

impl RecordedBatch {
    #[inline]
    pub(crate) fn ticket(&self) -> Ticket {
        self.ended.ticket
    }

    /// The operations that the batch does, as [`Launch::work`](crate::Launch::work) counts them.
    #[inline]
    pub(crate) fn work(&self) -> u64 {
        self.ended.commands.work()
    }

    /// The batch was submitted. An error of that is one of every thread whose commands it has.
    #[inline]
    pub(super) fn submitted(self, result: Result<(), Error>) -> SubmittedBatch {
        let Self { ended, mut errors } = self;
        errors.add_for_all(ended.commands.commands().iter().map(|command| command.thread), result);
        SubmittedBatch { ended, errors }
    }
}

impl SubmittedBatch {
    #[inline]
    pub(crate) fn ticket(&self) -> Ticket {
        self.ended.ticket
    }

    /// Launches and copies in the batch.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.ended.commands.count()
    }

    /// Takes the errors of recording and submitting out.
    #[inline]
    pub(crate) fn take_errors(&mut self) -> Errors {
        std::mem::take(&mut self.errors)
    }

    /// Lets go of kernels and markers, and gives the memory of the list for another batch.
    #[inline]
    pub(crate) fn recycle(self) -> CommandList {
        let mut commands = self.ended.commands;
        commands.clear();
        commands
    }
}
