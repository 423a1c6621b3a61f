//! When the instructions of a wave would issue: in order, each when its unit is free and its
//! sources are there.
//!
//! The waves of a workgroup that share a unit are taken to go in step, so that each use of the unit
//! takes as many times its cycles; other workgroups are not there. Latencies are those that Mesa's
//! compiler reckons with (`src/amd/compiler/aco_statistics.cpp`), but for shared memory; a load
//! from memory is taken to find its line in the second level's cache.

use std::collections::VecDeque;

use super::registers::{Registers, results, sources, waits};
use crate::dispatch::Dispatch;
use crate::isa::Generation;
use crate::isa::instruction::{Instruction, Operand};
use crate::report::Kind;

/// Cycles until a load from memory arrives.
const MEMORY: u64 = 320;
/// Cycles until a load from shared memory arrives.
const SHARED: u64 = 64;
/// Cycles until a scalar load arrives: most read descriptors and constants, which are in the cache.
const SCALAR_MEMORY: u64 = 30;

/// What executes instructions, each one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Unit {
    Vector,
    /// Issues through the vector unit.
    Transcendental,
    Scalar,
    Branch,
    Memory,
    Shared,
    /// Waits and hints, which take no cycle.
    None,
}

const UNITS: usize = 7;

/// What an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timing {
    unit: Unit,
    /// Cycles that the unit is busy.
    busy: u64,
    /// Cycles until the result can be used.
    latency: u64,
}

/// What an instruction takes of a wave of `lanes`. A SIMD takes 32 of them at a time; a pair is one
/// instruction.
fn timing(it: &Instruction, kind: Kind, lanes: usize) -> Timing {
    let halves = lanes as u64 / 32;
    let vector = |per_half: u64, latency: u64| Timing { unit: Unit::Vector, busy: per_half * halves, latency };
    match kind {
        Kind::Vector | Kind::MultiplyAdd => vector(1, 5),
        Kind::Quarter => vector(4, 8),
        Kind::Double => vector(16, 22),
        Kind::Transcendental => Timing { unit: Unit::Transcendental, busy: 4 * halves, latency: 10 },
        Kind::Matrix => {
            let cycles = if it.name.ends_with("iu4") { 16 } else { 32 };
            Timing { unit: Unit::Vector, busy: cycles, latency: cycles }
        }
        Kind::Scalar => Timing { unit: Unit::Scalar, busy: 1, latency: 2 },
        Kind::ScalarMemory => Timing { unit: Unit::Scalar, busy: 1, latency: SCALAR_MEMORY },
        Kind::Branch => Timing { unit: Unit::Branch, busy: 3, latency: 0 },
        Kind::VectorMemory => Timing { unit: Unit::Memory, busy: 1, latency: MEMORY },
        Kind::Shared => Timing { unit: Unit::Shared, busy: 1, latency: SHARED },
        Kind::Wait | Kind::Barrier => Timing { unit: Unit::None, busy: 0, latency: 0 },
    }
}

/// The cycles of a wave.
#[derive(Debug)]
pub struct Timeline {
    /// When the next instruction can issue.
    now: u64,
    /// When each unit takes the next instruction.
    free: [u64; UNITS],
    /// When vector registers are there.
    vectors: Box<[u64; 256]>,
    /// When scalar registers are there.
    scalars: Box<[u64; 128]>,
    /// When loads from memory arrive, oldest first.
    memory: VecDeque<u64>,
    /// When loads from shared memory and scalar loads arrive.
    shared: VecDeque<u64>,
    /// Waves that share a unit of a SIMD.
    per_simd: u64,
    /// Waves that share the shared memory and the path to the caches of a compute unit.
    per_unit: u64,
    /// Cycles of waiting for memory.
    pub memory_wait: u64,
    /// Cycles of waiting for shared memory and scalar loads.
    pub shared_wait: u64,
}

impl Timeline {
    /// Of a wave of a launch, from its begin.
    #[must_use]
    pub fn new(dispatch: &Dispatch) -> Self {
        // A workgroup has the four SIMDs of two compute units, or the two of one.
        let units = if dispatch.both_units() { 2 } else { 1 };
        let waves = u64::from(dispatch.waves());
        Self {
            now: 0,
            free: [0; UNITS],
            vectors: Box::new([0; 256]),
            scalars: Box::new([0; 128]),
            memory: VecDeque::new(),
            shared: VecDeque::new(),
            per_simd: waves.div_ceil(2 * units),
            per_unit: waves.div_ceil(units),
            memory_wait: 0,
            shared_wait: 0,
        }
    }

    /// Cycles since the workgroup's begin.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// All waves are at a barrier since then.
    pub fn meet(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    fn ready(&self, registers: Registers) -> u64 {
        let latest = |times: &[u64], first: u16| {
            let first = usize::from(first).min(times.len());
            let end = (first + usize::from(registers.count)).min(times.len());
            times[first..end].iter().copied().max().unwrap_or(0)
        };
        match registers.first {
            Operand::Vector(first) => latest(self.vectors.as_slice(), first),
            Operand::Scalar(first) => latest(self.scalars.as_slice(), first),
            _ => 0,
        }
    }

    fn fill(&mut self, registers: Registers, at: u64) {
        let times = match registers.first {
            Operand::Vector(_) => self.vectors.as_mut_slice(),
            Operand::Scalar(_) => self.scalars.as_mut_slice(),
            _ => return,
        };
        let (Operand::Vector(first) | Operand::Scalar(first)) = registers.first else { return };
        let first = usize::from(first).min(times.len());
        let end = (first + usize::from(registers.count)).min(times.len());
        times[first..end].fill(at);
    }

    /// An instruction that was carried out. `work` is what it took of shared memory, in cycles, or
    /// of memory, in blocks.
    pub fn step(&mut self, it: &Instruction, kind: Kind, generation: Generation, lanes: usize, work: u64) {
        if let Some((memory, shared)) = waits(it, generation)
            && kind == Kind::Wait
        {
            let before = self.now;
            self.now = arrived(&mut self.memory, memory as usize, self.now);
            self.memory_wait += self.now - before;
            let before = self.now;
            self.now = arrived(&mut self.shared, shared as usize, self.now);
            self.shared_wait += self.now - before;
            return;
        }
        let timing = timing(it, kind, lanes);
        if timing.unit == Unit::None {
            return;
        }
        let both = || [Some(it), it.pair()].into_iter().flatten();
        let there = both().flat_map(|it| sources(it, lanes)).map(|registers| self.ready(registers)).max();
        let mut start = self.now.max(there.unwrap_or(0));
        let on_time = |busy: u64, shared_by: u64| busy * shared_by;
        match timing.unit {
            Unit::Memory | Unit::Shared => {
                // They queue: the wave goes on.
                let begin = start.max(self.free[timing.unit as usize]);
                let busy = on_time(work.max(timing.busy), self.per_unit);
                self.free[timing.unit as usize] = begin + busy;
                if it.to != Operand::None {
                    let queue = if timing.unit == Unit::Memory { &mut self.memory } else { &mut self.shared };
                    let at = (begin + timing.latency + busy).max(queue.back().copied().unwrap_or(0));
                    queue.push_back(at);
                } else if timing.unit == Unit::Shared {
                    // Stores are waited for too, before barriers.
                    self.shared.push_back(begin + busy);
                }
            }
            unit => {
                let issues = if unit == Unit::Transcendental { Unit::Vector } else { unit };
                start = start.max(self.free[unit as usize]).max(self.free[issues as usize]);
                self.free[unit as usize] = start + on_time(timing.busy, self.per_simd);
                if unit == Unit::Transcendental {
                    self.free[issues as usize] = start + on_time(lanes as u64 / 32, self.per_simd);
                }
                if kind == Kind::ScalarMemory {
                    self.shared.push_back(start + timing.latency);
                } else {
                    for it in both() {
                        for registers in results(it, lanes) {
                            self.fill(registers, start + timing.latency);
                        }
                    }
                }
                if unit == Unit::Branch {
                    start += timing.busy - 1;
                }
            }
        }
        self.now = start + 1;
    }
}

/// When no more than so many of a queue are on their way.
fn arrived(queue: &mut VecDeque<u64>, most: usize, now: u64) -> u64 {
    let mut at = now;
    while queue.len() > most {
        at = at.max(queue.pop_front().unwrap_or(0));
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> Timeline {
        let registers = [0; crate::pm4::SHADER_REGISTER_COUNT as usize];
        let mut timeline = Timeline::new(&Dispatch::new(Generation::Rdna3, 1, &registers, [1, 1, 1], 0));
        (timeline.per_simd, timeline.per_unit) = (1, 1);
        timeline
    }

    fn vector(name: &'static str, to: u16, from: u16) -> Instruction {
        let source = [Operand::Vector(from), Operand::Vector(from), Operand::None, Operand::None];
        Instruction { name, to: Operand::Vector(to), source, signature: "ww", results: "w", ..Instruction::default() }
    }

    #[test]
    fn results_are_waited_for() {
        let mut it = timeline();
        let mut step = |to, from, lanes| {
            it.step(&vector("v_add_f32", to, from), Kind::Vector, Generation::Rdna3, lanes, 0);
            it.now()
        };
        // One pass, two passes, and one that needs the first's result.
        assert_eq!([step(1, 0, 32), step(2, 0, 64), step(3, 1, 32)], [1, 2, 6]);
    }

    #[test]
    fn loads_are_waited_for() {
        let mut it = timeline();
        let load = Instruction { to: Operand::Vector(1), ..Instruction::default() };
        it.step(&load, Kind::Shared, Generation::Rdna3, 64, 4);
        it.step(&load, Kind::VectorMemory, Generation::Rdna3, 64, 4);
        let wait = |name| Instruction { name, ..Instruction::default() };
        it.step(&wait("s_waitcnt_lgkmcnt"), Kind::Wait, Generation::Rdna3, 64, 0);
        assert_eq!((it.now(), it.shared_wait), (SHARED + 4, SHARED + 2));
        it.step(&wait("s_waitcnt_vmcnt"), Kind::Wait, Generation::Rdna3, 64, 0);
        assert_eq!(it.now(), 1 + MEMORY + 4);
    }

    #[test]
    fn waves_share_units() {
        let mut it = timeline();
        it.per_simd = 2;
        for register in 1..4 {
            it.step(&vector("v_xor_b32", register, 0), Kind::Vector, Generation::Rdna2, 64, 0);
        }
        assert_eq!(it.now(), 9);
    }
}
