//! Which algorithm is measured next, when the measurements are complete, and how much time they may
//! cost.

use crate::matmul::choice::Algorithm;
use crate::matmul::tune::candidates::{Candidates, text};
use smallvec::SmallVec;

/// Measured runs of each algorithm. The shortest counts, since disturbances only make a run longer.
const MEASURED_RUNS: usize = 5;

/// An algorithm that takes more than this factor longer than another in its first two runs is not
/// run again.
const DROP_FACTOR: f64 = 2.0;

/// Another algorithm replaces the estimate's choice if it takes at most this fraction of its time.
const REPLACE_FACTOR: f64 = 0.97;

/// The algorithms for one product and their times.
#[derive(Clone, Debug)]
pub struct Trials {
    /// The first one is the estimate's choice.
    candidates: SmallVec<[TimedAlgorithm; 4]>,
}

#[derive(Copy, Clone, Debug)]
struct TimedAlgorithm {
    algorithm: Algorithm,
    runs: usize,
    /// The shortest time, in seconds.
    least: f64,
    dropped: bool,
}

impl Trials {
    /// `candidates` are the algorithms; the first one is the estimate's choice.
    pub fn new(candidates: Candidates) -> Trials {
        let timed = |algorithm| TimedAlgorithm { algorithm, runs: 0, least: f64::INFINITY, dropped: false };
        Trials { candidates: candidates.into_iter().map(timed).collect() }
    }

    /// Algorithm number `i`.
    pub fn algorithm(&self, i: usize) -> Algorithm {
        self.candidates[i].algorithm
    }

    /// The algorithms that need further runs.
    pub fn open(&self) -> SmallVec<[usize; 4]> {
        (0..self.candidates.len()).filter(|&i| self.candidates[i].is_open()).collect()
    }

    /// The algorithm to measure next. They take turns, so that a slower clock affects all of them.
    pub fn next_candidate(&self) -> Option<usize> {
        self.open().into_iter().min_by_key(|&i| self.candidates[i].runs)
    }

    /// Whether the measurements are complete.
    pub fn is_done(&self) -> bool {
        self.next_candidate().is_none()
    }

    /// Records a time, in seconds; returns how much longer this algorithm's shortest time is than
    /// the fastest one's. A disturbance of this run does not count, as it would have disturbed any
    /// other algorithm too.
    pub fn put(&mut self, i: usize, seconds: f64) -> f64 {
        let timed = &mut self.candidates[i];
        timed.runs += 1;
        timed.least = timed.least.min(seconds);
        let least = self.candidates.iter().fold(f64::INFINITY, |least, timed| least.min(timed.least));
        // The estimate's choice is never dropped, as the others are compared with it.
        for timed in &mut self.candidates[1..] {
            timed.dropped |= timed.runs > 1 && timed.least > DROP_FACTOR * least;
        }
        self.candidates[i].least - least
    }

    /// Drops an algorithm that fails to run. The estimate's choice is not dropped.
    pub fn drop_candidate(&mut self, i: usize) {
        if i > 0 {
            self.candidates[i].dropped = true;
        } else {
            // It runs whenever nothing is measured, and is not measured again.
            self.candidates[0].runs = MEASURED_RUNS;
        }
    }

    /// The algorithm to use: the estimate's choice until the measurements are complete, then the
    /// fastest.
    pub fn best(&self) -> Algorithm {
        let first = self.candidates[0];
        let fastest =
            self.candidates[1..].iter().filter(|timed| !timed.dropped).min_by(|a, b| a.least.total_cmp(&b.least));
        match fastest {
            Some(timed) if self.is_done() && timed.least < REPLACE_FACTOR * first.least => timed.algorithm,
            _ => first.algorithm,
        }
    }
}

impl TimedAlgorithm {
    fn is_open(&self) -> bool {
        !self.dropped && self.runs < MEASURED_RUNS
    }
}

impl std::fmt::Display for Trials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for TimedAlgorithm { algorithm, runs, least, .. } in &self.candidates {
            write!(f, "{} {:.1} us in {runs} runs; ", text(*algorithm), least * 1e6)?;
        }
        write!(f, "best {}", text(self.best()))
    }
}

/// Limits the time that all measured runs of the process cost beyond that of the fastest known
/// algorithm.
#[derive(Debug)]
pub struct Budget {
    spent: f64,
}

/// Seconds that may be spent at any time.
const BURST_SECONDS: f64 = 0.2;

/// In addition, this fraction of the time since the first product.
const TIME_FRACTION: f64 = 0.01;

impl Budget {
    /// A budget of which nothing is spent.
    pub const fn new() -> Budget {
        Budget { spent: 0.0 }
    }

    /// Records that a run took `seconds` longer than the fastest algorithm.
    pub fn charge(&mut self, seconds: f64) {
        self.spent += seconds;
    }

    /// Whether another run may be measured, `elapsed` seconds after the first product.
    pub fn allows(&self, elapsed: f64) -> bool {
        self.spent < BURST_SECONDS + TIME_FRACTION * elapsed
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::select::Choice;
    use crate::matmul::tile::Tile;

    fn algorithm(i: u32) -> Algorithm {
        Algorithm::Plain(Choice { tile: Tile::new(16 << i, 16, 16, [4, 4], [4, 4]), split_k: 1 })
    }

    /// Simulates measurements of algorithms that take `seconds`, each run multiplied by `noise` of
    /// its number; returns the number of runs of each.
    fn run(trials: &mut Trials, seconds: &[f64], noise: impl Fn(usize) -> f64) -> Vec<usize> {
        let mut runs = vec![0; seconds.len()];
        for round in 0.. {
            assert!(round < 100, "it ends");
            let Some(i) = trials.next_candidate() else { break };
            runs[i] += 1;
            trials.put(i, seconds[i] * noise(round));
        }
        runs
    }

    fn of(count: u32) -> Trials {
        Trials::new((0..count).map(algorithm).collect())
    }

    #[test]
    fn the_fastest_way_is_taken() {
        let mut trials = of(3);
        assert_eq!(trials.best(), algorithm(0), "the estimate's before anything is known");
        assert_eq!(run(&mut trials, &[1e-3, 0.8e-3, 0.9e-3], |_| 1.0), [MEASURED_RUNS; 3]);
        assert!(trials.is_done());
        assert_eq!(trials.best(), algorithm(1));
    }

    #[test]
    fn the_estimate_is_kept_where_nothing_is_clearly_faster() {
        let mut trials = of(3);
        run(&mut trials, &[1e-3, 0.98e-3, 1.4e-3], |_| 1.0);
        assert_eq!(trials.best(), algorithm(0));
        // Disturbances of single runs change nothing.
        let mut trials = of(2);
        run(&mut trials, &[1e-3, 0.8e-3], |round| if round % 3 == 1 { 10.0 } else { 1.0 });
        assert_eq!(trials.best(), algorithm(1));
    }

    #[test]
    fn hopeless_ways_run_twice_and_all_are_bounded() {
        let mut trials = of(4);
        assert_eq!(run(&mut trials, &[1e-3, 3e-3, 1.1e-3, 5e-3], |_| 1.0), [MEASURED_RUNS, 2, MEASURED_RUNS, 2]);
        assert_eq!(trials.best(), algorithm(0));
        let mut trials = of(4);
        assert!(run(&mut trials, &[1e-3; 4], |_| 1.0).iter().sum::<usize>() <= 4 * MEASURED_RUNS);
    }

    #[test]
    fn nothing_is_decided_before_all_is_known() {
        let mut trials = of(2);
        for _ in 0..MEASURED_RUNS {
            trials.put(1, 0.1e-3);
        }
        assert_eq!((trials.best(), trials.next_candidate()), (algorithm(0), Some(0)));
    }

    #[test]
    fn ways_that_cannot_run_are_left_out() {
        let mut trials = of(2);
        trials.drop_candidate(1);
        run(&mut trials, &[1e-3, 1e-6], |_| 1.0);
        assert_eq!(trials.best(), algorithm(0));
        let mut trials = of(2);
        trials.drop_candidate(0);
        trials.drop_candidate(1);
        assert!(trials.is_done());
        assert_eq!(trials.best(), algorithm(0));
    }

    #[test]
    fn what_is_lost_is_at_most_a_share() {
        let mut budget = Budget::new();
        assert!(budget.allows(0.0));
        let mut trials = of(2);
        for seconds in [1e-3, 9e-3] {
            budget.charge(trials.put(0, seconds));
        }
        assert_eq!(budget.spent, 0.0, "it would have run like this anyway");
        budget.charge(trials.put(1, 1.5e-3));
        budget.charge(trials.put(1, 1.4e-3));
        assert!((budget.spent - 0.9e-3).abs() < 1e-9, "{}", budget.spent);
        budget.charge(BURST_SECONDS);
        assert!(!budget.allows(0.0) && !budget.allows(0.05));
        assert!(budget.allows(1.0), "and goes on later");
    }
}
