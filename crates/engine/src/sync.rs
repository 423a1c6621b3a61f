//! The primitives of the types that several threads use without the queue's lock: std's, or loom's
//! in tests that are built with `--cfg loom` (`make loom`), which then run every order that threads
//! can come in.

#[cfg(not(all(test, loom)))]
mod primitives {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
    pub(crate) use std::thread::{Thread, park};
}

#[cfg(all(test, loom))]
mod primitives {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::park;

    /// A thread that can be woken. One of the system's is in no model, so nothing wakes it.
    pub(crate) struct Thread(Option<loom::thread::Thread>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.iter().for_each(loom::thread::Thread::unpark);
        }
    }

    impl From<loom::thread::Thread> for Thread {
        fn from(thread: loom::thread::Thread) -> Self {
            Self(Some(thread))
        }
    }

    impl From<std::thread::Thread> for Thread {
        fn from(_: std::thread::Thread) -> Self {
            Self(None)
        }
    }

    /// `std::sync::OnceLock`, which loom lacks: the same order of memory, and the same wait for a
    /// thread that is setting it.
    pub(crate) struct OnceLock<T> {
        setting: Mutex<()>,
        is_set: AtomicBool,
        value: std::sync::OnceLock<T>,
    }

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self { setting: Mutex::new(()), is_set: AtomicBool::new(false), value: std::sync::OnceLock::new() }
        }

        pub(crate) fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            let _setting = self.setting.lock();
            let result = self.value.set(value);
            self.is_set.store(true, Ordering::Release);
            result
        }
    }
}

pub(crate) use primitives::*;
