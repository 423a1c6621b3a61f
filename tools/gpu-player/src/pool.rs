//! Workgroups of a launch over threads.
//!
//! The launching thread works too, and calls the others only where the first workgroup was long
//! enough, or the workgroups are many enough, to be worth it. Which thread runs a workgroup changes
//! no result of a program without races. Of several faults the one of the lowest workgroup counts,
//! so that it is the same in every run.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Below this, waking a thread costs more than it brings.
const WORTH_A_THREAD: Duration = Duration::from_micros(40);

/// A launch.
pub trait Launch: Send + Sync + 'static {
    /// What ran.
    type Counts: Default + Send;
    /// What a workgroup can do wrong.
    type Fault: Send;

    /// How many workgroups it has.
    fn group_count(&self) -> u64;

    /// Runs a workgroup, by its number, and adds to what ran.
    ///
    /// # Errors
    ///
    /// What the workgroup did wrong.
    fn run(&self, number: u64, counts: &mut Self::Counts) -> Result<(), Self::Fault>;

    /// Adds what another thread ran.
    fn add(counts: &mut Self::Counts, other: &Self::Counts);
}

/// A launch in work.
pub struct Job<L: Launch> {
    /// What is run.
    pub launch: L,
    total: u64,
    /// The next workgroup that nobody has.
    next: AtomicU64,
    /// The first workgroup that had a fault: none after it is begun.
    bad: AtomicU64,
    outcome: Mutex<Outcome<L>>,
}

struct Outcome<L: Launch> {
    counts: L::Counts,
    fault: Option<(u64, L::Fault)>,
}

impl<L: Launch> Default for Outcome<L> {
    fn default() -> Self {
        Self { counts: L::Counts::default(), fault: None }
    }
}

impl<L: Launch> Job<L> {
    /// A launch that has not begun.
    #[must_use]
    pub fn new(launch: L) -> Self {
        let total = launch.group_count();
        let (next, bad) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Self { launch, total, next, bad, outcome: Mutex::default() }
    }

    /// Runs workgroups until none is left, or until the time.
    fn work(&self, until: Option<Instant>) {
        let mut counts = L::Counts::default();
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            if number >= self.total || number > self.bad.load(Relaxed) {
                break;
            }
            if let Err(fault) = self.launch.run(number, &mut counts) {
                self.bad.fetch_min(number, Relaxed);
                let mut outcome = lock(&self.outcome);
                if outcome.fault.as_ref().is_none_or(|(first, _)| number < *first) {
                    outcome.fault = Some((number, fault));
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
        }
        L::add(&mut lock(&self.outcome).counts, &counts);
    }

    fn is_left(&self) -> bool {
        self.next.load(Relaxed) < self.total && self.bad.load(Relaxed) == u64::MAX
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Shared<L: Launch> {
    state: Mutex<State<L>>,
    /// There is a job.
    begun: Condvar,
    /// A thread is done with it.
    ended: Condvar,
}

struct State<L: Launch> {
    job: Option<Arc<Job<L>>>,
    /// How many jobs there were, so that a thread takes each once.
    number: u64,
    /// Threads that are not done with the job.
    busy: usize,
}

/// Threads that wait for launches.
pub struct Pool<L: Launch> {
    shared: Arc<Shared<L>>,
    helpers: usize,
    /// The process that has the threads: a fork of it has none.
    process: u32,
}

impl<L: Launch> Pool<L> {
    /// `threads` of them, the caller's among them.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let state = Mutex::new(State { job: None, number: 0, busy: 0 });
        let shared = Arc::new(Shared { state, begun: Condvar::new(), ended: Condvar::new() });
        let mut helpers = 0;
        for number in 1..threads {
            let shared = shared.clone();
            let name = format!("player-{number}");
            // Without a thread there is less to wait for.
            helpers += usize::from(std::thread::Builder::new().name(name).spawn(move || serve(&shared)).is_ok());
        }
        Self { shared, helpers, process: std::process::id() }
    }

    /// Whether its threads are this process's.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Runs a launch to its end.
    ///
    /// # Errors
    ///
    /// The fault of the first workgroup that has one.
    pub fn run(&self, job: &Arc<Job<L>>) -> Result<L::Counts, L::Fault> {
        job.work(Some(Instant::now() + WORTH_A_THREAD));
        if job.is_left() && self.helpers > 0 {
            {
                let mut state = lock(&self.shared.state);
                state.job = Some(job.clone());
                state.number += 1;
                state.busy = self.helpers;
                self.shared.begun.notify_all();
            }
            job.work(None);
            let mut state = lock(&self.shared.state);
            while state.busy > 0 {
                state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.job = None;
        } else {
            job.work(None);
        }
        let outcome = std::mem::take(&mut *lock(&job.outcome));
        match outcome.fault {
            Some((_, fault)) => Err(fault),
            None => Ok(outcome.counts),
        }
    }
}

fn serve<L: Launch>(shared: &Shared<L>) {
    let mut seen = 0;
    loop {
        let mut state = lock(&shared.state);
        while state.number == seen {
            state = shared.begun.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        seen = state.number;
        let job = state.job.clone();
        drop(state);
        // A thread that unwinds would be waited for without end: what panics is the player's own
        // mistake.
        let job = job.map(|job| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.work(None))));
        if job.is_some_and(|outcome| outcome.is_err()) {
            std::process::abort();
        }
        lock(&shared.state).busy -= 1;
        shared.ended.notify_one();
    }
}
