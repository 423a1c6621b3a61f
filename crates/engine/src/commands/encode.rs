//! From packed commands to commands of the graphics API, for batches and for graphs.

use crate::backend::{Gpu, Pipeline, Segment};
use crate::commands::list::{Command, CommandKind, CommandList, LaunchPart};
use crate::error::Error;
use crate::kernels::parts::Part;
use dml_gpu::Commands;

/// A dispatch or a copy that is ready to be encoded: its kernel is compiled, its parameters and
/// segments are at hand.
pub(crate) enum Encodable<'l> {
    Dispatch {
        pipeline: &'l Pipeline,
        push: &'l [u8],
        /// The index of the first workgroup.
        base: [u32; 3],
        groups: [u32; 3],
    },
    Copy {
        from: &'l Segment,
        from_offset: u64,
        to: &'l Segment,
        to_offset: u64,
        bytes: u64,
    },
}

impl<'l> Encodable<'l> {
    /// The dispatch or copy that a command of `list` is; `None` for other kinds. Compiles the
    /// kernel if nobody did, or waits for the thread that does. `staging` are the segments that the
    /// list's staged bytes lie in.
    ///
    /// # Errors
    /// [`Error::Compile`]; [`dml_gpu::Error::DeviceLost`].
    #[inline(always)]
    pub(crate) fn of(
        gpu: &Gpu,
        list: &'l CommandList,
        command: &'l Command,
        staging: &'l [Segment],
    ) -> Result<Option<Self>, Error> {
        Ok(Some(match &command.kind {
            CommandKind::Launch { kernel, push, groups, .. } => {
                let (pipeline, push) = (kernel.pipeline(gpu)?, list.push_constants(*push));
                Self::Dispatch { pipeline, push, base: [0; 3], groups: *groups }
            }
            CommandKind::LaunchPart(part) => {
                let LaunchPart { kernel, push, groups, of } = &**part;
                let (pipeline, push) = (kernel.pipeline(gpu)?, list.push_constants(*push));
                Self::Dispatch { pipeline, push, base: of.base, groups: *groups }
            }
            CommandKind::Copy { from, to, to_offset, bytes } => {
                let (segment, from_offset) = (&staging[from.segment as usize], u64::from(from.offset));
                Self::Copy { from: segment, from_offset, to, to_offset: *to_offset, bytes: *bytes }
            }
            CommandKind::Free { .. } | CommandKind::Timestamp(_) | CommandKind::Replay(_) => return Ok(None),
        }))
    }

    /// Some of the workgroups, if it is a dispatch.
    #[inline]
    pub(crate) fn part(mut self, part: Part) -> Self {
        if let Self::Dispatch { base, groups, .. } = &mut self {
            (*base, *groups) = (part.base, part.groups);
        }
        self
    }

    /// Encodes it.
    ///
    /// # Errors
    /// As [`Commands::dispatch_from`] and [`Commands::copy`].
    #[inline]
    pub(crate) fn encode<C>(&self, commands: &mut C) -> Result<(), dml_gpu::Error>
    where
        C: Commands<Api = <Gpu as dml_gpu::Gpu>::Api>,
    {
        match *self {
            Self::Dispatch { pipeline, push, base, groups } => commands.dispatch_from(pipeline, push, base, groups),
            Self::Copy { from, from_offset, to, to_offset, bytes } => {
                commands.copy(from, from_offset, to, to_offset, bytes)
            }
        }
    }
}
