//! Dispatches: what a walker and the state before it ask for.

use crate::batch::{Command, Kind};
use crate::execute::surface::Surface;
use crate::isa::Generation;
use crate::memory::Memory;

/// State that commands set and launches use.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Of messages that name no surface, and of scratch.
    pub general: u64,
    /// Of surface states and binding tables.
    pub surface: u64,
    /// Of interface descriptors and constants.
    pub dynamic: u64,
    /// Of code.
    pub instruction: u64,
    /// Of surface states that shaders name themselves.
    pub bindless: u64,
    /// Of binding tables, where it is not that of surfaces.
    pub tables: Option<u64>,
    /// Interface descriptors, from the dynamic state on.
    pub descriptors: u32,
    /// Constants, from the dynamic state on.
    pub constants: u32,
    /// Bytes of them.
    pub constant_bytes: u32,
    /// Where scratch starts, from the general state on, and bytes of it for a thread.
    pub scratch: (u64, u32),
    /// Where the state of the surface of scratch is, from the surface states on, on Gen12.5; 0 for
    /// none.
    pub scratch_surface: u32,
}

/// One launch of a compute shader.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Whose machine code.
    pub generation: Generation,
    /// The number of the launch, from 1, for messages.
    pub number: u32,
    /// Where the code is.
    pub code: u64,
    /// Channels of a thread.
    pub channels: u32,
    /// Threads of a workgroup.
    pub threads: u32,
    /// The channels that are on in the last thread of a workgroup.
    pub last: u32,
    /// One past the last workgroup of each axis.
    pub groups: [u32; 3],
    /// The first workgroup of each axis.
    pub start: [u32; 3],
    /// Shared memory of a workgroup, in bytes.
    pub shared: u32,
    /// Registers that all threads get.
    pub common: Vec<u8>,
    /// Registers of each thread, those of the first first.
    pub own: Vec<u8>,
    /// Bytes of the registers of a thread.
    pub own_bytes: usize,
    /// The first word that all threads get.
    pub word: u32,
    /// Numbers of the invocations of each thread: registers like [`Self::own`].
    pub own_first: bool,
    /// The address of the binding table.
    pub table: u64,
    /// Base addresses.
    pub state: State,
}

/// What is wrong with a launch before it begins.
pub type Malformed = (&'static str, u64);

impl Dispatch {
    /// The dispatch that a walker asks for. `counts` are from registers, if it says so.
    ///
    /// # Errors
    ///
    /// State outside all buffers.
    pub fn new(
        generation: Generation,
        number: u32,
        walker: &Command,
        counts: Option<[u32; 3]>,
        state: &State,
        memory: &Memory,
    ) -> Result<Self, Malformed> {
        if walker.kind == Kind::ComputeWalker {
            return Self::of_compute(generation, number, walker, counts, state, memory);
        }
        let at = state.dynamic + u64::from(state.descriptors) + 32 * u64::from(walker.bits(1, 5, 0));
        let mut bytes = [0; 32];
        if !memory.read(at, &mut bytes) {
            return Err(("an interface descriptor outside all buffers", at));
        }
        let word = |k: usize| u32::from_le_bytes([bytes[4 * k], bytes[4 * k + 1], bytes[4 * k + 2], bytes[4 * k + 3]]);
        let kernel = (u64::from(word(0)) | u64::from(word(1) & 0xffff) << 32) & !63;
        let threads = word(6) & 0x3ff;
        let (common, own_bytes) = ((word(7) & 255) as usize * 32, (word(5) >> 16) as usize * 32);
        let from = state.dynamic + u64::from(state.constants);
        let mut constants = vec![0; common + own_bytes * threads as usize];
        if !memory.read(from, &mut constants) {
            return Err(("constants outside all buffers", from));
        }
        let own = constants.split_off(common);
        let shared = match word(6) >> 16 & 31 {
            0 => 0,
            size => 512 << size,
        };
        let counts = counts.unwrap_or([walker.word(7), walker.word(10), walker.word(12)]);
        Ok(Self {
            generation,
            number,
            code: state.instruction + kernel,
            channels: 8 << walker.bits(4, 31, 30),
            threads,
            last: walker.word(13),
            groups: counts,
            start: [walker.word(5), walker.word(8), walker.word(11)],
            shared,
            common: constants,
            own,
            own_bytes,
            word: 0,
            own_first: false,
            table: state.tables.unwrap_or(state.surface) + u64::from(word(4) & 0xffe0),
            state: state.clone(),
        })
    }

    /// The dispatch of a walker that has the interface descriptor in itself.
    fn of_compute(
        generation: Generation,
        number: u32,
        walker: &Command,
        counts: Option<[u32; 3]>,
        state: &State,
        memory: &Memory,
    ) -> Result<Self, Malformed> {
        let mut state = state.clone();
        if state.scratch_surface != 0 {
            let at = state.surface + u64::from(state.scratch_surface);
            let surface = Surface::read(memory, at).map_err(|_| ("the surface of scratch outside all buffers", at))?;
            state.scratch = (surface.base, surface.pitch);
        }
        let threads = walker.bits(23, 9, 0);
        let channels = 8 << walker.bits(4, 31, 30);
        let sizes = [(9, 0), (19, 10), (29, 20)].map(|(last, first)| walker.bits(6, last, first) + 1);
        if walker.bits(4, 24, 22) != 0 || walker.bits(4, 21, 19) != 0 {
            return Err(("the player lacks this order of invocations", 0));
        }
        if walker.bits(26, 1, 0) != 0 {
            return Err(("the player lacks a write at the end of a launch", 0));
        }
        // Numbers of the invocations along the axes that are asked for, 16 bits of each channel.
        let axes: Vec<usize> = (0..3).filter(|axis| walker.bits(4, 28, 26) >> axis & 1 != 0).collect();
        let row = (2 * channels as usize).max(32);
        let mut own = Vec::new();
        for first in (0..threads).map(|thread| thread * channels) {
            for axis in &axes {
                let start = own.len();
                for at in first..first + channels {
                    let id = match axis {
                        0 => at % sizes[0],
                        1 => at / sizes[0] % sizes[1],
                        _ => at / sizes[0] / sizes[1],
                    };
                    own.extend((id as u16).to_le_bytes());
                }
                own.resize(start + row, 0);
            }
        }
        let inline = walker.bits(4, 25, 25) != 0;
        let common = if inline { (31..39).flat_map(|at| walker.word(at).to_le_bytes()).collect() } else { Vec::new() };
        Ok(Self {
            generation,
            number,
            code: state.instruction + u64::from(walker.word(18) & !63),
            channels,
            threads,
            last: walker.word(5),
            groups: counts.unwrap_or([walker.word(7), walker.word(8), walker.word(9)]),
            start: [walker.word(10), walker.word(11), walker.word(12)],
            shared: match walker.bits(23, 20, 16) {
                0 => 0,
                size => 512 << size,
            },
            common,
            own,
            own_bytes: axes.len() * row,
            word: walker.word(3) & !63,
            own_first: true,
            table: state.tables.unwrap_or(state.surface) + u64::from(walker.word(22) & 0x1f_ffe0),
            state,
        })
    }

    /// Bytes of scratch of a thread.
    #[must_use]
    pub fn scratch(&self) -> usize {
        if self.state.scratch.0 == 0 { 0 } else { self.state.scratch.1 as usize }
    }

    /// How many workgroups there are.
    #[must_use]
    pub fn group_count(&self) -> u64 {
        (0..3).map(|axis| u64::from(self.groups[axis].saturating_sub(self.start[axis]))).product()
    }

    /// A workgroup by its number, of which the first axis runs fastest.
    #[must_use]
    pub fn group(&self, number: u64) -> [u32; 3] {
        let size = |axis: usize| u64::from(self.groups[axis] - self.start[axis]);
        let (x, rest) = (number % size(0), number / size(0));
        let id = [x, rest % size(1), rest / size(1)];
        std::array::from_fn(|axis| self.start[axis] + id[axis] as u32)
    }
}
