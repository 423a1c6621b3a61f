//! Numbers of the threads that use the engine, so that an error reaches the thread that enqueued
//! the work.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of a thread, or of none. Numbers are small: the number of a thread that has ended is
/// reused.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadNumber(u32);

impl ThreadNumber {
    /// The number of a thread that is about to end, whose errors go to any other thread.
    const NOBODY: Self = Self(u32::MAX);

    /// The calling thread's number.
    #[inline]
    pub(crate) fn here() -> Self {
        let number = NUMBER.get();
        if number == Self(0) { assign() } else { number }
    }

    /// Numbers begin with 1.
    pub(crate) fn get(self) -> u32 {
        self.0
    }

    /// The thread number of a count, which begins with 1.
    pub(crate) fn of(number: u32) -> Self {
        Self(number)
    }

    /// Whether no running thread has this number.
    pub(crate) fn has_ended(self) -> bool {
        !taken().get(self.0 as usize).copied().unwrap_or(false)
    }
}

thread_local! {
    /// 0 before the first use.
    static NUMBER: Cell<ThreadNumber> = const { Cell::new(ThreadNumber(0)) };
    static END: End = const { End };
}

/// The numbers in use. The first one belongs to no thread.
static TAKEN: Mutex<Vec<bool>> = Mutex::new(Vec::new());

fn taken() -> MutexGuard<'static, Vec<bool>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Releases the thread's number when the thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        // Later destructors of the thread may still use the engine.
        let number = NUMBER.replace(ThreadNumber::NOBODY);
        if let Some(taken) = taken().get_mut(number.0 as usize) {
            *taken = false;
        }
    }
}

#[cold]
fn assign() -> ThreadNumber {
    if END.try_with(|_| ()).is_err() {
        return ThreadNumber::NOBODY;
    }
    let mut taken = taken();
    if taken.is_empty() {
        taken.push(true);
    }
    let number = taken.iter().position(|taken| !taken).unwrap_or_else(|| {
        taken.push(false);
        taken.len() - 1
    });
    taken[number] = true;
    let number = ThreadNumber(number as u32);
    NUMBER.set(number);
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_different_numbers_that_are_given_again() {
        let here = ThreadNumber::here();
        assert_eq!(here, ThreadNumber::here());
        assert!(here.get() > 0 && !here.has_ended() && ThreadNumber::NOBODY.has_ended());
        let there = std::thread::spawn(|| (ThreadNumber::here(), ThreadNumber::here().has_ended())).join();
        let (there, ended) = there.expect("it runs");
        assert!(there != here && !ended);
        let mut highest = 0;
        for _ in 0..1000 {
            highest = highest.max(std::thread::spawn(|| ThreadNumber::here().get()).join().expect("it runs"));
        }
        assert!(highest < 500, "{highest}: numbers are used again");
    }
}
