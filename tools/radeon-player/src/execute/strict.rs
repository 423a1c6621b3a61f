//! What hardware does not notice: registers that are read before they are written, and loads that
//! are not waited for.
//!
//! Looked at before and after each instruction of strict runs, from the instruction's operands
//! alone: handlers know nothing of it.

use std::collections::VecDeque;

use super::registers::{Registers, result_words, results, sources, waits};
use super::wave::Wave;
use super::{Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::Generation;
use crate::isa::instruction::{Encoding, Instruction, Operand};

/// What is known of a wave's registers.
pub struct Strict {
    /// Lanes of each vector register that were written.
    written: Box<[u64; 256]>,
    /// Loads from memory on their way, oldest first; they arrive in order.
    memory: VecDeque<Registers>,
    /// Accesses of shared memory and scalar loads on their way, oldest first; scalar loads arrive
    /// in any order.
    shared: VecDeque<Registers>,
    generation: Generation,
    /// Of the instruction looked at last, and of the second of a pair: if it only moves a value,
    /// the lanes in which that was written.
    moved: [Option<u64>; 2],
}

/// How many loads a counter counts.
const MOST: usize = 63;

/// Whether these are of a scalar load.
fn is_scalar(registers: &Registers) -> bool {
    matches!(registers.first, Operand::Scalar(_))
}

/// Whether two runs of registers have one in common.
fn meet(a: Registers, b: Registers) -> bool {
    let overlap = |first: u16, second: u16| first < second + b.count && second < first + a.count;
    match (a.first, b.first) {
        (Operand::Vector(first), Operand::Vector(second)) | (Operand::Scalar(first), Operand::Scalar(second)) => {
            overlap(first, second)
        }
        _ => false,
    }
}

/// The names of registers, as messages have them.
fn name(registers: Registers) -> String {
    match registers.first {
        Operand::Vector(first) if registers.count > 1 => format!("v[{first}:{}]", first + registers.count - 1),
        Operand::Scalar(first) if registers.count > 1 => format!("s[{first}:{}]", first + registers.count - 1),
        first => first.to_string(),
    }
}

/// Instructions that read lanes of other numbers than their own, or only some.
fn reads_other_lanes(it: &Instruction) -> bool {
    [
        "v_readlane",
        "v_readfirstlane",
        "v_permlane",
        "ds_bpermute",
        "ds_permute",
        "ds_swizzle",
        "v_writelane",
        "v_movrel",
        "v_swaprel",
    ]
    .iter()
    .any(|start| it.name.starts_with(start))
}

impl Strict {
    /// Of a wave whose first `given` vector registers are written.
    #[must_use]
    pub fn new(generation: Generation, given: usize) -> Self {
        let mut written = Box::new([0; 256]);
        written[..given].fill(u64::MAX);
        Self { written, memory: VecDeque::new(), shared: VecDeque::new(), generation, moved: [None; 2] }
    }

    fn waited_for(&self, registers: Registers) -> Outcome {
        let pending = self.memory.iter().chain(&self.shared).any(|&other| meet(registers, other));
        if pending { Err(Trap::new(FaultKind::MissingWait(name(registers)))) } else { Ok(()) }
    }

    /// Looks at what an instruction is about to read and write.
    ///
    /// # Errors
    ///
    /// A register that nothing was written to, or that a load is still to fill.
    pub fn before<const N: usize>(&mut self, wave: &Wave<N>, it: &Instruction) -> Outcome {
        self.wait(it);
        self.moved = [Some(it), it.pair()].map(|it| it.and_then(|it| self.lanes_moved(wave, it)));
        self.look(wave, it, self.moved[0].is_some())?;
        it.pair().map_or(Ok(()), |second| self.look(wave, second, self.moved[1].is_some()))
    }

    /// Of an instruction that only moves a value, or chooses one, the lanes in which that was
    /// written: what nobody wrote may be moved as long as nothing is computed of it.
    fn lanes_moved<const N: usize>(&self, wave: &Wave<N>, it: &Instruction) -> Option<u64> {
        let written = |k: usize| match it.source[k] {
            Operand::Vector(register) => self.written.get(usize::from(register)).copied().unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        match it.name {
            _ if it.dpp.is_some() || it.sdwa.is_some() || it.negate != 0 || it.absolute != 0 => None,
            "v_mov_b32" => Some(written(0)),
            "v_cndmask_b32" => {
                let mask = wave.lanes(it.source[2]);
                Some(mask & written(1) | !mask & written(0))
            }
            _ => None,
        }
    }

    fn look<const N: usize>(&self, wave: &Wave<N>, it: &Instruction, moves: bool) -> Outcome {
        let exec = wave.exec();
        for registers in sources(it, N) {
            self.waited_for(registers)?;
            let Operand::Vector(first) = registers.first else { continue };
            // Lanes of a moved source are other ones, or none.
            if exec == 0 || moves || it.dpp.is_some() && registers.first == it.source[0] || reads_other_lanes(it) {
                continue;
            }
            // What puts a byte in a register keeps the others, which may be undefined.
            if it.name == "v_perm_b32" && registers.first == it.to {
                continue;
            }
            for register in first..(first + registers.count).min(256) {
                let missing = exec & !self.written[register as usize];
                if missing != 0 {
                    let mut trap = Trap::new(FaultKind::UnwrittenRegister(format!("v{register}")));
                    trap.lane = Some(missing.trailing_zeros());
                    return Err(trap);
                }
            }
        }
        if !is_load(it) {
            for registers in results(it, N) {
                self.waited_for(registers)?;
            }
        }
        Ok(())
    }

    /// Notes what an instruction has written, by lanes that were on when it began.
    pub fn after<const N: usize>(&mut self, exec: u64, it: &Instruction) {
        self.note::<N>(exec, it, self.moved[0]);
        if let Some(second) = it.pair() {
            self.note::<N>(exec, second, self.moved[1]);
        }
    }

    fn note<const N: usize>(&mut self, exec: u64, it: &Instruction, moved: Option<u64>) {
        for registers in results(it, N) {
            let Operand::Vector(first) = registers.first else { continue };
            // Of one lane, which is known in a scalar register only.
            let lanes = if it.name.starts_with("v_writelane") { u64::MAX } else { exec };
            for register in first..(first + registers.count).min(256) {
                let written = &mut self.written[register as usize];
                *written = match moved {
                    Some(known) => *written & !lanes | lanes & known,
                    None => *written | lanes,
                };
            }
        }
        // Which register m0 leads to is not followed.
        if it.name.starts_with("v_movrel") || it.name.starts_with("v_swaprel") {
            self.written.fill(u64::MAX);
        }
        if it.name.starts_with("v_swap")
            && let Operand::Vector(other) = it.source[0]
        {
            self.written[other as usize] |= exec;
        }
        let filled = Registers { first: it.to, count: result_words(it, N) };
        match it.encoding {
            Encoding::Smem if it.to != Operand::None => self.shared.push_back(filled),
            Encoding::Ds => self.shared.push_back(filled),
            Encoding::Flat | Encoding::Scratch | Encoding::Global | Encoding::Mubuf if it.to != Operand::None => {
                self.memory.push_back(filled);
                if it.encoding == Encoding::Flat {
                    self.shared.push_back(filled);
                }
            }
            _ => {}
        }
        // With as many on their way as the counters hold, the next one waits for the oldest.
        if self.memory.len() > MOST {
            self.memory.pop_front();
        }
        if self.shared.len() > MOST && !self.shared.iter().any(is_scalar) {
            self.shared.pop_front();
        }
    }

    /// Carries out a wait: no more than so many of the newest loads are on their way.
    fn wait(&mut self, it: &Instruction) {
        let Some((memory, shared)) = waits(it, self.generation) else { return };
        while self.memory.len() > memory as usize {
            self.memory.pop_front();
        }
        // Scalar loads arrive in any order, so that those may be the ones that have; others arrive
        // in theirs.
        let scalars = self.shared.iter().filter(|registers| is_scalar(registers)).count();
        let arrived = match it.name {
            // RDNA4 counts the two apart.
            "s_wait_kmcnt" => 0,
            "s_wait_dscnt" | "s_wait_loadcnt_dscnt" => (self.shared.len() - scalars).saturating_sub(shared as usize),
            _ if shared == 0 => self.shared.len() - scalars,
            _ => self.shared.len().saturating_sub(shared as usize + scalars),
        };
        for _ in 0..arrived {
            let oldest = self.shared.iter().position(|registers| !is_scalar(registers));
            oldest.and_then(|at| self.shared.remove(at));
        }
        if shared == 0 && !it.name.ends_with("dscnt") {
            self.shared.retain(|registers| !is_scalar(registers));
        }
    }
}

fn is_load(it: &Instruction) -> bool {
    matches!(
        it.encoding,
        Encoding::Smem | Encoding::Ds | Encoding::Flat | Encoding::Scratch | Encoding::Global | Encoding::Mubuf
    )
}
