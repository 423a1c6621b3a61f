//! The thread pool that compiles pipelines in the background, one for the process.
//!
//! Threads start when there is work, at most [`MAX_THREADS`] of them, and end after some idle time.
//! The pipeline cache is saved at the end of a burst of compilations, and now and then during a
//! long one, so that a process that is killed later starts fast the next time.

use crate::backend::Gpu;
use dml_environment::COMPILE_THREADS;
use dml_gpu::traits::*;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// More threads gain little, because drivers take locks.
const MAX_THREADS: usize = 8;
/// Idle time after which the cache is saved.
const SAVE_AFTER: Duration = Duration::from_millis(400);
/// The longest time for which compiled pipelines stay unsaved in a burst without idle time.
const SAVE_EVERY: Duration = Duration::from_secs(10);
/// Idle time after which a thread ends.
const END_AFTER: Duration = Duration::from_secs(5);

/// A job of a thread of the pool: it makes a pipeline.
pub(crate) type Job = Box<dyn FnOnce(&Gpu) + Send>;

struct Pool {
    state: Mutex<State>,
    work: Condvar,
    quiet: Condvar,
}

struct State {
    jobs: VecDeque<(Gpu, Job)>,
    threads: usize,
    idle: usize,
    /// Devices with unsaved pipelines, by adapter.
    unsaved: Vec<([u8; 16], Gpu)>,
    /// When the first of them was compiled.
    unsaved_since: Option<Instant>,
}

static POOL: Pool = Pool {
    state: Mutex::new(State { jobs: VecDeque::new(), threads: 0, idle: 0, unsaved: Vec::new(), unsaved_since: None }),
    work: Condvar::new(),
    quiet: Condvar::new(),
};

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_unsaved(&mut self) -> Vec<([u8; 16], Gpu)> {
        self.unsaved_since = None;
        std::mem::take(&mut self.unsaved)
    }
}

/// `TORCH_DML_COMPILE_THREADS`, else the number of cores up to [`MAX_THREADS`].
fn max_threads() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    let cores = || std::thread::available_parallelism().map_or(2, |n| n.get());
    *MAX.get_or_init(|| COMPILE_THREADS.get().unwrap_or_else(|| cores().min(MAX_THREADS)))
}

/// Queues a job. If the system cannot start a thread, the job may never run, and the thread that
/// needs the pipeline compiles it.
pub(crate) fn enqueue(gpu: &Gpu, job: Job) {
    let mut state = POOL.lock();
    state.jobs.push_back((gpu.clone(), job));
    if state.jobs.len() > state.idle
        && state.threads < max_threads()
        && std::thread::Builder::new().name("dml-compile".to_owned()).spawn(run).is_ok()
    {
        state.threads += 1;
    }
    drop(state);
    POOL.work.notify_one();
}

/// Discards queued jobs, waits for running ones, and saves the pipeline caches.
pub(crate) fn finish() {
    let mut state = POOL.lock();
    state.jobs.clear();
    while state.threads > state.idle {
        state = POOL.quiet.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    let unsaved = state.take_unsaved();
    drop(state);
    save(unsaved);
}

fn save(gpus: Vec<([u8; 16], Gpu)>) {
    for (_, gpu) in gpus {
        if let Err(e) = gpu.save_pipeline_cache() {
            tracing::debug!("pipeline cache not saved: {e}");
        }
    }
}

fn run() {
    let mut state = POOL.lock();
    loop {
        if let Some((gpu, job)) = state.jobs.pop_front() {
            drop(state);
            job(&gpu);
            let id = gpu.info().device_uuid;
            state = POOL.lock();
            if !state.unsaved.iter().any(|u| u.0 == id) {
                state.unsaved.push((id, gpu));
            }
            if state.unsaved_since.get_or_insert_with(Instant::now).elapsed() > SAVE_EVERY {
                let unsaved = state.take_unsaved();
                drop(state);
                save(unsaved);
                state = POOL.lock();
            }
            continue;
        }
        state.idle += 1;
        POOL.quiet.notify_all();
        let patience = if state.unsaved.is_empty() { END_AFTER } else { SAVE_AFTER };
        let (next, timeout) = POOL.work.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner);
        state = next;
        state.idle -= 1;
        if !timeout.timed_out() || !state.jobs.is_empty() {
            continue;
        }
        if state.unsaved.is_empty() {
            state.threads -= 1;
            POOL.quiet.notify_all();
            return;
        }
        if state.threads > state.idle + 1 {
            continue; // Others still compile: the burst is not over.
        }
        let unsaved = state.take_unsaved();
        drop(state);
        save(unsaved);
        state = POOL.lock();
    }
}
