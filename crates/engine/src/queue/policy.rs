//! When pending work is submitted: the only place that decides it. Besides, a thread that waits
//! submits at once.
//!
//! A submit costs the host 2 to 3 µs and the GPU about 6 µs; a dependent dispatch costs the GPU
//! about 2 µs. Measured best (`docs/notebook/2026-11.md`): submit at 64 commands, or at 8 when the
//! GPU is idle, or at 4 when the GPU is idle and the program waits often. Where commands are slow,
//! a batch has fewer ([`crate::submit::run_ahead`]).
//!
//! The submission thread also submits commands that the host left pending: without it, an operator
//! that is followed by other work of the host would not start before the next wait. While there is
//! activity the thread looks every [`TICK`]; when nothing was enqueued for a whole tick and the
//! device is idle, it submits the pending batch. So an operator starts within two ticks (plus the
//! timer slack of the system: none on Linux, where the thread asks for that; milliseconds on
//! Windows). After [`SLEEP_AFTER`] ticks without work the thread sleeps until the next launch wakes
//! it. The launch pays a system call for that, and a processor that slept long wakes slowly: so the
//! launch is submitted at once, by the thread that made it.

use dml_environment::SUBMIT_WORK;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// The most operations of one submission, so that no display driver takes a slow GPU for a hung one
/// (Windows does after 2 seconds): 0.9 seconds at 0.15 TFLOPS, which is about the slowest GPU with
/// Vulkan 1.2. At 40 TFLOPS it is 3 milliseconds, of which a submit's few microseconds are a
/// negligible part.
const MAX_WORK: u64 = 1 << 37;
/// The most operations of one launch for each compute unit that has a workgroup: 0.3 seconds of 64
/// lanes that multiply and add at 0.5 GHz.
const MAX_WORK_OF_UNIT: u64 = 1 << 34;
/// Commands at which a batch is submitted in any case.
const MAX_BATCH: u32 = 64;
/// Commands that are worth a submit when the GPU is idle.
const IDLE_BATCH: u32 = 8;
/// The same in a program that waits often.
const IDLE_BATCH_FREQUENT: u32 = 4;
/// Asking whether the GPU is idle costs up to 0.3 µs, so it is asked at every fourth command only.
const ASK_EVERY: u32 = 4;
/// A program waits often if it waits at least once in this many commands.
const FREQUENT: u32 = 128;

/// The time between two looks of the submission thread at whether the host still enqueues.
pub(crate) const TICK: Duration = Duration::from_micros(30);
/// Ticks without a new command, and with nothing pending, after which the submission thread sleeps.
const SLEEP_AFTER: u32 = 20;
/// Ticks without a new command after which pending work is submitted also to a device that has
/// work. To do so sooner would gain nothing, and would split chains of launches wherever the host
/// pauses.
const PATIENCE: u32 = 8;

/// What to do with the pending batch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// More may come.
    Keep,
    /// Submit it if the GPU has nothing to do.
    SubmitIfIdle,
    /// Submit it.
    Submit,
}

/// Whether a launch that woke the submission thread is submitted at once, so that a GPU that was
/// idle for long begins sooner: unless the host would have to wait for its kernel.
#[inline]
pub(crate) fn begins_at_once(woken: bool, is_compiled: impl FnOnce() -> bool) -> bool {
    woken && is_compiled()
}

/// What to do with pending work after this many ticks without a new command.
pub(crate) fn quiet(ticks: u32) -> Decision {
    if ticks >= PATIENCE { Decision::Submit } else { Decision::SubmitIfIdle }
}

/// Whether the submission thread may sleep after this many ticks without a new command, with
/// nothing pending.
pub(crate) fn may_sleep(ticks: u32) -> bool {
    ticks >= SLEEP_AFTER
}

/// The bound on the work of one submission. The work of a launch is an estimate
/// ([`Launch::work`](crate::Launch::work)) that is known before anything ran, unlike the time that
/// it takes. A launch beyond the bound is split into parts, and a batch ends before it exceeds the
/// bound.
pub(crate) struct WorkBound {
    most: AtomicU64,
    /// Compute units that share a launch, as far as the driver tells; 0 where the bound was set by
    /// hand.
    compute_units: AtomicU32,
}

impl WorkBound {
    /// The bound for an adapter with this many compute units, if the driver tells; or that of
    /// `TORCH_DML_SUBMIT_WORK`.
    pub(crate) fn new(compute_units: Option<u32>) -> Self {
        let set = SUBMIT_WORK.get().map(|millions| millions as u64 * 1_000_000);
        let compute_units = if set.is_some() { 0 } else { compute_units.unwrap_or(0) };
        Self { most: AtomicU64::new(set.unwrap_or(MAX_WORK)), compute_units: AtomicU32::new(compute_units) }
    }

    /// Sets the bound, for batches and for launches.
    pub(crate) fn set(&self, operations: u64) {
        self.compute_units.store(0, Ordering::Relaxed);
        self.most.store(operations, Ordering::Relaxed);
    }

    /// The bound for a launch, or a part of one, of this many workgroups. On a GPU of many compute
    /// units it is higher than that of a batch: a part with fewer workgroups than units would leave
    /// some idle, since a part begins when the one before it has ended.
    pub(crate) fn of_launch(&self, groups: [u32; 3]) -> u64 {
        let groups = groups.into_iter().fold(1, |all: u64, n| all.saturating_mul(n.into()));
        let busy = u64::from(self.compute_units.load(Ordering::Relaxed)).min(groups);
        self.most.load(Ordering::Relaxed).max(busy * MAX_WORK_OF_UNIT)
    }

    /// Whether a batch of `pending` operations would exceed the bound with `more`.
    #[inline]
    pub(crate) fn is_exceeded(&self, pending: u64, more: u64) -> bool {
        pending.saturating_add(more) > self.most.load(Ordering::Relaxed)
    }
}

/// The state of the policy: how often the program waits.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    /// Commands since the last wait.
    since_wait: u32,
    /// The mean number of commands between the last few waits.
    mean: u32,
    /// It waited before.
    waits: bool,
}

impl Policy {
    /// A command was added to the pending batch, which now has `pending`, and should have no more
    /// than `limit`.
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
        let most = |compute_units, groups| WorkBound::new(compute_units).of_launch(groups);
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
