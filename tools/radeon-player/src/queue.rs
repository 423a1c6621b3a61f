//! Carries out the commands of submissions, in order.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::dispatch::Dispatch;
use crate::execute::hardware::ticks;
use crate::fault::{Fault, FaultKind};
use crate::isa::{Generation, Program};
use crate::memory::{Conflict, Memory};
use crate::pm4::{self, Command, SHADER_REGISTER_COUNT, Source, Target, Unreadable};
use crate::pool::{Job, Launch, Pool};
use crate::report::{Options, Record, append};
use crate::sdma;

/// What ends a submission.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Problem {
    /// A launch's.
    #[error("launch {number} of kernel {hash:08x}: {fault}")]
    Launch {
        /// Which launch of the process.
        number: u32,
        /// The hash of its code, by which counts and disassemblies name it.
        hash: u32,
        /// What it did.
        fault: Fault,
    },
    /// The commands themselves.
    #[error(transparent)]
    Commands(#[from] Unreadable),
    /// A command that reaches outside all buffers.
    #[error("{0} at {1:#x}, outside all buffers")]
    Outside(&'static str, u64),
    /// The command processor touches what a launch does without a barrier between.
    #[error("{what} at {:#x}, which launch {} {} without a barrier between", .with.address, .with.other, if .with.wrote { "wrote" } else { "read" })]
    Race {
        /// What it does.
        what: &'static str,
        /// With which launch.
        with: Conflict,
    },
    /// A submission to an engine of video, by its number in the kernel's interface.
    #[error("the player lacks engine {0}")]
    Engine(u32),
    /// A packet that the player lacks.
    #[error("the player lacks packet {operation:#04x}{}", .name.map(|name| format!(" ({name})")).unwrap_or_default())]
    Packet {
        /// Its number.
        operation: u32,
        /// Its name, or whose it is.
        name: Option<&'static str>,
    },
}

/// A kernel that ran.
struct Kernel {
    program: Arc<Program>,
    hash: u32,
}

/// Where submissions go. There is one for all of a process's queues.
pub struct Queue {
    memory: Arc<Memory>,
    options: Arc<Options>,
    generation: Generation,
    registers: [u32; SHADER_REGISTER_COUNT as usize],
    /// Kernels by address. Memory is used again, so that an address may have had several.
    kernels: FxHashMap<u64, Vec<Kernel>>,
    launches: u32,
    /// Where counts of workgroups are counted from.
    base: u64,
    pool: Option<Pool>,
    record: Arc<std::sync::Mutex<Record>>,
}

impl Queue {
    /// One that nothing was submitted to.
    #[must_use]
    pub fn new(
        memory: Arc<Memory>,
        options: Arc<Options>,
        generation: Generation,
        record: Arc<std::sync::Mutex<Record>>,
    ) -> Self {
        Self {
            memory,
            options,
            generation,
            registers: [0; SHADER_REGISTER_COUNT as usize],
            kernels: FxHashMap::default(),
            launches: 0,
            base: 0,
            pool: None,
            record,
        }
    }

    /// Carries out the commands of `words` words at an address.
    ///
    /// # Errors
    ///
    /// The first problem, after which the rest of the submission is left out, unless options say to
    /// go on.
    pub fn submit(&mut self, address: u64, words: u32) -> Result<(), Problem> {
        // A submission waits for the ones before: the driver orders them by semaphores, which are
        // not followed here.
        self.memory.barrier(self.launches);
        let commands = pm4::read(&self.memory, address, words)?;
        self.carry_out_all(commands)
    }

    /// Carries out the packets of a DMA engine.
    ///
    /// # Errors
    ///
    /// As of [`Self::submit`].
    pub fn submit_dma(&mut self, address: u64, words: u32) -> Result<(), Problem> {
        self.memory.barrier(self.launches);
        let commands = sdma::read(&self.memory, address, words)?;
        self.carry_out_all(commands)
    }

    fn carry_out_all(&mut self, commands: Vec<Command>) -> Result<(), Problem> {
        for command in commands {
            if self.options.trace > 1 {
                eprintln!("radeon-player: {command:x?}");
            }
            if let Err(problem) = self.carry_out(command) {
                if !self.options.go_on {
                    return Err(problem);
                }
                eprintln!("radeon-player: {problem}");
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, command: Command) -> Result<(), Problem> {
        match command {
            Command::SetRegisters { first, values } => {
                for (register, value) in self.registers.iter_mut().skip(first as usize).zip(values) {
                    *register = value;
                }
            }
            Command::Dispatch(counts, initiator) => self.launch(counts, initiator)?,
            Command::DispatchIndirect { address, initiator } => self.launch_indirect(address, initiator)?,
            Command::DispatchFromBase { offset, initiator } => {
                self.launch_indirect(self.base.wrapping_add(offset.into()), initiator)?;
            }
            Command::Copy { from, to, bytes } => {
                let mut block = vec![0; bytes as usize];
                if !self.memory.read(from, &mut block) {
                    return Err(Problem::Outside("copy from", from));
                }
                self.look("copy", from, block.len(), false)?;
                self.look("copy", to, block.len(), true)?;
                self.write(to, &block)?;
            }
            Command::Fill { to, value, bytes } => {
                let words = bytes as usize / 4;
                self.look("fill", to, bytes as usize, true)?;
                self.write(to, &value.to_le_bytes().repeat(words))?;
            }
            Command::Write { mut to, values, advance } => {
                self.look("write", to, if advance { values.len() * 4 } else { 4 }, true)?;
                for value in values {
                    self.write(to, &value.to_le_bytes())?;
                    to += if advance { 4 } else { 0 };
                }
            }
            Command::CopyValue { from, to, wide } => self.copy_value(from, to, if wide { 8 } else { 4 })?,
            Command::Barrier => self.memory.barrier(self.launches),
            Command::Conditional { address, commands } => {
                let mut word = [0; 4];
                if !self.memory.read(address, &mut word) {
                    return Err(Problem::Outside("condition", address));
                }
                self.look("condition", address, 4, false)?;
                if word != [0; 4] {
                    commands.into_iter().try_for_each(|command| self.carry_out(command))?;
                }
            }
            Command::SetBase(address) => self.base = address,
            Command::Unknown { operation, name } => return Err(Problem::Packet { operation, name }),
        }
        Ok(())
    }

    fn write(&self, to: u64, bytes: &[u8]) -> Result<(), Problem> {
        if self.memory.write(to, bytes) { Ok(()) } else { Err(Problem::Outside("write", to)) }
    }

    /// In strict runs, whether launches that may still run touch what a packet does.
    fn look(&self, what: &'static str, address: u64, bytes: usize, write: bool) -> Result<(), Problem> {
        if !self.options.strict {
            return Ok(());
        }
        self.memory.look(address, bytes as u64, write).map_err(|with| Problem::Race { what, with })
    }

    fn copy_value(&mut self, from: Source, to: Target, bytes: usize) -> Result<(), Problem> {
        let mut value = [0; 8];
        match from {
            Source::Memory(address) => {
                if !self.memory.read(address, &mut value[..bytes]) {
                    return Err(Problem::Outside("read", address));
                }
            }
            Source::Value(it) => value = it.to_le_bytes(),
            Source::Clock => value = ticks().to_le_bytes(),
            Source::Register => {}
        }
        match to {
            Target::Memory(address) => self.write(address, &value[..bytes])?,
            Target::Register(index) => {
                self.registers[index as usize] = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
            }
            Target::Nowhere => {}
        }
        Ok(())
    }

    /// A launch whose counts of workgroups are in memory.
    fn launch_indirect(&mut self, address: u64, initiator: u32) -> Result<(), Problem> {
        let mut words = [[0; 4]; 3];
        if !self.memory.read(address, words.as_flattened_mut()) {
            return Err(Problem::Outside("counts of workgroups", address));
        }
        self.look("counts of workgroups", address, 12, false)?;
        self.launch(words.map(u32::from_le_bytes), initiator)
    }

    fn launch(&mut self, counts: [u32; 3], initiator: u32) -> Result<(), Problem> {
        self.launches += 1;
        let dispatch = Dispatch::new(self.generation, self.launches, &self.registers, counts, initiator);
        if dispatch.group_count() == 0 || dispatch.thread_count() == 0 {
            return Ok(());
        }
        let number = self.launches;
        let threads = dispatch.thread_count();
        if threads > MOST_THREADS {
            let kind = FaultKind::Other(format!("a workgroup of {threads} threads"));
            return Err(Problem::Launch { number, hash: 0, fault: Fault::new(kind, "", dispatch.code) });
        }
        let (program, hash) =
            self.program(dispatch.code).map_err(|fault| Problem::Launch { number, hash: 0, fault })?;
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
            let ([x, y, z], [tx, ty, tz]) = (dispatch.groups, dispatch.threads);
            eprintln!(
                "radeon-player: launch {number}, kernel {hash:08x} at {:#x}, {x}x{y}x{z} workgroups of {tx}x{ty}x{tz} \
                 in waves of {}, {} bytes of shared memory, {} of scratch a lane: {done} instructions in {time:.1?}",
                dispatch.code,
                dispatch.wave,
                dispatch.shared(),
                dispatch.scratch,
            );
        }
        match outcome {
            Ok(counts) => {
                let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
                record.add(hash, dispatch, job.launch.program.code().len(), &counts, time);
                Ok(())
            }
            Err(fault) => Err(Problem::Launch { number, hash, fault }),
        }
    }

    /// The decoded code at an address.
    fn program(&mut self, address: u64) -> Result<(Arc<Program>, u32), Fault> {
        let outside = || Fault::new(FaultKind::Other("code outside all buffers".into()), "", address);
        let code = self.memory.words(address).ok_or_else(outside)?;
        let kernels = self.kernels.entry(address).or_default();
        let known = kernels.iter().find(|kernel| code.starts_with(kernel.program.code()));
        if let Some(kernel) = known {
            return Ok((kernel.program.clone(), kernel.hash));
        }
        let program = Arc::new(Program::decode(self.generation, code, address)?);
        let padded = code[program.code().len()..].iter().take_while(|word| **word == PADDING);
        let hash = hash(program.code().iter().chain(padded).copied());
        if let Some(path) = &self.options.list {
            let lines = program.instructions.iter().map(|it| format!("{:6x}  {it}\n", it.at));
            append(path, &format!("kernel {hash:08x}\n{}", lines.collect::<String>()));
        }
        kernels.push(Kernel { program: program.clone(), hash });
        Ok((program, hash))
    }
}

/// What the driver's statistics call the hash of a shader: a CRC-32 without its last inversion,
/// over the code and the padding that follows it.
#[must_use]
pub fn hash(words: impl Iterator<Item = u32>) -> u32 {
    words.flat_map(u32::to_le_bytes).fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 != 0 { 0xedb8_8320 } else { 0 })
    })
}

/// Threads of the largest workgroup that a GPU runs.
const MOST_THREADS: u32 = 1024;

/// `s_code_end`, which the driver pads code with.
const PADDING: u32 = 0xbf9f_0000;
