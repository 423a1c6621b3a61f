//! Options from the environment, and counts of what ran.

use std::path::PathBuf;

/// On which side of the exact value approximate instructions put their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The nearest value.
    #[default]
    Nearest,
    /// The next value above, where the nearest is below the exact one.
    Up,
    /// The next value below, where the nearest is above the exact one.
    Down,
}

/// What the environment asks for. The crate's README says the same of users.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `RADEON_PLAYER_STRICT`: checks beyond what hardware notices. Accesses outside all buffers are faults without it too.
    pub strict: bool,
    /// `RADEON_PLAYER_APPROXIMATE`: `up` or `down`.
    pub approximate: Side,
    /// Whether [`Counts`] are kept: `RADEON_PLAYER_COUNTS` or `RADEON_PLAYER_SUM`.
    pub count: bool,
    /// `RADEON_PLAYER_THREADS`: workgroups at a time; without it, the processors.
    pub threads: usize,
    /// `RADEON_PLAYER_TRACE`: 1 for a line of each dispatch, 2 for one of each packet and request.
    pub trace: u32,
    /// `RADEON_PLAYER_SUM`: a line at the end.
    pub sum: bool,
    /// `RADEON_PLAYER_COUNTS`: the file that counts are appended to, a line of JSON for each kernel.
    pub counts: Option<PathBuf>,
    /// `RADEON_PLAYER_FAULTS`: `continue` reports a fault and goes on with the next launch; otherwise the device is
    /// lost.
    pub go_on: bool,
}

/// Kinds of wave instructions that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Vector multiply-add, also packed and of two halves of a pair.
    MultiplyAdd,
    /// Other vector arithmetic.
    Vector,
    /// `v_rcp`, `v_exp` and their like, which issue at a quarter of the rate.
    Transcendental,
    /// Scalar arithmetic.
    Scalar,
    /// Scalar loads.
    ScalarMemory,
    /// Loads, stores and atomics of memory and scratch.
    VectorMemory,
    /// Shared memory, also what permutes lanes through it.
    Shared,
    /// Matrix units.
    Matrix,
    /// Waits and hints of the scheduler.
    Wait,
    /// Branches and the end.
    Branch,
    /// Barriers.
    Barrier,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 11;
    /// Their names in the file of counts.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "multiply_add",
        "vector",
        "transcendental",
        "scalar",
        "scalar_memory",
        "vector_memory",
        "shared",
        "matrix",
        "wait",
        "branch",
        "barrier",
    ];
}

/// What ran. Kept by each thread and added up at the end of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Wave instructions, always counted.
    pub instructions: u64,
    /// Wave instructions by kind, if [`Options::count`].
    pub kinds: [u64; Kind::COUNT],
    /// Dual-issue pairs, each one instruction above, if [`Options::count`].
    pub pairs: u64,
    /// Cycles that accesses of shared memory wait for a bank of 32, beyond one each, if [`Options::count`].
    pub bank_conflicts: u64,
    /// Bytes that active lanes load from memory, if [`Options::count`].
    pub bytes_loaded: u64,
    /// Bytes that active lanes store to memory, if [`Options::count`].
    pub bytes_stored: u64,
}

impl Counts {
    /// Adds those of another thread or launch.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        for (sum, more) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += more;
        }
        self.pairs += other.pairs;
        self.bank_conflicts += other.bank_conflicts;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
    }
}
