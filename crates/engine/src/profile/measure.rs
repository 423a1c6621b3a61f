//! The host's time per operator, by stages. Off until a thread calls [`begin`]; a stage then costs
//! one relaxed load and a branch that is never taken.
//!
//! Stages nest, and a stage's time excludes the stages inside it. So the times of all stages,
//! including the time outside of the engine, add up to the time between [`begin`] and [`end`].
//! Reading the clock costs time of the entered stage and of the enclosing one; both are measured at
//! [`begin`] and subtracted.
//!
//! The time of the thread that submits is counted separately, because nobody waits for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// A part of the host's work for an operator.
#[repr(u8)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Neither in the engine nor in its caller: the program and its framework.
    Outside = 0,
    /// Conversion of arguments and results between the framework's types and the engine's.
    Unpack = 1,
    /// Shapes, dtypes, parameters and memory ranges.
    Shape = 2,
    /// Lookup of the kernel.
    Lookup = 3,
    /// Allocation of the result, and freeing memory.
    Allocate = 4,
    /// Appending to the queue.
    Enqueue = 5,
    /// Barriers and commands of a batch.
    Record = 6,
    /// Handing a batch to the thread that records it, or to the driver.
    Submit = 7,
}

/// The number of stages.
pub const STAGES: usize = 8;

/// Number of runs of an empty stage that measure the clock's cost.
const CALIBRATION: u32 = 20_000;

/// The number of threads that measure.
static MEASURING: AtomicU32 = AtomicU32::new(0);

/// Of threads that work [in the background](background) the measuring ones: ticks by stage, and
/// commands.
static BACKGROUND: [AtomicU64; STAGES] = [const { AtomicU64::new(0) }; STAGES];
static BACKGROUND_COMMANDS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static METER: Meter = const { Meter::new() };
}

struct Meter {
    on: Cell<bool>,
    stage: Cell<u8>,
    since: Cell<u64>,
    /// By stage: ticks in it, number of times it was entered, number of stages entered from it.
    ticks: [Cell<u64>; STAGES],
    entered: [Cell<u64>; STAGES],
    inner: [Cell<u64>; STAGES],
    start: Cell<Option<(Instant, u64)>>,
    /// The cost of entering and leaving a stage, in ticks: in the stage, and in the enclosing one.
    cost: Cell<[f64; 2]>,
}

impl Meter {
    const fn new() -> Self {
        Self {
            on: Cell::new(false),
            stage: Cell::new(0),
            since: Cell::new(0),
            ticks: [const { Cell::new(0) }; STAGES],
            entered: [const { Cell::new(0) }; STAGES],
            inner: [const { Cell::new(0) }; STAGES],
            start: Cell::new(None),
            cost: Cell::new([0.0; 2]),
        }
    }

    fn clear(&self) {
        for cell in self.ticks.iter().chain(&self.entered).chain(&self.inner) {
            cell.set(0);
        }
        self.stage.set(Stage::Outside as u8);
        self.since.set(ticks());
    }

    /// Ends the time of the current stage, and begins the next one's.
    fn turn(&self, to: u8) -> u8 {
        let (now, from) = (ticks(), self.stage.replace(to));
        let spent = &self.ticks[usize::from(from)];
        spent.set(spent.get() + now.wrapping_sub(self.since.replace(now)));
        from
    }
}

/// The processor's time stamp counter, which runs at one rate on every processor of the last
/// fifteen years.
#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux and Windows let programs use
    // it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Nanoseconds.
#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A stage that ends when this is dropped.
pub struct Timed {
    /// The enclosing stage plus 1; 0 if the thread does not measure.
    around: u32,
}

impl Timed {
    /// The stage as a number, for [`leave`], for callers that keep no Rust values.
    pub fn into_token(self) -> u32 {
        let token = self.around;
        std::mem::forget(self);
        token
    }
}

impl Drop for Timed {
    #[inline]
    fn drop(&mut self) {
        if self.around != 0 {
            leave(self.around);
        }
    }
}

/// Enters a stage.
#[inline]
pub fn enter(stage: Stage) -> Timed {
    Timed { around: if MEASURING.load(Ordering::Relaxed) == 0 { 0 } else { enter_measured(stage) } }
}

#[cold]
fn enter_measured(stage: Stage) -> u32 {
    METER.with(|meter| {
        if !meter.on.get() {
            return 0;
        }
        let around = meter.turn(stage as u8);
        let (inner, entered) = (&meter.inner[usize::from(around)], &meter.entered[stage as usize]);
        inner.set(inner.get() + 1);
        entered.set(entered.get() + 1);
        u32::from(around) + 1
    })
}

/// Leaves a stage by the number of [`Timed::into_token`]; 0 does nothing.
#[cold]
pub fn leave(token: u32) {
    if token != 0 {
        METER.with(|meter| meter.turn((token - 1) as u8));
    }
}

/// Not 0 while some thread measures. For callers that check without a call.
pub fn measuring() -> &'static AtomicU32 {
    &MEASURING
}

/// The result of [`end`].
#[derive(Clone, Debug)]
pub struct Breakdown {
    /// Nanoseconds of each [`Stage`].
    pub stage_ns: [f64; STAGES],
    /// How often each stage was entered.
    pub entered: [u64; STAGES],
    /// From [`begin`] to [`end`], including the cost of reading the clock.
    pub elapsed_ns: f64,
    /// The cost of entering and leaving one stage, nanoseconds: subtracted above.
    pub clock_ns: f64,
    /// Nanoseconds that the submitting threads spent in each [`Stage`] meanwhile.
    pub background_ns: [f64; STAGES],
    /// The number of commands that they recorded.
    pub background_commands: u64,
}

/// Runs `work` for a number of commands on a thread that works for others. Its stages are added to
/// the results of the measuring threads.
pub(crate) fn background<R>(commands: u32, work: impl FnOnce() -> R) -> R {
    if MEASURING.load(Ordering::Relaxed) == 0 {
        return work();
    }
    METER.with(|meter| {
        meter.clear();
        meter.on.set(true);
        let done = work();
        meter.turn(Stage::Outside as u8);
        meter.on.set(false);
        for (all, here) in BACKGROUND.iter().zip(&meter.ticks) {
            all.fetch_add(here.get(), Ordering::Relaxed);
        }
        BACKGROUND_COMMANDS.fetch_add(u64::from(commands), Ordering::Relaxed);
        done
    })
}

/// Measures the calling thread from now on.
pub fn begin() {
    METER.with(|meter| {
        if !meter.on.replace(true) {
            MEASURING.fetch_add(1, Ordering::Relaxed);
        }
        meter.clear();
        let first = ticks();
        for _ in 0..CALIBRATION {
            drop(enter(Stage::Unpack));
        }
        let all = ticks().wrapping_sub(first) as f64;
        let inside = meter.ticks[Stage::Unpack as usize].get() as f64;
        let each = f64::from(CALIBRATION);
        meter.cost.set([inside / each, (all - inside) / each]);
        meter.clear();
        for all in BACKGROUND.iter().chain([&BACKGROUND_COMMANDS]) {
            all.store(0, Ordering::Relaxed);
        }
        meter.start.set(Some((Instant::now(), ticks())));
    });
}

/// Ends the measurement of [`begin`]; `None` if it was not called.
pub fn end() -> Option<Breakdown> {
    METER.with(|meter| {
        meter.turn(Stage::Outside as u8);
        let (start, first) = meter.start.take()?;
        let (elapsed_ns, ticks) = (start.elapsed().as_nanos() as f64, ticks().wrapping_sub(first) as f64);
        if meter.on.replace(false) {
            MEASURING.fetch_sub(1, Ordering::Relaxed);
        }
        let ns = elapsed_ns / ticks.max(1.0);
        let [inside, around] = meter.cost.get();
        Some(Breakdown {
            stage_ns: std::array::from_fn(|stage| {
                let cost = inside * meter.entered[stage].get() as f64 + around * meter.inner[stage].get() as f64;
                (meter.ticks[stage].get() as f64 - cost) * ns
            }),
            entered: std::array::from_fn(|stage| meter.entered[stage].get()),
            elapsed_ns,
            clock_ns: (inside + around) * ns,
            background_ns: std::array::from_fn(|stage| BACKGROUND[stage].load(Ordering::Relaxed) as f64 * ns),
            background_commands: BACKGROUND_COMMANDS.load(Ordering::Relaxed),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn work(micros: u64) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(micros) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn stages_nest_and_add_up() {
        begin();
        for _ in 0..20 {
            work(300);
            let _shape = enter(Stage::Shape);
            work(100);
            {
                let _enqueue = enter(Stage::Enqueue);
                work(200);
            }
            let token = enter(Stage::Submit).into_token();
            work(50);
            leave(token);
        }
        let told = end().expect("begun");
        let sum: f64 = told.stage_ns.iter().sum();
        assert!((sum - told.elapsed_ns).abs() < 0.05 * told.elapsed_ns, "{told:?}");
        for (stage, micros) in [(Stage::Outside, 300.0), (Stage::Shape, 100.0), (Stage::Enqueue, 200.0)] {
            // A lower bound: a busy machine may add any time.
            assert!(told.stage_ns[stage as usize] >= 20.0 * micros * 999.0, "{stage:?} {told:?}");
        }
        assert_eq!(told.entered[Stage::Shape as usize], 20);
        assert_eq!(told.stage_ns[Stage::Record as usize], 0.0);
        assert!(end().is_none());
    }

    #[test]
    fn other_threads_are_not_measured_but_told_apart() {
        begin();
        std::thread::spawn(|| drop(enter(Stage::Record))).join().expect("it runs");
        let recorded = || {
            let _stage = enter(Stage::Record);
            work(100);
        };
        std::thread::spawn(move || background(3, recorded)).join().expect("it runs");
        let told = end().expect("begun");
        assert_eq!(told.entered[Stage::Record as usize], 0);
        assert!(told.background_commands >= 3 && told.background_ns[Stage::Record as usize] >= 99_000.0, "{told:?}");
        assert_eq!(enter(Stage::Record).into_token(), 0);
    }
}
