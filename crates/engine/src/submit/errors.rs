//! Errors of enqueued work: each belongs to the thread that enqueued the work, and is returned by
//! that thread's next call.

use crate::error::Error;
use crate::threads::ThreadNumber;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first error of each thread.
#[derive(Default)]
pub(crate) struct Errors(Vec<(ThreadNumber, Error)>);

impl Errors {
    /// Adds an error of a thread's work, unless there is one of that thread.
    pub(crate) fn add(&mut self, thread: ThreadNumber, result: Result<(), Error>) {
        if let Err(e) = result
            && self.0.iter().all(|&(of, _)| of != thread)
        {
            self.0.push((thread, e));
        }
    }

    /// Adds an error of the work of several threads for each of them; for the calling thread if
    /// there are none.
    pub(crate) fn add_for_all(&mut self, threads: impl Iterator<Item = ThreadNumber>, result: Result<(), Error>) {
        let Err(e) = result else { return };
        let mut empty = true;
        for thread in threads {
            self.add(thread, Err(e.clone()));
            empty = false;
        }
        if empty {
            self.add(ThreadNumber::here(), Err(e));
        }
    }

    /// Changes every error.
    pub(crate) fn map(self, change: impl Fn(Error) -> Error) -> Self {
        if self.0.is_empty() {
            return self; // Almost always.
        }
        Self(self.0.into_iter().map(|(thread, error)| (thread, change(error))).collect())
    }

    /// The calling thread's error, or one of a thread that has ended.
    fn take(&mut self) -> Option<Error> {
        let here = ThreadNumber::here();
        let own = self.0.iter().position(|&(of, _)| of == here);
        let at = own.or_else(|| self.0.iter().position(|&(of, _)| of.has_ended()))?;
        Some(self.0.remove(at).1)
    }
}

/// Errors of enqueued work, deferred to the next call of the thread that enqueued it.
#[derive(Default)]
pub(crate) struct Deferred {
    any: AtomicBool,
    errors: Mutex<Errors>,
}

impl Deferred {
    /// Defers errors. Of each thread the first one counts.
    pub(crate) fn put(&self, errors: Errors) {
        if errors.0.is_empty() {
            return;
        }
        let mut deferred = self.lock();
        for (thread, error) in errors.0 {
            deferred.add(thread, Err(error));
        }
        self.any.store(true, Ordering::Release);
    }

    /// Fails with the calling thread's error, once, or with that of a thread that has ended.
    #[inline]
    pub(crate) fn take(&self) -> Result<(), Error> {
        if self.any.load(Ordering::Acquire) { self.take_own() } else { Ok(()) }
    }

    #[cold]
    fn take_own(&self) -> Result<(), Error> {
        let mut errors = self.lock();
        let error = errors.take();
        self.any.store(!errors.0.is_empty(), Ordering::Release);
        error.map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, Errors> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(what: &'static str) -> Error {
        Error::InvalidValue(what)
    }

    fn put(deferred: &Deferred, thread: ThreadNumber, what: &'static str) {
        let mut errors = Errors::default();
        errors.add(thread, Err(error(what)));
        deferred.put(errors);
    }

    #[test]
    fn each_thread_gets_its_own_first_error_once() {
        let deferred = &Deferred::default();
        let here = ThreadNumber::here();
        std::thread::scope(|scope| {
            let (send, receive) = std::sync::mpsc::channel();
            let (resume, wait) = std::sync::mpsc::channel();
            let other = scope.spawn(move || {
                send.send(ThreadNumber::here()).expect("it listens");
                wait.recv().expect("it tells");
                (deferred.take(), deferred.take())
            });
            let there = receive.recv().expect("it tells");
            put(deferred, there, "theirs");
            assert_eq!(deferred.take(), Ok(()), "another thread's");
            put(deferred, here, "mine");
            put(deferred, here, "mine, later");
            assert_eq!((deferred.take(), deferred.take()), (Err(error("mine")), Ok(())));
            resume.send(()).expect("it waits");
            let taken = other.join().expect("it runs");
            assert_eq!(taken, (Err(error("theirs")), Ok(())));
        });
    }

    #[test]
    fn the_error_of_a_thread_that_has_ended_is_anybodys() {
        let deferred = Deferred::default();
        let gone = std::thread::spawn(ThreadNumber::here).join().expect("it runs");
        put(&deferred, gone, "left behind");
        // Another test's thread may have the number by now: then the error is that thread's, and it
        // never comes here.
        if gone.has_ended() {
            assert_eq!(deferred.take(), Err(error("left behind")));
        }
    }
}
