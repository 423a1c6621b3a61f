//! When pending work is submitted: the only place that decides it. What must be submitted for a
//! wait is submitted at once besides.
//!
//! A submit costs the host 2 to 3 µs and the GPU about 6, a dependent dispatch costs the GPU about
//! 2, and a GPU that waits for the host does nothing. Measured best (`docs/notebook/2026-11.md`):
//! submit 64 at once, or 8 when the GPU has nothing to do, or 4 then in a program that waits often.
//! Where commands are slow, a batch has fewer ([`crate::submit::run_ahead`]).
//!
//! The thread that submits looks after what the host left pending: without it, an operator followed
//! by other work of the host would not start before the next wait. While there is activity it looks
//! every [`TICK`]; when nothing was enqueued for a whole tick and the device has nothing to do, it
//! submits what is pending. So an operator starts within two ticks (plus the timer slack of the
//! system: none on Linux, where the thread asks for that; milliseconds on Windows). After
//! [`SLEEP_AFTER`] without work it sleeps until the next launch wakes it. That costs the launch a
//! system call, and a processor that slept long wakes slowly: so that launch is submitted at once,
//! by the thread that made it.

use dml_environment::SUBMIT_WORK;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Operations that one submission does at most, so that no display driver takes a slow GPU for a
/// hung one (Windows does after 2 seconds): 0.9 seconds at 0.15 TFLOPS, which is about the slowest
/// GPU with Vulkan 1.2. On one that does 40 TFLOPS it is 3 milliseconds, beside which a submit's
/// few microseconds are nothing.
const MAX_WORK: u64 = 1 << 37;
/// The same for each compute unit that has a workgroup: 0.3 seconds of 64 lanes that multiply and
/// add at 0.5 GHz.
const MAX_WORK_OF_UNIT: u64 = 1 << 34;
/// Commands that are always submitted together at most.
const MAX_BATCH: u32 = 64;
/// Commands worth a submit when the GPU is idle.
const IDLE_BATCH: u32 = 8;
/// The same in a program that waits often.
const IDLE_BATCH_FREQUENT: u32 = 4;
/// Asking whether the GPU is idle costs up to 0.3 µs, so it is asked at every fourth command.
const ASK_EVERY: u32 = 4;
/// A program waits often when it waits at least once in so many commands.
const FREQUENT: u32 = 128;

/// How often the thread that submits looks whether the host still enqueues.
pub(crate) const TICK: Duration = Duration::from_micros(30);
/// Quiet ticks before that thread sleeps until there is work.
const SLEEP_AFTER: u32 = 20;
/// Quiet ticks after which pending work is submitted also to a device that has work. Sooner it
/// would gain nothing, and cut chains of launches in two wherever the host holds its breath.
const PATIENCE: u32 = 8;

/// What to do with what is pending.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// More may come.
    Keep,
    /// Submit it if the GPU has nothing to do.
    SubmitIfIdle,
    /// Submit it.
    Submit,
}

/// Whether the first launch after a sleep of the thread is submitted at once: a GPU that had
/// nothing to do for long begins sooner. Not with a kernel that the host would have to wait for.
#[inline]
pub(crate) fn begins_at_once(woken: bool, is_compiled: impl FnOnce() -> bool) -> bool {
    woken && is_compiled()
}

/// What to do with pending work after ticks without another command.
pub(crate) fn quiet(ticks: u32) -> Decision {
    if ticks >= PATIENCE { Decision::Submit } else { Decision::SubmitIfIdle }
}

/// Whether the thread that submits may sleep after ticks without another command, with nothing
/// pending.
pub(crate) fn may_sleep(ticks: u32) -> bool {
    ticks >= SLEEP_AFTER
}

/// How much work one submission does at most. What a launch does is an estimate
/// ([`Launch::work`](crate::Launch::work)), known before anything ran: how long commands take is
/// not. A launch that does more is cut into parts, and a batch ends before it does more.
pub(crate) struct WorkBound {
    most: AtomicU64,
    /// Compute units that are known to share a launch; none once somebody said how much is too
    /// much.
    units: AtomicU32,
}

impl WorkBound {
    /// That of an adapter with so many compute units, if the driver tells, or of
    /// `TORCH_DML_SUBMIT_WORK`.
    pub(crate) fn new(units: Option<u32>) -> Self {
        let told = SUBMIT_WORK.get().map(|millions| millions as u64 * 1_000_000);
        let units = if told.is_some() { 0 } else { units.unwrap_or(0) };
        Self { most: AtomicU64::new(told.unwrap_or(MAX_WORK)), units: AtomicU32::new(units) }
    }

    pub(crate) fn set(&self, operations: u64) {
        self.units.store(0, Ordering::Relaxed);
        self.most.store(operations, Ordering::Relaxed);
    }

    /// What a launch of so many workgroups, or a part of one, does at most. On many units it may do
    /// more than a batch: fewer workgroups than fill them all would leave the others idle, since no
    /// part begins before the one before it has ended.
    pub(crate) fn of_launch(&self, groups: [u32; 3]) -> u64 {
        let groups = groups.into_iter().fold(1, |all: u64, n| all.saturating_mul(n.into()));
        let busy = u64::from(self.units.load(Ordering::Relaxed)).min(groups);
        self.most.load(Ordering::Relaxed).max(busy * MAX_WORK_OF_UNIT)
    }

    /// Whether a batch that does `pending` would do too much with `more`.
    #[inline]
    pub(crate) fn is_exceeded(&self, pending: u64, more: u64) -> bool {
        pending.saturating_add(more) > self.most.load(Ordering::Relaxed)
    }
}

/// The policy's memory: how often the program waits.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// Commands since the last wait.
    since_wait: u32,
    /// Mean of commands between waits, over the last few.
    mean: u32,
    waits: bool,
}

impl Policy {
    /// A command was added; `pending` commands are not yet submitted, and `limit` should not be at
    /// once.
    #[inline]
    pub(crate) fn added(&mut self, pending: u32, limit: u32) -> Decision {
        self.since_wait = self.since_wait.saturating_add(1);
        if pending >= limit.min(MAX_BATCH) {
            return Decision::Submit;
        }
        if pending >= self.idle_batch() && pending.is_multiple_of(ASK_EVERY) {
            Decision::SubmitIfIdle
        } else {
            Decision::Keep
        }
    }

    /// As [`added`](Self::added) for `count` commands at once.
    pub(crate) fn added_many(&mut self, count: u32, pending: u32, limit: u32) -> Decision {
        self.since_wait = self.since_wait.saturating_add(count);
        if pending >= limit.min(MAX_BATCH) {
            return Decision::Submit;
        }
        if pending >= self.idle_batch() { Decision::SubmitIfIdle } else { Decision::Keep }
    }

    /// The host waits for results.
    pub(crate) fn waited(&mut self) {
        self.mean = if self.waits { (self.mean * 3).saturating_add(self.since_wait) / 4 } else { self.since_wait };
        self.waits = true;
        self.since_wait = 0;
    }

    fn idle_batch(&self) -> u32 {
        if self.frequent() { IDLE_BATCH_FREQUENT } else { IDLE_BATCH }
    }

    fn frequent(&self) -> bool {
        self.waits && self.mean <= FREQUENT && self.since_wait <= 2 * FREQUENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_batches_go_at_once() {
        let mut policy = Policy::default();
        assert_eq!(policy.added(1, u32::MAX), Decision::Keep);
        assert_eq!(policy.added(4, u32::MAX), Decision::Keep);
        assert_eq!(policy.added(8, u32::MAX), Decision::SubmitIfIdle);
        assert_eq!(policy.added(9, u32::MAX), Decision::Keep);
        assert_eq!(policy.added(12, u32::MAX), Decision::SubmitIfIdle);
        assert_eq!(policy.added(64, u32::MAX), Decision::Submit);
    }

    #[test]
    fn batches_of_slow_commands_are_small() {
        let mut policy = Policy::default();
        assert_eq!((policy.added(1, 2), policy.added(2, 2)), (Decision::Keep, Decision::Submit));
        assert_eq!((policy.added(63, 1000), policy.added(64, 1000)), (Decision::Keep, Decision::Submit));
    }

    #[test]
    fn batches_of_much_work_end() {
        let bound = WorkBound::new(Some(100));
        bound.set(100);
        assert!(!bound.is_exceeded(0, 100) && !bound.is_exceeded(60, 40));
        assert!(bound.is_exceeded(0, 101) && bound.is_exceeded(60, 41) && bound.is_exceeded(1, u64::MAX));
        assert_eq!(bound.of_launch([1000, 1, 1]), 100, "what somebody set is so for all launches");
    }

    #[test]
    fn launches_that_fill_many_units_are_longer() {
        let most = |units, groups| WorkBound::new(units).of_launch(groups);
        for groups in [[1, 1, 1], [3, 1, 2], [1000, 1000, 1000]] {
            assert_eq!((most(None, groups), most(Some(8), groups)), (MAX_WORK, MAX_WORK), "{groups:?}");
        }
        assert_eq!(most(Some(132), [2, 2, 2]), MAX_WORK);
        assert_eq!(most(Some(132), [8, 2, 1]), 16 * MAX_WORK_OF_UNIT);
        assert_eq!(most(Some(132), [u32::MAX, u32::MAX, 1]), 132 * MAX_WORK_OF_UNIT);
    }

    #[test]
    fn many_at_once() {
        let mut policy = Policy::default();
        assert_eq!(policy.added_many(7, 7, u32::MAX), Decision::Keep);
        assert_eq!(policy.added_many(3, 10, u32::MAX), Decision::SubmitIfIdle);
        assert_eq!(policy.added_many(500, 510, u32::MAX), Decision::Submit);
    }

    #[test]
    fn programs_that_wait_often_submit_sooner() {
        let mut policy = Policy::default();
        for _ in 0..4 {
            for i in 1..20 {
                policy.added(i, u32::MAX);
            }
            policy.waited();
        }
        assert_eq!(policy.added(4, u32::MAX), Decision::SubmitIfIdle);
        for _ in 0..10_000 {
            policy.added(1, u32::MAX);
        }
        assert_eq!(policy.added(4, u32::MAX), Decision::Keep);
        policy.waited();
        for _ in 0..10_000 {
            policy.added(1, u32::MAX);
        }
        policy.waited();
        assert_eq!(policy.added(4, u32::MAX), Decision::Keep);
    }

    #[test]
    fn what_the_host_left_goes_when_it_is_quiet() {
        assert_eq!(quiet(1), Decision::SubmitIfIdle);
        assert_eq!(quiet(PATIENCE), Decision::Submit);
        assert!(!may_sleep(PATIENCE) && may_sleep(SLEEP_AFTER));
        assert!(begins_at_once(true, || true) && !begins_at_once(true, || false));
        assert!(!begins_at_once(false, || unreachable!("the kernel is not looked at")));
    }

    #[test]
    fn huge_gaps_do_not_overflow() {
        let mut policy = Policy { since_wait: u32::MAX, mean: u32::MAX / 4, waits: true };
        policy.waited();
        policy.added(1, u32::MAX);
    }
}
