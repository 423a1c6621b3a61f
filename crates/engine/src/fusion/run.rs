//! Runs over a list of commands and says which steps are to be recorded: the one driver of
//! fusion, for batches and for graphs.

use crate::commands::list::{Command, CommandKind, CommandList};
use crate::fusion::chain::{FusedLaunch, Fusion};

/// What is recorded next.
pub(crate) enum Step<'l, 'f> {
    /// A command as it is.
    Command(&'l Command),
    /// One launch for a chain of several, and the last command of the chain.
    Fused(&'f FusedLaunch, &'l Command),
}

impl Fusion {
    /// Passes the steps of a list to `emit`, in order. Frees are not passed on.
    pub(crate) fn run<'l>(&mut self, list: &'l CommandList, mut emit: impl FnMut(Step<'l, '_>)) {
        let commands = list.commands();
        for (at, command) in commands.iter().enumerate() {
            match &command.kind {
                CommandKind::Free { address } => {
                    self.freed(*address);
                    continue;
                }
                CommandKind::Launch { kernel, push, .. } => {
                    let push = (list.push_constants(*push), push.start());
                    if self.append(at, kernel, push) {
                        continue;
                    }
                    // It does not belong to the open chain, but may begin one.
                    self.close(list, &mut emit);
                    if self.append(at, kernel, push) {
                        continue;
                    }
                }
                CommandKind::LaunchPart(_)
                | CommandKind::Copy { .. }
                | CommandKind::Timestamp(_)
                | CommandKind::Replay(_) => self.close(list, &mut emit),
            }
            emit(Step::Command(command));
        }
        self.close(list, &mut emit);
    }

    /// Ends the open chain, if there is one: as one launch, or as its launches where there is no
    /// kernel for all of them.
    #[inline]
    fn close<'l>(&mut self, list: &'l CommandList, emit: &mut impl FnMut(Step<'l, '_>)) {
        let last = self.launches().next_back();
        if let Some(last) = last {
            self.emit_chain(list, last, emit);
        }
    }

    /// Passes the open chain on, of which `last` is the last command, and closes it. Not inlined,
    /// so that to ask whether a chain is open costs nothing.
    #[inline(never)]
    fn emit_chain<'l>(&mut self, list: &'l CommandList, last: usize, emit: &mut impl FnMut(Step<'l, '_>)) {
        let commands = list.commands();
        if let Some(fused) = self.fused(list.bytes()) {
            emit(Step::Fused(&fused, &commands[last]));
        } else {
            self.launches().for_each(|at| emit(Step::Command(&commands[at])));
        }
        self.clear();
    }
}
