//! Refines the choice for products that come again and again: the ways that the estimate rates near
//! its own are timed on the program's own launches, and the fastest is used from then on and noted
//! on disk.
//!
//! Nothing runs that the program did not ask for. [`mod@candidates`] says what is tried: ways of
//! the same bits, unless `TORCH_DML_AUTOTUNE=all` allows others. [`trials`] decides, and keeps the
//! time that slower ways cost within bounds. Here is what has to do with the device: kernels are
//! compiled before their first run, and times are read when they are there, so nobody waits. While
//! a graph is captured, and under `torch.use_deterministic_algorithms`, nothing is timed.

pub mod candidates;
pub mod trials;

use crate::context::Context;
use crate::error::Result;
use crate::matmul::choice::{Question, Way};
use crate::matmul::operand::Access;
use crate::matmul::problem::Problem;
use crate::matmul::tune::candidates::candidates;
use crate::matmul::tune::trials::{Budget, Trials};
use dml_engine::Event;
use dml_environment::{AUTOTUNE, Autotune};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::Instant;

/// Uses after which a product is tuned.
const HOT: u32 = 32;

/// Products that are tuned at most, of all devices together.
const MOST: usize = 512;

/// Products that a thread remembers.
const REMEMBERED: usize = 256;

/// A product as far as its speed depends on it.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Key {
    device: usize,
    question: Question,
    operands: [Access; 2],
}

impl Key {
    /// The same in every process of this version.
    fn hash(&self) -> u64 {
        let Key { device: _, question, operands } = self;
        let of = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        format!("{question:?} {operands:?}").bytes().fold(0xcbf2_9ce4_8422_2325, of)
    }

    /// What its note is called.
    fn name(&self) -> String {
        let [batch, m, n, k] = self.question.size;
        format!("product {batch}x{m}x{n}x{k} {:016x}", self.hash())
    }
}

/// A product that is being tuned.
struct Hot {
    key: Key,
    work: Mutex<Work>,
}

struct Work {
    trials: Trials,
    /// The run that is being timed: of which way, from, to.
    timed: Option<(usize, [Event; 2])>,
}

/// What a thread knows of a product.
#[derive(Clone)]
enum State {
    /// It came so many times.
    Counted(u32),
    /// It is being tuned.
    Tried(Arc<Hot>),
    /// It is run like this.
    Settled(Way),
}

thread_local! {
    /// Each at a place that its sizes tell.
    static SEEN: RefCell<Vec<Option<(Key, State)>>> = const { RefCell::new(Vec::new()) };
}

static HOT_ONES: Mutex<Vec<Arc<Hot>>> = Mutex::new(Vec::new());

static BUDGET: Mutex<Budget> = Mutex::new(Budget::new());

/// Since the first product.
fn elapsed() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Which ways may be tried on the call's device, if any.
fn mode(cx: &Context) -> Option<Autotune> {
    // Unless asked for: no GPU's figures say yet that it gains, and the times of a software adapter
    // mean nothing.
    let mode = AUTOTUNE.get().filter(|&mode| mode != Autotune::Off)?;
    let has_clock = cx.device.info().capabilities.timestamp_period_ns > 0.0;
    (has_clock && !cx.environment.deterministic()).then_some(mode)
}

impl Problem {
    /// Enqueues it in the way that was chosen for it, or in one that is known, or about to be, for
    /// its speed.
    pub fn run_tuned(&self, cx: &Context, question: Question, chosen: Way) -> Result<()> {
        let Some(mode) = mode(cx).filter(|_| !cx.infers()) else { return self.run_in(cx, chosen) };
        let key = Key { device: cx.device.index(), question, operands: [self.a.access, self.b.access] };
        match seen(cx, key, chosen, mode) {
            State::Counted(_) => self.run_in(cx, chosen),
            State::Settled(way) => self.run_in(cx, way),
            State::Tried(hot) => self.run_tried(cx, &hot, chosen),
        }
    }

    fn run_tried(&self, cx: &Context, hot: &Hot, chosen: Way) -> Result<()> {
        let mut work = match hot.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread runs the same: it has its turn.
            Err(TryLockError::WouldBlock) => return self.run_in(cx, chosen),
        };
        let may_ask = !cx.device.is_capturing();
        if may_ask {
            work.read_time(cx, &hot.key)?;
        }
        let next = if may_ask && work.timed.is_none() { work.next(self, cx)? } else { None };
        let Some(next) = next else {
            let way = work.trials.best();
            drop(work);
            return self.run_in(cx, way);
        };
        let from = cx.device.record_event(true)?;
        self.run_in(cx, work.trials.way(next))?;
        let to = cx.device.record_event(true)?;
        work.timed = Some((next, [from, to]));
        Ok(())
    }
}

impl Work {
    /// Takes the time of the last run if it is there.
    fn read_time(&mut self, cx: &Context, key: &Key) -> Result<()> {
        let Some((of, [from, to])) = &self.timed else { return Ok(()) };
        if !to.query()? {
            return Ok(());
        }
        let (of, seconds) = (*of, from.elapsed_ms(to)? * 1e-3);
        self.timed = None;
        let extra = self.trials.put(of, seconds);
        BUDGET.lock().unwrap_or_else(PoisonError::into_inner).spend(extra);
        if self.trials.is_done() {
            self.settle(cx, key);
        }
        Ok(())
    }

    fn settle(&self, cx: &Context, key: &Key) {
        let way = self.trials.best();
        tracing::debug!("{}: {:?}: {}", cx.device.info().name, key.question.size, self.trials);
        cx.device.put_adapter_record(&key.name(), &candidates::text(way));
    }

    /// The way to time next, whose kernel is ready; none while there is none, or while enough time
    /// was spent.
    fn next(&mut self, problem: &Problem, cx: &Context) -> Result<Option<usize>> {
        if self.trials.is_done() || !BUDGET.lock().unwrap_or_else(PoisonError::into_inner).allows(elapsed()) {
            return Ok(None);
        }
        // All of them begin to be compiled at the first question.
        let mut ready = Vec::new();
        for i in self.trials.open() {
            let kernel = problem.kernel(cx, self.trials.way(i))?;
            ready.push((i, kernel.map(|kernel| (kernel.is_compiled(), kernel.refused()))));
        }
        for (i, state) in &ready {
            if matches!(state, None | Some((_, true))) {
                self.trials.leave_out(*i);
            }
        }
        let compiled = |i: usize| ready.iter().any(|(of, state)| *of == i && *state == Some((true, false)));
        Ok(self.trials.next_to_time().filter(|&i| compiled(i)))
    }
}

/// What the thread knows of a product, one use later.
fn seen(cx: &Context, key: Key, chosen: Way, mode: Autotune) -> State {
    SEEN.with_borrow_mut(|all| {
        if all.is_empty() {
            all.resize(REMEMBERED, None);
        }
        let mixed = key.question.size.iter().fold(key.device as u64, |mixed, &n| {
            (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        });
        let place = &mut all[(mixed >> 56) as usize % REMEMBERED];
        let state = match place {
            Some((of, state)) if *of == key => match state {
                State::Counted(times) if *times >= HOT => begin(key, chosen, mode),
                State::Counted(times) => State::Counted(*times + 1),
                State::Tried(hot) => settled(hot).unwrap_or_else(|| state.clone()),
                State::Settled(way) => return State::Settled(*way),
            },
            _ => noted(cx, &key, chosen, mode).map_or(State::Counted(1), State::Settled),
        };
        *place = Some((key, state.clone()));
        state
    })
}

/// The way that an earlier process, or another thread, found out to be the fastest.
fn noted(cx: &Context, key: &Key, chosen: Way, mode: Autotune) -> Option<Way> {
    let text = cx.device.adapter_record(&key.name())?;
    candidates::of_text(&candidates(&key.question, chosen, mode), &text)
}

fn settled(hot: &Hot) -> Option<State> {
    let work = hot.work.try_lock().ok()?;
    work.trials.is_done().then(|| State::Settled(work.trials.best()))
}

/// Begins to tune a product, unless another thread did, or there is nothing to try.
fn begin(key: Key, chosen: Way, mode: Autotune) -> State {
    let mut all = HOT_ONES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hot) = all.iter().find(|hot| hot.key == key) {
        return State::Tried(Arc::clone(hot));
    }
    let ways = candidates(&key.question, chosen, mode);
    if ways.len() < 2 || all.len() >= MOST {
        return State::Settled(chosen);
    }
    let work = Mutex::new(Work { trials: Trials::new(ways), timed: None });
    let hot = Arc::new(Hot { key, work });
    all.push(Arc::clone(&hot));
    State::Tried(hot)
}
