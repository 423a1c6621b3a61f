//! Options from the environment, and counts of what ran.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::dispatch::Dispatch;
use crate::execute::traffic::{Blocks, Sample};

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
    /// `RADEON_PLAYER_STRICT`: checks beyond what hardware notices. Accesses outside all buffers
    /// are faults without it too.
    pub strict: bool,
    /// `RADEON_PLAYER_APPROXIMATE`: `up` or `down`.
    pub approximate: Side,
    /// Whether [`Counts`] are kept by kind: `RADEON_PLAYER_COUNTS`.
    pub count: bool,
    /// `RADEON_PLAYER_THREADS`: workgroups at a time; without it, the processors.
    pub threads: usize,
    /// `RADEON_PLAYER_INSTRUCTIONS`: the most instructions of a wave; without it,
    /// [`gpu_player::ENDLESS`].
    pub most: Option<u64>,
    /// `RADEON_PLAYER_TRACE`: 1 for a line of each dispatch, 2 for one of each packet and request.
    pub trace: u32,
    /// `RADEON_PLAYER_SUM`: a line at the end.
    pub sum: bool,
    /// `RADEON_PLAYER_COUNTS`: the file that counts are appended to, a line of JSON for each
    /// kernel.
    pub counts: Option<PathBuf>,
    /// `RADEON_PLAYER_LIST`: the file that the instructions of each kernel are appended to, as
    /// text.
    pub list: Option<PathBuf>,
    /// `RADEON_PLAYER_FAULTS`: `continue` reports a fault and goes on with the next launch;
    /// otherwise the device is lost.
    pub go_on: bool,
}

impl Options {
    /// Those of this process. What is not understood is said and left out.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::read(|name| std::env::var(format!("RADEON_PLAYER_{name}")).ok().filter(|value| !value.is_empty()))
    }

    /// The most instructions of a wave.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.unwrap_or(gpu_player::ENDLESS)
    }

    fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let flag = |name: &str| get(name).is_some_and(|value| value != "0");
        let number = |name: &str| {
            let value = get(name)?;
            let number = value.parse().ok();
            if number.is_none() {
                eprintln!("radeon-player: RADEON_PLAYER_{name}={value} is no number");
            }
            number
        };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let (counts, sum) = (get("COUNTS").map(PathBuf::from), flag("SUM"));
        Self {
            strict: flag("STRICT"),
            approximate: match get("APPROXIMATE").as_deref() {
                None | Some("nearest") => Side::Nearest,
                Some("up") => Side::Up,
                Some("down") => Side::Down,
                Some(other) => {
                    eprintln!("radeon-player: RADEON_PLAYER_APPROXIMATE={other} is neither up nor down");
                    Side::Nearest
                }
            },
            count: counts.is_some(),
            threads: number("THREADS").filter(|&threads| threads > 0).unwrap_or_else(processors),
            most: number("INSTRUCTIONS").map(|most| most as u64),
            trace: number("TRACE").unwrap_or(0) as u32,
            sum,
            counts,
            list: get("LIST").map(PathBuf::from),
            go_on: get("FAULTS").as_deref() == Some("continue"),
        }
    }
}

/// Appends text to a file in one call, since several processes may write to it; what goes wrong is
/// said.
pub fn append(path: &Path, text: &str) {
    let open = std::fs::OpenOptions::new().append(true).create(true).open(path);
    if let Err(error) = open.and_then(|mut file| file.write_all(text.as_bytes())) {
        eprintln!("radeon-player: {}: {error}", path.display());
    }
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
    /// Products of integers of 32 bits and more, which issue at a quarter of the rate.
    Quarter,
    /// Floats of 64 bits.
    Double,
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
    pub const COUNT: usize = 13;
    /// Their names in the file of counts.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "multiply_add",
        "vector",
        "transcendental",
        "quarter",
        "double",
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
    /// Bytes that active lanes load from memory, if [`Options::count`].
    pub bytes_loaded: u64,
    /// Bytes that active lanes store to memory, if [`Options::count`].
    pub bytes_stored: u64,
    /// Blocks of memory that are loaded, if [`Options::count`].
    pub read: Blocks,
    /// Blocks of memory that are stored, if [`Options::count`].
    pub written: Blocks,
    /// Of the workgroups that are sampled.
    pub sampled: Sampled,
}

/// Sums over workgroups: see [`Sample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // As in a sample.
pub struct Sampled {
    pub shared_cycles: u64,
    pub bank_conflicts: u64,
    pub requests: u64,
    pub blocks_read: u64,
    pub blocks_written: u64,
    pub cycles: u64,
    pub memory_wait: u64,
    pub shared_wait: u64,
}

impl Sampled {
    const NAMES: [&'static str; 8] = [
        "shared_cycles",
        "bank_conflicts",
        "requests",
        "blocks_of_workgroups_read",
        "blocks_of_workgroups_written",
        "cycles_of_workgroups",
        "memory_wait",
        "shared_wait",
    ];

    fn all(&mut self) -> [&mut u64; 8] {
        let Self { shared_cycles, bank_conflicts, requests, blocks_read, blocks_written, cycles, .. } = self;
        let waits = (&mut self.memory_wait, &mut self.shared_wait);
        [shared_cycles, bank_conflicts, requests, blocks_read, blocks_written, cycles, waits.0, waits.1]
    }

    fn add(&mut self, mut other: Self) {
        for (sum, more) in self.all().into_iter().zip(other.all()) {
            *sum += *more;
        }
    }

    /// What all workgroups of a launch have, of which the sampled ones have this.
    fn of_all(mut self, dispatch: &Dispatch) -> Self {
        let (all, sampled) = (u128::from(dispatch.group_count()), u128::from(dispatch.sampled_count().max(1)));
        for sum in self.all() {
            *sum = ((u128::from(*sum) * all + sampled / 2) / sampled) as u64;
        }
        self
    }
}

impl Counts {
    /// Adds a workgroup that was sampled.
    pub fn add_sample(&mut self, sample: &Sample) {
        self.sampled.add(Sampled {
            shared_cycles: sample.shared_cycles,
            bank_conflicts: sample.bank_conflicts,
            requests: sample.requests,
            blocks_read: sample.read.count(),
            blocks_written: sample.written.count(),
            cycles: sample.cycles,
            memory_wait: sample.memory_wait,
            shared_wait: sample.shared_wait,
        });
    }

    /// Adds those of another thread or launch.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        for (sum, more) in self.kinds.iter_mut().zip(other.kinds) {
            *sum += more;
        }
        self.pairs += other.pairs;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
        self.read.add(&other.read);
        self.written.add(&other.written);
        self.sampled.add(other.sampled);
    }
}

/// What ran in this process.
#[derive(Debug, Default)]
pub struct Record {
    kernels: FxHashMap<Key, Sum>,
}

/// Launches that differ in these are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    hash: u32,
    threads: [u32; 3],
    wave: u32,
    registers: u32,
    shared: u32,
    scratch: u32,
    both_units: bool,
    workgroups: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Sum {
    launches: u64,
    waves: u64,
    counts: Counts,
    /// Of all workgroups.
    sampled: Sampled,
    blocks_read: u64,
    blocks_written: u64,
    time: Duration,
}

impl Record {
    /// Adds a launch of a kernel that has this hash and so many words of code.
    pub fn add(&mut self, hash: u32, dispatch: &Dispatch, words: usize, counts: &Counts, time: Duration) {
        let key = Key {
            hash,
            threads: dispatch.threads,
            wave: dispatch.wave,
            registers: dispatch.vector_registers(),
            shared: dispatch.shared(),
            scratch: dispatch.scratch,
            both_units: dispatch.both_units(),
            workgroups: dispatch.group_count(),
            bytes: words * 4,
        };
        let sum = self.kernels.entry(key).or_default();
        sum.launches += 1;
        sum.waves += dispatch.group_count() * u64::from(dispatch.waves());
        sum.sampled.add(counts.sampled.of_all(dispatch));
        sum.blocks_read += counts.read.count();
        sum.blocks_written += counts.written.count();
        // Which blocks they are is no more of interest.
        sum.counts.add(&Counts { read: Blocks::default(), written: Blocks::default(), ..counts.clone() });
        sum.time += time;
    }

    /// Writes what options ask for, at the end of the process.
    pub fn write(&self, options: &Options) {
        if options.sum {
            let (mut launches, mut counts, mut time) = (0, Counts::default(), Duration::ZERO);
            for sum in self.kernels.values() {
                launches += sum.launches;
                counts.add(&sum.counts);
                time += sum.time;
            }
            let seconds = time.as_secs_f64();
            let rate = counts.instructions as f64 / seconds.max(1e-9) / 1e6;
            eprintln!(
                "radeon-player: {launches} launches, {} wave instructions, {seconds:.2} s, {rate:.1} million a second",
                counts.instructions
            );
        }
        let Some(path) = &options.counts else { return };
        if self.kernels.is_empty() {
            return;
        }
        append(path, &self.lines());
    }

    /// A line of JSON for each kernel.
    fn lines(&self) -> String {
        let mut kernels: Vec<_> = self.kernels.iter().collect();
        kernels.sort_by_key(|(key, _)| **key);
        let mut text = String::new();
        for (key, sum) in kernels {
            let Key { hash, threads: [x, y, z], wave, registers, shared, scratch, both_units, workgroups, bytes } = key;
            let Sum { launches, waves, counts, sampled, blocks_read, blocks_written, time } = sum;
            let mut numbers = String::new();
            let kinds = Kind::NAMES.iter().zip(counts.kinds);
            let mut sampled = *sampled;
            let sampled = Sampled::NAMES.iter().zip(sampled.all().map(|number| *number));
            for (name, count) in kinds.chain(sampled) {
                // A string takes all that is written.
                let _ = write!(numbers, "\"{name}\": {count}, ");
            }
            let _ = writeln!(
                text,
                "{{\"code\": {hash}, \"threads\": [{x}, {y}, {z}], \"wave\": {wave}, \
                 \"vector_registers\": {registers}, \"shared_memory\": {shared}, \"scratch\": {scratch}, \
                 \"both_units\": {both_units}, \"code_size\": {bytes}, \"launches\": {launches}, \
                 \"workgroups\": {}, \"waves\": {waves}, \"instructions\": {}, {numbers}\"pairs\": {}, \
                 \"bytes_loaded\": {}, \"bytes_stored\": {}, \"blocks_read\": {blocks_read}, \
                 \"blocks_written\": {blocks_written}, \"seconds\": {:.6}}}",
                workgroups * launches,
                counts.instructions,
                counts.pairs,
                counts.bytes_loaded,
                counts.bytes_stored,
                time.as_secs_f64(),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let none = Options::read(|_| None);
        assert!(!none.strict && !none.count && none.threads > 0 && none.approximate == Side::Nearest);
        let all = Options::read(|name| {
            Some(
                if name == "APPROXIMATE" {
                    "down"
                } else if name == "FAULTS" {
                    "continue"
                } else {
                    "2"
                }
                .into(),
            )
        });
        assert!(all.strict && all.count && all.sum && all.go_on && all.approximate == Side::Down);
        assert_eq!((all.threads, all.trace, all.counts), (2, 2, Some("2".into())));
    }

    #[test]
    fn kernels_are_lines_of_json() {
        let registers = [0; crate::pm4::SHADER_REGISTER_COUNT as usize];
        let dispatch = Dispatch::new(crate::isa::Generation::Rdna3, 1, &registers, [2, 1, 1], 0x8041);
        let mut record = Record::default();
        let mut counts = Counts { instructions: 5, ..Counts::default() };
        counts.kinds[Kind::Matrix as usize] = 3;
        let mut sample = Sample { requests: 4, ..Sample::default() };
        sample.read.put(1);
        counts.add_sample(&sample);
        record.add(7, &dispatch, 9, &counts, Duration::ZERO);
        record.add(7, &dispatch, 9, &counts, Duration::ZERO);
        let lines = record.lines();
        assert_eq!(lines.lines().count(), 1);
        for part in ["\"code\": 7", "\"launches\": 2", "\"instructions\": 10", "\"matrix\": 6", "\"requests\": 8"] {
            assert!(lines.contains(part), "{lines}");
        }
    }
}
