//! Refines the choice for frequent products: the algorithms whose estimated times are near the best
//! are timed in the program's own launches, and the fastest is used from then on and recorded on
//! disk.
//!
//! No additional work is launched. [`mod@candidates`] selects the algorithms: those with
//! bit-identical results, unless `TORCH_DML_AUTOTUNE=all` allows others. [`trials`] decides, and
//! bounds the time spent on slower algorithms. This file handles the device: kernels are compiled
//! before their first run, and times are read once they are available, so that nothing waits.
//! Nothing is timed while a graph is captured, or if results must be deterministic.

mod candidates;
mod trials;

use crate::context::Context;
use crate::error::Result;
use crate::matmul::choice::{Algorithm, ChoiceKey};
use crate::matmul::operand::Access;
use crate::matmul::problem::Problem;
use crate::matmul::tune::candidates::candidates;
use crate::matmul::tune::trials::{Budget, Trials};
use dml_engine::Event;
use dml_environment::{AUTOTUNE, Autotune};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::Instant;

/// Number of uses after which a product is tuned.
const TUNING_THRESHOLD: u32 = 32;

/// Maximum number of tuned products, of all devices together.
const MAX_TUNED_PRODUCTS: usize = 512;

/// Number of products in a thread's cache.
const THREAD_CACHE_SIZE: usize = 256;

/// The properties of a product that its speed depends on.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Key {
    device: usize,
    choice_key: ChoiceKey,
    operands: [Access; 2],
}

impl Key {
    /// A hash that is the same in every process of this version.
    fn hash(&self) -> u64 {
        let Key { device: _, choice_key, operands } = self;
        let of = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        format!("{choice_key:?} {operands:?}").bytes().fold(0xcbf2_9ce4_8422_2325, of)
    }

    /// The name of its record.
    fn name(&self) -> String {
        let [batch, m, n, k] = self.choice_key.size;
        format!("product {batch}x{m}x{n}x{k} {:016x}", self.hash())
    }
}

/// A product that is being tuned.
struct TunedProduct {
    key: Key,
    work: Mutex<TuningState>,
}

struct TuningState {
    trials: Trials,
    /// The run being timed: index of the algorithm, start and end.
    timed: Option<(usize, [Event; 2])>,
}

/// A thread's knowledge of a product.
#[derive(Clone)]
enum State {
    /// Number of uses so far.
    Counting(u32),
    /// Being tuned.
    Measuring(Arc<TunedProduct>),
    /// The algorithm is known.
    Tuned(Algorithm),
}

thread_local! {
    /// A direct-mapped cache, indexed by a hash of the key.
    static THREAD_CACHE: RefCell<Vec<Option<(Key, State)>>> = const { RefCell::new(Vec::new()) };
}

static TUNED_PRODUCTS: Mutex<Vec<Arc<TunedProduct>>> = Mutex::new(Vec::new());

static BUDGET: Mutex<Budget> = Mutex::new(Budget::new());

/// Seconds since the first product.
fn elapsed() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// The candidates that are allowed on the call's device, if any.
fn mode(cx: &Context) -> Option<Autotune> {
    // Off by default: no GPU measurement shows a gain yet, and the times of a software adapter mean
    // nothing.
    let mode = AUTOTUNE.get().filter(|&mode| mode != Autotune::Off)?;
    let has_clock = cx.device.info().capabilities.timestamp_period_ns > 0.0;
    (has_clock && !cx.environment.policy().deterministic()).then_some(mode)
}

impl Problem {
    /// Enqueues the product with the chosen algorithm, or with the one that tuning found or
    /// measures.
    pub fn run_with_tuning(&self, cx: &Context, choice_key: ChoiceKey, chosen: Algorithm) -> Result<()> {
        let Some(mode) = mode(cx).filter(|_| !cx.infers()) else { return self.run_in(cx, chosen) };
        let key = Key { device: cx.device.index(), choice_key, operands: [self.a.access, self.b.access] };
        match count_use(cx, key, chosen, mode) {
            State::Counting(_) => self.run_in(cx, chosen),
            State::Tuned(algorithm) => self.run_in(cx, algorithm),
            State::Measuring(hot) => self.run_candidate(cx, &hot, chosen),
        }
    }

    fn run_candidate(&self, cx: &Context, hot: &TunedProduct, chosen: Algorithm) -> Result<()> {
        let mut work = match hot.work.try_lock() {
            Ok(work) => work,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread is measuring the same product.
            Err(TryLockError::WouldBlock) => return self.run_in(cx, chosen),
        };
        let may_ask = !cx.device.is_capturing();
        if may_ask {
            work.read_time(cx, &hot.key)?;
        }
        let next = if may_ask && work.timed.is_none() { work.next(self, cx)? } else { None };
        let Some(next) = next else {
            let algorithm = work.trials.best();
            drop(work);
            return self.run_in(cx, algorithm);
        };
        let from = cx.device.record_event(true)?;
        self.run_in(cx, work.trials.algorithm(next))?;
        let to = cx.device.record_event(true)?;
        work.timed = Some((next, [from, to]));
        Ok(())
    }
}

impl TuningState {
    /// Reads the time of the last run if it is available.
    fn read_time(&mut self, cx: &Context, key: &Key) -> Result<()> {
        let Some((of, [from, to])) = &self.timed else { return Ok(()) };
        if !to.query()? {
            return Ok(());
        }
        let (of, seconds) = (*of, from.elapsed_ms(to)? * 1e-3);
        self.timed = None;
        let extra = self.trials.put(of, seconds);
        BUDGET.lock().unwrap_or_else(PoisonError::into_inner).charge(extra);
        if self.trials.is_done() {
            self.record(cx, key);
        }
        Ok(())
    }

    fn record(&self, cx: &Context, key: &Key) {
        let algorithm = self.trials.best();
        tracing::debug!("{}: {:?}: {}", cx.device.info().name, key.choice_key.size, self.trials);
        cx.device.put_adapter_record(&key.name(), &candidates::text(algorithm));
    }

    /// The algorithm to time next, whose kernel is compiled; `None` if there is none, or if the
    /// time budget is spent.
    fn next(&mut self, problem: &Problem, cx: &Context) -> Result<Option<usize>> {
        if self.trials.is_done() || !BUDGET.lock().unwrap_or_else(PoisonError::into_inner).allows(elapsed()) {
            return Ok(None);
        }
        // The compilation of all of them starts with the first call.
        let mut ready = Vec::new();
        for i in self.trials.open() {
            let kernel = problem.kernel(cx, self.trials.algorithm(i))?;
            ready.push((i, kernel.map(|kernel| (kernel.is_compiled(), kernel.refused()))));
        }
        for (i, state) in &ready {
            if matches!(state, None | Some((_, true))) {
                self.trials.drop_candidate(*i);
            }
        }
        let compiled = |i: usize| ready.iter().any(|(of, state)| *of == i && *state == Some((true, false)));
        Ok(self.trials.next_candidate().filter(|&i| compiled(i)))
    }
}

/// The thread's knowledge of a product, after counting one more use.
fn count_use(cx: &Context, key: Key, chosen: Algorithm, mode: Autotune) -> State {
    THREAD_CACHE.with_borrow_mut(|all| {
        if all.is_empty() {
            all.resize(THREAD_CACHE_SIZE, None);
        }
        let mixed = key.choice_key.size.iter().fold(key.device as u64, |mixed, &n| {
            (mixed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        });
        let place = &mut all[(mixed >> 56) as usize % THREAD_CACHE_SIZE];
        let state = match place {
            Some((of, state)) if *of == key => match state {
                State::Counting(times) if *times >= TUNING_THRESHOLD => begin(key, chosen, mode),
                State::Counting(times) => State::Counting(*times + 1),
                State::Measuring(hot) => tuned_state(hot).unwrap_or_else(|| state.clone()),
                State::Tuned(algorithm) => return State::Tuned(*algorithm),
            },
            _ => recorded(cx, &key, chosen, mode).map_or(State::Counting(1), State::Tuned),
        };
        *place = Some((key, state.clone()));
        state
    })
}

/// The fastest algorithm, as recorded by an earlier process or another thread.
fn recorded(cx: &Context, key: &Key, chosen: Algorithm, mode: Autotune) -> Option<Algorithm> {
    let text = cx.device.adapter_record(&key.name())?;
    candidates::of_text(&candidates(&key.choice_key, chosen, mode), &text)
}

fn tuned_state(hot: &TunedProduct) -> Option<State> {
    let work = hot.work.try_lock().ok()?;
    work.trials.is_done().then(|| State::Tuned(work.trials.best()))
}

/// Starts tuning a product, unless another thread did, or there is nothing to try.
fn begin(key: Key, chosen: Algorithm, mode: Autotune) -> State {
    let mut all = TUNED_PRODUCTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hot) = all.iter().find(|hot| hot.key == key) {
        return State::Measuring(Arc::clone(hot));
    }
    let algorithms = candidates(&key.choice_key, chosen, mode);
    if algorithms.len() < 2 || all.len() >= MAX_TUNED_PRODUCTS {
        return State::Tuned(chosen);
    }
    let work = Mutex::new(TuningState { trials: Trials::new(algorithms), timed: None });
    let hot = Arc::new(TunedProduct { key, work });
    all.push(Arc::clone(&hot));
    State::Measuring(hot)
}
