//! Which channels are on, and where the others wait.
//!
//! A channel that a branch leads elsewhere waits for the instruction there, and goes on when the
//! thread comes to it. The thread takes the way that all channels need together: it jumps only
//! where none of them is left on.

use super::thread::Thread;
use super::{Outcome, Trap};
use crate::isa::instruction::{Instruction, Operation};

impl Thread {
    /// Turns on the channels that wait for this instruction.
    #[inline(always)]
    pub fn join(&mut self, at: usize) {
        let mut waiting = self.waiting;
        while waiting != 0 {
            let k = waiting.trailing_zeros();
            waiting &= waiting - 1;
            if self.wait[k as usize] == at as u32 {
                self.active |= 1 << k;
                self.waiting &= !(1 << k);
            }
        }
    }

    /// Turns channels off until an instruction.
    fn send_to(&mut self, channels: u32, target: u32) {
        self.active &= !channels;
        self.waiting |= channels;
        for k in (0..32).filter(|k| channels >> k & 1 != 0) {
            self.wait[k] = target;
        }
    }

    /// Whether a channel waits for an instruction.
    fn is_awaited(&self, target: usize) -> bool {
        (0..32).any(|k| self.waiting >> k & 1 != 0 && self.wait[k] == target as u32)
    }

    /// Carries out a branch, and sets the next instruction.
    ///
    /// # Errors
    ///
    /// What is missing here.
    pub fn branch(&mut self, it: &Instruction) -> Outcome {
        let at = self.next;
        let [near, far] = it.jump;
        if it.operation == Operation::Jmpi {
            self.next = if self.predicate(it) & 1 != 0 { near as usize } else { at + 1 };
            return Ok(());
        }
        if it.all {
            return Err(Trap::missing("a branch of channels that are off"));
        }
        // In the thread's numbers of channels.
        let range = Self::all(it) << it.first;
        let taken = if it.predicate == 0 { range } else { self.predicate(it) << it.first & range };
        self.next = at + 1;
        match it.operation {
            Operation::If => self.send_to(self.active & range & !taken, near),
            Operation::Else => self.send_to(self.active & range, far),
            Operation::Endif => {}
            Operation::Break | Operation::Cont | Operation::Halt => self.send_to(self.active & taken, far),
            Operation::While => {
                let again = self.active & taken;
                if again != 0 {
                    self.send_to(self.active & !again, at as u32 + 1);
                    self.next = near as usize;
                }
                return Ok(());
            }
            _ => return Err(Trap::missing("this branch")),
        }
        if self.active == 0 && !self.is_awaited(at + 1) {
            self.next = near as usize;
        }
        Ok(())
    }
}
