//! Carries out the commands of batches, in order.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::batch::{self, Command, Kind};
use crate::dispatch::{Dispatch, State};
use crate::fault::{Fault, FaultKind};
use crate::isa::{Generation, Program};
use crate::memory::Memory;
use crate::pool::{Job, Launch, Pool};
use crate::report::{Options, Record, append};

/// What ends a submission.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Problem {
    /// A launch's.
    #[error("launch {number} of the kernel at {code:#x}: {fault}")]
    Launch {
        /// Which launch of the process.
        number: u32,
        /// Where its code is.
        code: u64,
        /// What it did.
        fault: Box<Fault>,
    },
    /// A command that reaches outside all buffers.
    #[error("{0} at {1:#x}, outside all buffers")]
    Outside(&'static str, u64),
    /// A command that the player lacks.
    #[error("the player lacks command {0:#010x} at {1:#x}")]
    Command(u32, u64),
    /// A GPU that the player lacks.
    #[error("the player has no GPU {0:?}")]
    Gpu(String),
    /// A batch that waits for what nothing will write.
    #[error("a wait at {0:#x} for what no earlier command wrote")]
    Wait(u64),
    /// Batches that call each other without end.
    #[error("more than a hundred million commands in a batch")]
    Endless,
}

/// Registers of the command streamer that are more than a value.
mod register {
    /// Workgroups of an indirect dispatch, three words.
    pub const COUNTS: u32 = 0x2500;
    /// General registers of 64 bits.
    pub const GENERAL: u32 = 0x2600;
    /// The results of predicates, of all commands and of jumps.
    pub const PREDICATE: u32 = 0x2418;
    pub const PREDICATE_1: u32 = 0x241c;
    /// The clock, of 64 bits.
    pub const CLOCK: u32 = 0x2358;
}

/// Where submissions go. There is one for all of a process's queues.
pub struct Queue {
    memory: Arc<Memory>,
    options: Arc<Options>,
    generation: Option<Generation>,
    registers: FxHashMap<u32, u32>,
    /// What commands are left out for: 0 for nothing.
    predicate: u32,
    state: State,
    /// Kernels by address. Memory is used again, so that an address may have had several.
    kernels: FxHashMap<u64, Vec<Arc<Program>>>,
    launches: u32,
    pool: Option<Pool>,
    record: Arc<std::sync::Mutex<Record>>,
}

impl Queue {
    /// One that nothing was submitted to.
    #[must_use]
    pub fn new(
        memory: Arc<Memory>,
        options: Arc<Options>,
        generation: Option<Generation>,
        record: Arc<std::sync::Mutex<Record>>,
    ) -> Self {
        Self {
            memory,
            options,
            generation,
            registers: FxHashMap::default(),
            predicate: 0,
            state: State::default(),
            kernels: FxHashMap::default(),
            launches: 0,
            pool: None,
            record,
        }
    }

    /// Carries out the batch at an address.
    ///
    /// # Errors
    ///
    /// The first problem, after which the rest of the batch is left out, unless options say to go
    /// on after those of launches.
    pub fn submit(&mut self, address: u64) -> Result<(), Problem> {
        let (mut at, mut callers) = (address & 0xffff_ffff_ffff, Vec::new());
        for _ in 0..100_000_000 {
            let Some(command) = batch::read(&self.memory, at) else { return Err(Problem::Outside("commands", at)) };
            if self.options.trace > 1 {
                eprintln!("intel-player: {at:#x} {:?} {:08x?}", command.kind, command.words);
            }
            let next = at + 4 * command.words.len() as u64;
            at = match command.kind {
                Kind::SetPredicate => {
                    self.predicate = command.bits(0, 3, 0);
                    next
                }
                _ if self.is_off(&command) => next,
                Kind::BatchStart => {
                    // A batch of the second level returns.
                    if command.bits(0, 22, 22) != 0 {
                        callers.push(next);
                    }
                    command.address(1) & !3
                }
                Kind::BatchEnd => match callers.pop() {
                    Some(caller) => caller,
                    None => return Ok(()),
                },
                _ => {
                    match self.carry_out(&command, at) {
                        Err(problem @ Problem::Launch { .. }) if self.options.go_on => {
                            eprintln!("intel-player: {problem}");
                        }
                        other => other?,
                    }
                    next
                }
            };
        }
        Err(Problem::Endless)
    }

    /// Whether a command is left out, as a predicate says.
    fn is_off(&self, command: &Command) -> bool {
        let result = |register: u32| self.get(register) & 1 != 0;
        let jump = command.kind == Kind::BatchStart && command.bits(0, 15, 15) != 0;
        match self.predicate {
            // Before Gen12.5 only jumps are predicated, each by itself.
            0 => jump && self.generation != Some(Generation::XeHpg) && !result(register::PREDICATE_1),
            3 => !result(register::PREDICATE),
            4 => result(register::PREDICATE),
            _ => true,
        }
    }

    fn carry_out(&mut self, command: &Command, at: u64) -> Result<(), Problem> {
        let unknown = || Problem::Command(command.word(0), at);
        match command.kind {
            Kind::Nothing | Kind::BatchStart | Kind::BatchEnd | Kind::SetPredicate => {}
            Kind::StoreValue => {
                let bytes = if command.bits(0, 21, 21) != 0 { 8 } else { 4 };
                self.store(command.address(1) & !3, command.word(3), command.word(4), bytes)?;
            }
            Kind::LoadRegisterValue => {
                for pair in command.words[1..].chunks_exact(2) {
                    self.set(pair[0] & 0x7f_fffc, pair[1]);
                }
            }
            Kind::StoreRegister => {
                let value = self.get(command.word(1) & 0x7f_fffc);
                self.store(command.address(2) & !3, value, 0, 4)?;
            }
            Kind::LoadRegister => {
                let value = self.load(command.address(2) & !3)?;
                self.set(command.word(1) & 0x7f_fffc, value);
            }
            Kind::CopyRegister => {
                let value = self.get(command.word(1) & 0x7f_fffc);
                self.set(command.word(2) & 0x7f_fffc, value);
            }
            Kind::CopyMemory => {
                let value = self.load(command.address(3) & !3)?;
                self.store(command.address(1) & !3, value, 0, 4)?;
            }
            Kind::Math => self.math(&command.words[1..]).ok_or_else(unknown)?,
            Kind::SemaphoreWait => {
                let (address, data) = (command.address(2) & !3, command.word(1));
                // Of a register, or of memory.
                let value = match command.bits(0, 16, 16) {
                    0 => self.load(address)?,
                    _ => self.get(address as u32),
                };
                let reached = match command.bits(0, 14, 12) {
                    0 => value > data,
                    1 => value >= data,
                    2 => value < data,
                    3 => value <= data,
                    4 => value == data,
                    _ => value != data,
                };
                if !reached {
                    return Err(Problem::Wait(address));
                }
            }
            Kind::FlushWord => match command.bits(0, 15, 14) {
                0 => {}
                1 => self.store(command.address(1) & !7, command.word(3), command.word(4), 8)?,
                3 => self.store_clock(command.address(1) & !7)?,
                _ => return Err(unknown()),
            },
            Kind::PipeControl => match command.bits(1, 15, 14) {
                0 => {}
                1 => self.store(command.address(2) & !3, command.word(4), command.word(5), 8)?,
                3 => self.store_clock(command.address(2) & !3)?,
                _ => return Err(unknown()),
            },
            Kind::StateBaseAddress => {
                let state = &mut self.state;
                let bases = [
                    (1, &mut state.general),
                    (4, &mut state.surface),
                    (6, &mut state.dynamic),
                    (10, &mut state.instruction),
                    (16, &mut state.bindless),
                ];
                for (word, base) in bases {
                    if command.bits(word, 0, 0) != 0 {
                        *base = command.address(word) & !0xfff;
                    }
                }
            }
            Kind::VfeState => {
                let base = command.address(1) & !0x3ff;
                self.state.scratch = (base, 1024 << command.bits(1, 3, 0));
            }
            Kind::CurbeLoad => {
                (self.state.constants, self.state.constant_bytes) = (command.word(3), command.bits(2, 16, 0));
            }
            Kind::DescriptorLoad => self.state.descriptors = command.word(3),
            Kind::Walker | Kind::ComputeWalker => self.launch(command)?,
            Kind::CfeState => self.state.scratch_surface = (command.word(1) & !0x3ff) >> 4,
            Kind::TablePool => {
                // Gen12 can turn the pool off, and does in these kernels; Gen12.5 has always one.
                let enabled = command.bits(1, 11, 11) != 0 || self.generation == Some(Generation::XeHpg);
                self.state.tables = enabled.then_some(command.address(1) & !0xfff);
            }
            Kind::Unknown => return Err(unknown()),
        }
        Ok(())
    }

    fn get(&self, register: u32) -> u32 {
        match register {
            register::CLOCK => clock() as u32,
            _ if register == register::CLOCK + 4 => (clock() >> 32) as u32,
            // Requests to invalidate tables, which are done at once.
            0x4200..0x4300 => 0,
            _ => self.registers.get(&register).copied().unwrap_or(0),
        }
    }

    fn set(&mut self, register: u32, value: u32) {
        self.registers.insert(register, value);
    }

    fn load(&self, address: u64) -> Result<u32, Problem> {
        let mut bytes = [0; 4];
        if !self.memory.read(address, &mut bytes) {
            return Err(Problem::Outside("read", address));
        }
        Ok(u32::from_le_bytes(bytes))
    }

    fn store(&self, address: u64, low: u32, high: u32, bytes: usize) -> Result<(), Problem> {
        let value = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
        if self.memory.write(address, &value[..bytes]) { Ok(()) } else { Err(Problem::Outside("write", address)) }
    }

    fn store_clock(&self, address: u64) -> Result<(), Problem> {
        let now = clock();
        self.store(address, now as u32, (now >> 32) as u32, 8)
    }

    /// Arithmetic of the general registers: two inputs, an accumulator and its flags.
    fn math(&mut self, operations: &[u32]) -> Option<()> {
        let (mut inputs, mut sum, mut zero, mut carry) = ([0u64; 2], 0u64, false, false);
        for &operation in operations {
            let (code, to, from) = (operation >> 20, operation >> 10 & 0x3ff, operation & 0x3ff);
            match code {
                0 => {}
                // LOAD, LOADINV, LOAD0, LOAD1: the latter is all ones, as 0x400 inverts each.
                0x080 | 0x480 | 0x081 | 0x481 => {
                    let value = if code & 0xff == 0x81 { 0 } else { self.general(from)? };
                    let value = if code & 0x400 != 0 { !value } else { value };
                    *inputs.get_mut((to as usize).wrapping_sub(0x20))? = value;
                }
                0x100..=0x104 => {
                    let [a, b] = inputs;
                    (sum, carry) = match code {
                        0x100 => a.overflowing_add(b),
                        0x101 => a.overflowing_sub(b),
                        0x102 => (a & b, false),
                        0x103 => (a | b, false),
                        _ => (a ^ b, false),
                    };
                    zero = sum == 0;
                }
                // STORE, STOREINV
                0x180 | 0x580 => {
                    let flag = |set: bool| if set { u64::MAX } else { 0 };
                    let value = match from {
                        0x31 => sum,
                        0x32 => flag(zero),
                        0x33 => flag(carry),
                        _ => return None,
                    };
                    let value = if code == 0x580 { !value } else { value };
                    if to > 15 {
                        return None;
                    }
                    self.set(register::GENERAL + 8 * to, value as u32);
                    self.set(register::GENERAL + 8 * to + 4, (value >> 32) as u32);
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn general(&self, number: u32) -> Option<u64> {
        let at = register::GENERAL + 8 * number;
        (number < 16).then(|| u64::from(self.get(at)) | u64::from(self.get(at + 4)) << 32)
    }

    fn launch(&mut self, walker: &Command) -> Result<(), Problem> {
        self.launches += 1;
        let number = self.launches;
        let Some(generation) = self.generation else {
            return Err(Problem::Gpu(std::env::var("INTEL_STUB_GPU_PLATFORM").unwrap_or_default()));
        };
        if walker.bits(0, 8, 8) != 0 {
            return Err(Problem::Command(walker.word(0), 0));
        }
        let indirect = walker.bits(0, 10, 10) != 0;
        let counts = indirect.then(|| [0, 4, 8].map(|byte| self.get(register::COUNTS + byte)));
        let dispatch = Dispatch::new(generation, number, walker, counts, &self.state, &self.memory).map_err(
            |(what, address)| Problem::Launch {
                number,
                code: address,
                fault: Box::new(Fault::new(FaultKind::Other(what.into()), "", address)),
            },
        )?;
        if dispatch.group_count() == 0 || dispatch.threads == 0 {
            return Ok(());
        }
        let code = dispatch.code;
        let failed = |fault| Problem::Launch { number, code, fault: Box::new(fault) };
        let program = self.program(generation, code).map_err(failed)?;
        if self.pool.as_ref().is_none_or(|pool| !pool.is_here()) {
            self.pool = Some(Pool::new(self.options.threads));
        }
        let Some(pool) = &self.pool else { unreachable!("made above") };
        let begin = Instant::now();
        let (memory, options) = (self.memory.clone(), self.options.clone());
        let job = Arc::new(Job::new(Launch { program, dispatch, memory, options }));
        let outcome = pool.run(&job);
        let time = begin.elapsed();
        let dispatch = &job.launch.dispatch;
        if self.options.trace > 0 {
            let done = outcome.as_ref().map_or(0, |counts| counts.instructions);
            let [x, y, z] = dispatch.groups;
            eprintln!(
                "intel-player: launch {number}, kernel at {code:#x}, {x}x{y}x{z} workgroups of {} threads of {} channels, \
                 {} bytes of shared memory: {done} instructions in {time:.1?}",
                dispatch.threads, dispatch.channels, dispatch.shared,
            );
        }
        let counts = outcome.map_err(failed)?;
        self.record.lock().unwrap_or_else(PoisonError::into_inner).add(&counts, time);
        Ok(())
    }

    /// The decoded code at an address.
    fn program(&mut self, generation: Generation, address: u64) -> Result<Arc<Program>, Fault> {
        let outside = || Fault::new(FaultKind::Other("code outside all buffers".into()), "", address);
        let code = self.memory.words(address).ok_or_else(outside)?;
        let kernels = self.kernels.entry(address).or_default();
        if let Some(kernel) = kernels.iter().find(|kernel| code.starts_with(kernel.code())) {
            return Ok(kernel.clone());
        }
        let program = Arc::new(Program::decode(generation, code, address)?);
        if let Some(path) = &self.options.list {
            let lines = program.instructions.iter().map(|it| {
                let mark = if it.is_target { '>' } else { ' ' };
                format!("{mark}{:6x}  {it}\n", it.at)
            });
            append(path, &format!("kernel at {address:#x}\n{}", lines.collect::<String>()));
        }
        kernels.push(program.clone());
        Ok(program)
    }
}

/// The clock of timestamps: 19.2 MHz.
fn clock() -> u64 {
    (crate::shim::now() as u64 / 1000) * 192 / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_of_registers() {
        let mut queue = Queue::new(Arc::default(), Arc::default(), None, Arc::default());
        queue.set(register::GENERAL, 5);
        let operation = |code: u32, to: u32, from: u32| code << 20 | to << 10 | from;
        let (load, invert, ones, and, store) = (0x080, 0x480, 0x481, 0x102, 0x180);
        let (a, b, sum) = (0x20, 0x21, 0x31);
        // The inverse of register 0 and all ones, into register 1.
        let operations =
            [operation(invert, a, 0), operation(ones, b, 0), operation(and, 0, 0), operation(store, 1, sum)];
        assert_eq!(queue.math(&operations), Some(()));
        assert_eq!(queue.general(1), Some(!5));
        // Both add up to all ones, of which nothing is left over.
        let operations =
            [operation(load, a, 0), operation(load, b, 1), operation(0x100, 0, 0), operation(store, 2, sum)];
        assert_eq!(queue.math(&operations), Some(()));
        assert_eq!(queue.general(2), Some(u64::MAX));
        assert_eq!(queue.math(&[operation(0x7ff, 0, 0)]), None);
    }
}
