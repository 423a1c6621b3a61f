//! Which way is timed next, when enough is known, and how much time that may cost.

use crate::matmul::choice::Way;
use crate::matmul::tune::candidates::{Ways, text};
use smallvec::SmallVec;

/// Runs of each way that are timed. The least time counts: what disturbs a run makes it longer.
const RUNS: usize = 5;

/// A way that takes so many times as long as another in its first two runs is not run again.
const HOPELESS: f64 = 2.0;

/// The estimate's way is left for one that takes at most this part of its time.
const BETTER: f64 = 0.97;

/// The ways of one product and their times.
#[derive(Clone, Debug)]
pub struct Trials {
    /// The estimate's first.
    ways: SmallVec<[Timed; 4]>,
}

#[derive(Copy, Clone, Debug)]
struct Timed {
    way: Way,
    runs: usize,
    /// The least, in seconds.
    least: f64,
    dropped: bool,
}

impl Trials {
    /// Of ways, of which the first is the estimate's.
    pub fn new(ways: Ways) -> Trials {
        let timed = |way| Timed { way, runs: 0, least: f64::INFINITY, dropped: false };
        Trials { ways: ways.into_iter().map(timed).collect() }
    }

    /// A way by its number.
    pub fn way(&self, i: usize) -> Way {
        self.ways[i].way
    }

    /// The ways that more is to be known of.
    pub fn open(&self) -> SmallVec<[usize; 4]> {
        (0..self.ways.len()).filter(|&i| self.ways[i].is_open()).collect()
    }

    /// The way to time next: all take turns, so that a slower clock slows all.
    pub fn next_to_time(&self) -> Option<usize> {
        self.open().into_iter().min_by_key(|&i| self.ways[i].runs)
    }

    /// Nothing is left to be timed.
    pub fn is_done(&self) -> bool {
        self.next_to_time().is_none()
    }

    /// Takes a time, in seconds; returns how much longer its way takes than the fastest, as far as
    /// is known. What disturbed a single run would have disturbed any other.
    pub fn put(&mut self, i: usize, seconds: f64) -> f64 {
        let timed = &mut self.ways[i];
        timed.runs += 1;
        timed.least = timed.least.min(seconds);
        let least = self.ways.iter().fold(f64::INFINITY, |least, timed| least.min(timed.least));
        // The estimate's way is the measure of the others.
        for timed in &mut self.ways[1..] {
            timed.dropped |= timed.runs > 1 && timed.least > HOPELESS * least;
        }
        self.ways[i].least - least
    }

    /// Leaves a way out that cannot be run; never the estimate's.
    pub fn leave_out(&mut self, i: usize) {
        if i > 0 {
            self.ways[i].dropped = true;
        } else {
            // It runs whenever nothing is timed, and its times are no longer asked for.
            self.ways[0].runs = RUNS;
        }
    }

    /// The way to run it in, as far as is known: until all is, the estimate's.
    pub fn best(&self) -> Way {
        let first = self.ways[0];
        let fastest = self.ways[1..].iter().filter(|timed| !timed.dropped).min_by(|a, b| a.least.total_cmp(&b.least));
        match fastest {
            Some(timed) if self.is_done() && timed.least < BETTER * first.least => timed.way,
            _ => first.way,
        }
    }
}

impl Timed {
    fn is_open(&self) -> bool {
        !self.dropped && self.runs < RUNS
    }
}

impl std::fmt::Display for Trials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for Timed { way, runs, least, .. } in &self.ways {
            write!(f, "{} {:.1} us in {runs} runs; ", text(*way), least * 1e6)?;
        }
        write!(f, "best {}", text(self.best()))
    }
}

/// How much longer than the fastest way known all timed runs of the process may take together.
#[derive(Debug)]
pub struct Budget {
    spent: f64,
}

/// Seconds that may be spent at once.
const AT_ONCE: f64 = 0.2;

/// And this part of the time since the first product.
const SHARE: f64 = 0.01;

impl Budget {
    /// Nothing is spent.
    pub const fn new() -> Budget {
        Budget { spent: 0.0 }
    }

    /// A run took so many seconds longer than it had to.
    pub fn spend(&mut self, seconds: f64) {
        self.spent += seconds;
    }

    /// Whether another run may be timed, so many seconds after the first product.
    pub fn allows(&self, elapsed: f64) -> bool {
        self.spent < AT_ONCE + SHARE * elapsed
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

    fn way(i: u32) -> Way {
        Way::Plain(Choice { tile: Tile::new(16 << i, 16, 16, [4, 4], [4, 4]), split_k: 1 })
    }

    /// Runs trials of ways that take so long, the times of each run stretched by what `noise` says;
    /// returns the runs of each.
    fn run(trials: &mut Trials, seconds: &[f64], noise: impl Fn(usize) -> f64) -> Vec<usize> {
        let mut runs = vec![0; seconds.len()];
        for round in 0.. {
            assert!(round < 100, "it ends");
            let Some(i) = trials.next_to_time() else { break };
            runs[i] += 1;
            trials.put(i, seconds[i] * noise(round));
        }
        runs
    }

    fn of(count: u32) -> Trials {
        Trials::new((0..count).map(way).collect())
    }

    #[test]
    fn the_fastest_way_is_taken() {
        let mut trials = of(3);
        assert_eq!(trials.best(), way(0), "the estimate's before anything is known");
        assert_eq!(run(&mut trials, &[1e-3, 0.8e-3, 0.9e-3], |_| 1.0), [RUNS; 3]);
        assert!(trials.is_done());
        assert_eq!(trials.best(), way(1));
    }

    #[test]
    fn the_estimate_is_kept_where_nothing_is_clearly_faster() {
        let mut trials = of(3);
        run(&mut trials, &[1e-3, 0.98e-3, 1.4e-3], |_| 1.0);
        assert_eq!(trials.best(), way(0));
        // Single runs that are disturbed change nothing.
        let mut trials = of(2);
        run(&mut trials, &[1e-3, 0.8e-3], |round| if round % 3 == 1 { 10.0 } else { 1.0 });
        assert_eq!(trials.best(), way(1));
    }

    #[test]
    fn hopeless_ways_run_twice_and_all_are_bounded() {
        let mut trials = of(4);
        assert_eq!(run(&mut trials, &[1e-3, 3e-3, 1.1e-3, 5e-3], |_| 1.0), [RUNS, 2, RUNS, 2]);
        assert_eq!(trials.best(), way(0));
        let mut trials = of(4);
        assert!(run(&mut trials, &[1e-3; 4], |_| 1.0).iter().sum::<usize>() <= 4 * RUNS);
    }

    #[test]
    fn nothing_is_decided_before_all_is_known() {
        let mut trials = of(2);
        for _ in 0..RUNS {
            trials.put(1, 0.1e-3);
        }
        assert_eq!((trials.best(), trials.next_to_time()), (way(0), Some(0)));
    }

    #[test]
    fn ways_that_cannot_run_are_left_out() {
        let mut trials = of(2);
        trials.leave_out(1);
        run(&mut trials, &[1e-3, 1e-6], |_| 1.0);
        assert_eq!(trials.best(), way(0));
        let mut trials = of(2);
        trials.leave_out(0);
        trials.leave_out(1);
        assert!(trials.is_done());
        assert_eq!(trials.best(), way(0));
    }

    #[test]
    fn what_is_lost_is_at_most_a_share() {
        let mut budget = Budget::new();
        assert!(budget.allows(0.0));
        let mut trials = of(2);
        for seconds in [1e-3, 9e-3] {
            budget.spend(trials.put(0, seconds));
        }
        assert_eq!(budget.spent, 0.0, "it would have run like this anyway");
        budget.spend(trials.put(1, 1.5e-3));
        budget.spend(trials.put(1, 1.4e-3));
        assert!((budget.spent - 0.9e-3).abs() < 1e-9, "{}", budget.spent);
        budget.spend(AT_ONCE);
        assert!(!budget.allows(0.0) && !budget.allows(0.05));
        assert!(budget.allows(1.0), "and goes on later");
    }
}
