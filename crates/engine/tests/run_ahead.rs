//! How far the host gets ahead of the device, and waits that are told to end.
#![allow(clippy::unwrap_used)]

mod common;
use common::slow::Slow;
use common::*;
use dml_engine::{Error, set_interrupt_check};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

#[test]
fn the_host_is_a_tenth_of_a_second_ahead() {
    let slow = Slow::open();
    let begin = Instant::now();
    for _ in 0..40 {
        slow.run(1);
    }
    let enqueued = begin.elapsed();
    slow.device.synchronize().unwrap();
    let ran = begin.elapsed();
    // One at a time, and a few before anything was known of them.
    assert!(ran - enqueued < ran / 2, "{enqueued:?} to enqueue what ran for {ran:?}");
    assert_eq!(slow.counted(), 42);
}

/// However the work gets to the driver: here, whoever asks whether it is done submits it.
#[test]
fn a_program_that_asks_is_bounded_too() {
    let slow = Slow::open();
    let begin = Instant::now();
    for _ in 0..30 {
        slow.run(1);
        slow.device.idle().unwrap();
    }
    let enqueued = begin.elapsed();
    slow.device.synchronize().unwrap();
    let ran = begin.elapsed();
    assert!(ran - enqueued < ran / 2, "{enqueued:?} to enqueue what ran for {ran:?}");
    assert_eq!(slow.counted(), 32);
}

#[test]
fn fast_commands_do_not_wait_for_each_other() {
    let slow = Slow::open();
    let (kernel, x) = (multiply_add(&slow.device), put(&slow.device, &[1; 64]));
    for _ in 0..20_000 {
        launch_multiply_add(&slow.device, &kernel, (x, x, x), 64, 1).unwrap();
    }
    slow.device.synchronize().unwrap();
    let stats = slow.device.queue_stats();
    // A window of 256 commands, half of which makes a batch of up to 64.
    assert!(stats.submits < 20_000 / 4, "{stats:?}");
}

thread_local! {
    /// When waits of this thread are to end.
    static STOP: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Ends the waits of this thread soon.
fn stop_soon() -> Instant {
    set_interrupt_check(Some(Arc::new(|| STOP.get().is_some_and(|stop| Instant::now() >= stop))));
    let stop = Instant::now() + Duration::from_millis(30);
    STOP.set(Some(stop));
    stop
}

/// When a wait has to know that it is to end, on an idle machine.
const NOTICED: Duration = Duration::from_millis(100);

/// How late threads are woken up at present, by others that are at work on the processors.
struct Lateness {
    /// Where a thread that does nothing but sleep sends how late it was the last time.
    seen: Receiver<Duration>,
}

impl Lateness {
    fn watch() -> Self {
        const NAP: Duration = Duration::from_millis(5);
        let (send, seen) = channel();
        std::thread::spawn(move || {
            loop {
                let begin = Instant::now();
                std::thread::sleep(NAP);
                if send.send(begin.elapsed() - NAP).is_err() {
                    return;
                }
            }
        });
        Self { seen }
    }

    /// The most since it was last asked, with the sleep that is going on.
    fn most(&self) -> Duration {
        self.seen.recv().into_iter().chain(self.seen.try_iter()).max().unwrap_or_default()
    }
}

/// A wait for a device that works for a second ends early, and what is done next is right.
fn is_interrupted(what: &str, wait: impl Fn(&Slow) -> Result<(), Error>) {
    let slow = Slow::open();
    let lateness = Lateness::watch();
    let mut runs = 2;
    // On a machine that was busy when the device was timed, the work ends before anybody asks
    // whether the wait is to.
    let (result, late, limit) = [7, 30, 120]
        .into_iter()
        .map(|tenths| {
            slow.run(tenths);
            runs += 1;
            lateness.most();
            let stop = stop_soon();
            let result = wait(&slow);
            let late = stop.elapsed();
            STOP.set(None);
            // A wait sleeps, and is late, several times.
            (result, late, NOTICED + 4 * lateness.most())
        })
        .find(|(result, late, limit)| result.is_err() || late > limit)
        .expect("the device works for long enough");
    assert_eq!(result, Err(Error::Interrupted), "{what}");
    assert!(late < limit, "{what}: {late:?} late, which is more than {limit:?}");
    slow.run(0);
    assert_eq!(slow.counted(), runs + 1, "{what}");
    assert_eq!(wait(&slow), Ok(()), "{what}");
}

#[test]
fn waits_end_when_they_are_told_to() {
    is_interrupted("synchronize", |slow| slow.device.synchronize());
    is_interrupted("a few bytes", |slow| slow.device.download(slow.word, &mut [0; 4]));
    is_interrupted("an event", |slow| slow.device.record_event(false)?.wait());
    is_interrupted("empty_cache", |slow| slow.device.empty_cache());
    for bytes in [10_000, 40 << 20] {
        is_interrupted("many bytes", |slow| {
            let block = slow.device.allocate(bytes)?;
            let read = slow.device.download(block, &mut vec![0; bytes as usize]);
            slow.device.free(block);
            read
        });
    }
}

#[test]
fn an_allocation_that_waits_for_memory_ends() {
    let slow = Slow::open();
    let block = slow.device.allocate(64 << 20).unwrap();
    slow.run(15);
    slow.device.free(block);
    slow.device.set_memory_fraction(1e-9);
    stop_soon();
    let interrupted = slow.device.allocate(128 << 20);
    STOP.set(None);
    assert_eq!(interrupted, Err(Error::Interrupted));
    assert!(matches!(slow.device.allocate(128 << 20), Err(Error::OutOfMemory { .. })));
    slow.device.set_memory_fraction(1.0);
    assert!(slow.device.allocate(128 << 20).is_ok());
}

/// An operator may be several launches: all of them are enqueued, interrupted or not.
#[test]
fn what_is_enqueued_while_interrupted_runs() {
    let slow = Slow::open();
    let before = Instant::now();
    (0..6).for_each(|_| slow.run(1));
    stop_soon();
    (0..12).for_each(|_| slow.run(1));
    let enqueued = before.elapsed();
    STOP.set(None);
    slow.device.synchronize().unwrap();
    assert!(enqueued < before.elapsed(), "{enqueued:?}");
    assert_eq!(slow.counted(), 20);
}
