//! The window of commands in flight: how far the host may run ahead of the device.
//!
//! Work that was given to the driver cannot be taken back, so it is bounded: by the number of
//! commands in flight, and by the time that they are expected to take. How long a command takes is
//! not known before it ran, so the size of the window adapts, as that of a network's congestion
//! window does:
//!
//! - Every submission that completes tells how long the commands took that were in flight with it.
//!   The window becomes as many commands as fit into [`SPAN`] at that rate.
//! - The window grows at most twofold at a time, and only when it limited the host: that some
//!   commands are fast says little of others.
//! - The window shrinks only by completions that were seen as they happened. A completion that is
//!   seen late may have happened long before.
//! - When the device was idle for long, the next commands may be of any kind, and the window is as
//!   at first.
//!
//! Half a window makes a batch, so that one batch runs while the next is recorded. Where one
//! command takes longer than the span, one is in flight at a time.

use dml_gpu::Ticket;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that the commands in flight should take at most.
const SPAN: Duration = Duration::from_millis(100);
/// The most commands in flight, however fast they are: the next ones may be slow, which nothing
/// tells in advance. CUDA queues about as many launches.
const MAX_WINDOW: u32 = 1024;
/// The size of the window before anything was measured. Half of it is worth a submit (see
/// [`crate::queue::policy`]).
const FIRST_WINDOW: u32 = 16;
/// The most commands that a submission counts as: a graph is measured as a whole.
const MAX_COUNTED: u32 = 64;
/// The largest factor by which one measurement shrinks the window: other programs may have kept the
/// processors busy.
const SHRINK: u32 = 4;

/// When a completion was seen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// As it happened.
    AtOnce,
    /// Some time later.
    Later,
}

/// The commands in flight on one device, and how many may be.
pub(crate) struct RunAhead {
    window: Mutex<Window>,
    /// Half a window, for threads that enqueue.
    batch: AtomicU32,
    /// There was no room after the last look or submission.
    full: AtomicBool,
}

struct Window {
    flights: VecDeque<Flight>,
    /// Commands of the flights.
    commands: u32,
    /// Commands that may be in flight.
    size: u32,
    /// The window limited the host since the last measurement.
    limits: bool,
    /// When something was last in flight.
    active: Instant,
}

/// A submission that is in flight: not known to be complete.
struct Flight {
    ticket: Ticket,
    commands: u32,
    /// Commands that were in flight when it was submitted, its own included.
    with: u32,
    since: Instant,
}

impl RunAhead {
    pub(crate) fn new() -> Self {
        let window = Window::new(Instant::now());
        Self { batch: AtomicU32::new(window.batch()), full: AtomicBool::new(false), window: Mutex::new(window) }
    }

    /// Commands that one batch should have at most.
    #[inline]
    pub(crate) fn batch(&self) -> u32 {
        self.batch.load(Ordering::Relaxed)
    }

    /// Whether as much is in flight as may be, or was a moment ago: then the caller looks again
    /// with [`has_room`](Self::has_room).
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// `commands` were submitted as `ticket`, when all up to `completed` was complete.
    pub(crate) fn submitted(&self, ticket: Ticket, commands: u32, completed: Ticket) {
        let (mut window, now) = (self.lock(), Instant::now());
        self.complete(&mut window, completed, now, Seen::Later);
        window.submitted(ticket, commands.clamp(1, MAX_COUNTED), now);
        self.full.store(!window.has_room(), Ordering::Relaxed);
    }

    /// Whether another batch may be submitted, now that all up to `completed` is complete.
    pub(crate) fn has_room(&self, completed: Ticket, seen: Seen) -> bool {
        let mut window = self.lock();
        self.complete(&mut window, completed, Instant::now(), seen);
        let room = window.has_room();
        self.full.store(!room, Ordering::Relaxed);
        room
    }

    fn complete(&self, window: &mut Window, completed: Ticket, now: Instant, seen: Seen) {
        window.completed(completed, now, seen);
        self.batch.store(window.batch(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn new(now: Instant) -> Self {
        Self { flights: VecDeque::new(), commands: 0, size: FIRST_WINDOW, limits: false, active: now }
    }

    fn batch(&self) -> u32 {
        (self.size / 2).max(1)
    }

    fn has_room(&mut self) -> bool {
        let room = self.commands <= self.size / 2;
        self.limits |= !room;
        room
    }

    fn submitted(&mut self, ticket: Ticket, commands: u32, since: Instant) {
        if self.flights.is_empty() && since.saturating_duration_since(self.active) > SPAN {
            self.size = self.size.min(FIRST_WINDOW);
        }
        self.active = since;
        self.commands += commands;
        self.flights.push_back(Flight { ticket, commands, with: self.commands, since });
    }

    fn completed(&mut self, completed: Ticket, now: Instant, seen: Seen) {
        let mut last = None;
        while self.flights.front().is_some_and(|flight| flight.ticket <= completed) {
            last = self.flights.pop_front();
            self.commands -= last.as_ref().map_or(0, |flight| flight.commands);
        }
        let Some(last) = last else { return };
        self.active = now;
        let took = now.saturating_duration_since(last.since).as_nanos().max(1);
        let fits = u32::try_from(SPAN.as_nanos() * u128::from(last.with) / took).unwrap_or(u32::MAX).max(1);
        if fits > self.size {
            if std::mem::take(&mut self.limits) {
                self.size = fits.min(2 * self.size).min(MAX_WINDOW);
            }
        } else if seen == Seen::AtOnce {
            self.size = fits.max(self.size / SHRINK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enqueues as fast as it may on a device whose commands take so long each. Returns the most
    /// that was in flight after `settled` commands, and the most commands of one submission.
    fn enqueue(commands: u32, settled: u32, each: impl Fn(u32) -> Duration) -> (Duration, u32) {
        let mut now = Instant::now();
        let mut window = Window::new(now);
        let mut ends: VecDeque<(Ticket, Instant, Duration)> = VecDeque::new();
        let (mut at, mut ticket, mut most, mut largest) = (0, 0, Duration::ZERO, 0);
        while at < commands {
            while !window.has_room() {
                let (done, end, _) = ends.pop_front().expect("something is in flight");
                now = now.max(end);
                window.completed(done, now, Seen::AtOnce);
            }
            let batch = window.batch();
            let takes: Duration = (at..at + batch).map(&each).sum();
            let begin = ends.back().map_or(now, |(_, end, _)| now.max(*end));
            ticket += 1;
            window.submitted(Ticket(ticket), batch, now);
            ends.push_back((Ticket(ticket), begin + takes, takes));
            if at >= settled {
                most = most.max(begin + takes - now);
                largest = largest.max(batch);
            }
            at += batch;
        }
        (most, largest)
    }

    #[test]
    fn what_is_in_flight_takes_a_tenth_of_a_second() {
        for us in [1, 30, 500, 2_000, 10_000, 40_000] {
            let (most, largest) = enqueue(5_000, 1_000, |_| Duration::from_micros(us));
            assert!(most <= SPAN + Duration::from_micros(2 * us), "{us} us: {most:?} in flight");
            assert_eq!(largest, (50_000 / us as u32).clamp(1, MAX_WINDOW / 2), "{us} us");
        }
    }

    #[test]
    fn slow_commands_are_in_flight_one_at_a_time() {
        let (most, largest) = enqueue(200, 40, |_| Duration::from_secs(2));
        assert_eq!((most, largest), (Duration::from_secs(2), 1));
    }

    #[test]
    fn commands_that_become_slow_are_noticed_within_a_window() {
        let each = |i| Duration::from_micros(if i < 10_000 { 5 } else { 20_000 });
        let (most, _) = enqueue(12_000, 0, each);
        assert!(most <= Duration::from_millis(20 * u64::from(MAX_WINDOW)), "{most:?}");
        let (most, _) = enqueue(12_000, 10_000 + 4 * MAX_WINDOW, each);
        assert!(most <= SPAN + Duration::from_millis(40), "{most:?}");
    }

    #[test]
    fn what_is_seen_late_shrinks_nothing() {
        let start = Instant::now();
        let mut window = Window { size: 64, limits: true, ..Window::new(start) };
        window.submitted(Ticket(1), 8, start);
        window.completed(Ticket(1), start + Duration::from_secs(60), Seen::Later);
        assert_eq!((window.size, window.commands), (64, 0));
        window.submitted(Ticket(2), 8, start);
        window.completed(Ticket(2), start + Duration::from_micros(80), Seen::Later);
        assert_eq!(window.size, 128, "but it can grow");
    }

    #[test]
    fn a_window_that_nobody_met_the_end_of_stays_as_it_is() {
        let start = Instant::now();
        let mut window = Window::new(start);
        for i in 0..100 {
            let now = start + Duration::from_micros(100 * i);
            window.submitted(Ticket(i + 1), 8, now);
            assert!(window.has_room());
            window.completed(Ticket(i + 1), now + Duration::from_micros(10), Seen::Later);
        }
        assert_eq!(window.size, FIRST_WINDOW);
        window.size = MAX_WINDOW;
        window.submitted(Ticket(101), 8, start + Duration::from_millis(20));
        window.completed(Ticket(101), start + Duration::from_millis(21), Seen::Later);
        assert_eq!(window.size, MAX_WINDOW, "the device was busy a moment ago");
        window.submitted(Ticket(102), 8, start + Duration::from_secs(2));
        assert_eq!(window.size, FIRST_WINDOW, "and now it was not for long");
    }
}
