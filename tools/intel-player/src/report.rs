//! Options from the environment, and sums of what ran.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the environment asks for. The crate's README says the same of users.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `INTEL_PLAYER_THREADS`: workgroups at a time; without it, the processors.
    pub threads: usize,
    /// `INTEL_PLAYER_INSTRUCTIONS`: the most instructions of a thread; without it,
    /// [`gpu_player::ENDLESS`].
    pub most: Option<u64>,
    /// `INTEL_PLAYER_TRACE`: 1 for a line of each dispatch, 2 for one of each command too.
    pub trace: u32,
    /// `INTEL_PLAYER_SUM`: a line at the end.
    pub sum: bool,
    /// `INTEL_PLAYER_LIST`: the file that the instructions of each kernel are appended to, as text.
    pub list: Option<PathBuf>,
    /// `INTEL_PLAYER_FAULTS`: `continue` reports a fault and goes on with the next launch;
    /// otherwise the device is lost.
    pub go_on: bool,
}

impl Options {
    /// Those of this process. What is not understood is said and left out.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::read(|name| std::env::var(format!("INTEL_PLAYER_{name}")).ok().filter(|value| !value.is_empty()))
    }

    /// The most instructions of a thread.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.unwrap_or(gpu_player::ENDLESS)
    }

    fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| {
            let value = get(name)?;
            let number = value.parse().ok();
            if number.is_none() {
                eprintln!("intel-player: INTEL_PLAYER_{name}={value} is no number");
            }
            number
        };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: number("THREADS").filter(|&threads| threads > 0).unwrap_or_else(processors),
            most: number("INSTRUCTIONS").map(|most| most as u64),
            trace: number("TRACE").unwrap_or(0) as u32,
            sum: get("SUM").is_some_and(|value| value != "0"),
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
        eprintln!("intel-player: {}: {error}", path.display());
    }
}

/// What ran. Kept by each thread and added up at the end of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of threads.
    pub instructions: u64,
}

impl Counts {
    /// Adds those of another thread or launch.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
    }
}

/// What ran in this process.
#[derive(Debug, Default)]
pub struct Record {
    launches: u64,
    counts: Counts,
    time: Duration,
}

impl Record {
    /// Adds a launch.
    pub fn add(&mut self, counts: &Counts, time: Duration) {
        self.launches += 1;
        self.counts.add(counts);
        self.time += time;
    }

    /// Writes what options ask for, at the end of the process.
    pub fn write(&self, options: &Options) {
        if options.sum {
            let (seconds, done) = (self.time.as_secs_f64(), self.counts.instructions);
            let rate = done as f64 / seconds.max(1e-9) / 1e6;
            eprintln!(
                "intel-player: {} launches, {done} instructions, {seconds:.2} s, {rate:.1} million a second",
                self.launches
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let none = Options::read(|_| None);
        assert!(none.threads > 0 && !none.sum && !none.go_on);
        let all = Options::read(|name| Some(if name == "FAULTS" { "continue" } else { "2" }.into()));
        assert_eq!((all.threads, all.trace, all.sum, all.go_on), (2, 2, true, true));
    }
}
