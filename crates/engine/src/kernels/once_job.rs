//! Work that is done once, by whichever thread comes first; the others wait for it.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;
use std::time::Duration;

/// Work, and what it is done with.
pub(crate) struct OnceJob<I> {
    state: Mutex<State<I>>,
    done: Condvar,
}

enum State<I> {
    Waiting(I),
    Running,
    Done,
}

impl<I> OnceJob<I> {
    /// Work that nobody has begun.
    pub(crate) fn new(input: I) -> Self {
        Self { state: Mutex::new(State::Waiting(input)), done: Condvar::new() }
    }

    /// Does the work if nobody has begun it, and returns when it is done.
    pub(crate) fn run(&self, work: impl FnOnce(I)) {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Running) {
            State::Waiting(input) => {
                drop(state);
                work(input);
                *self.lock() = State::Done;
                self.done.notify_all();
            }
            State::Running => {
                while !matches!(*state, State::Done) {
                    state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
            State::Done => *state = State::Done,
        }
    }

    /// Waits for another thread that does the work, no longer than `limit`. Returns false, at once,
    /// if none does.
    pub(crate) fn wait_for_another(&self, limit: Duration) -> bool {
        let state = self.lock();
        let running = matches!(*state, State::Running);
        if running {
            drop(self.done.wait_timeout(state, limit));
        }
        running
    }

    fn lock(&self) -> MutexGuard<'_, State<I>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::OnceLock;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn loom_work_is_done_once_and_before_anyone_goes_on() {
        loom::model(|| {
            let job = Arc::new((OnceJob::new(7), OnceLock::new()));
            let run = |job: &(OnceJob<u32>, OnceLock<u32>)| {
                job.0.run(|input| assert!(job.1.set(input).is_ok(), "done twice"));
                assert_eq!(job.1.get(), Some(&7), "not done");
            };
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let job = Arc::clone(&job);
                    thread::spawn(move || run(&job))
                })
                .collect();
            run(&job);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
