//! The command stream of one device: records batches and submits them.
//!
//! Commands are recorded in order, with barriers only where bytes overlap ([`OrderedRecorder`]),
//! and pointwise chains as one launch ([`Fusion`]). The stream has a lock of its own, so that a
//! thread can enqueue while another records what was handed over (see [`crate::submit::handover`]).

use crate::backend::{Gpu, Recorder, Segment};
use crate::fusion::chain::Fusion;
use crate::fusion::run::Step;
use crate::kernels::store::KernelStore;
use crate::profile::measure::{self, Stage};
use crate::submit::batch::{EndedBatch, RecordedBatch, SubmittedBatch};
use crate::submit::errors::Errors;
use crate::submit::ordered::OrderedRecorder;
use crate::threads::ThreadNumber;
use std::sync::Arc;

pub(crate) struct Stream {
    pub(crate) recorder: OrderedRecorder,
    fusion: Fusion,
    /// What copies of staged bytes read.
    ring: Arc<Segment>,
}

impl Stream {
    /// A stream over a new recorder, for batches whose kernels are in this store and whose staged
    /// bytes lie in this ring.
    pub(crate) fn new(recorder: Recorder, kernels: Arc<KernelStore>, ring: Arc<Segment>) -> Self {
        Self { recorder: OrderedRecorder::new(recorder), fusion: Fusion::new(kernels), ring }
    }

    /// Records a batch. A command that fails is left out, and its error is the thread's that
    /// enqueued it.
    pub(crate) fn record(&mut self, gpu: &Gpu, batch: EndedBatch) -> RecordedBatch {
        let _stage = measure::enter(Stage::Record);
        let mut errors = Errors::default();
        let Self { recorder, fusion, ring } = self;
        let (list, staging) = (batch.commands(), std::slice::from_ref(&**ring));
        fusion.run(list, |step| match step {
            Step::Command(command) => errors.add(command.thread, recorder.record_command(gpu, list, command, staging)),
            Step::Fused(fused, last) => errors.add(last.thread, recorder.record_fused(gpu, list, fused, last)),
        });
        // The submission thread has a number only when it needs one: numbers of ended threads are
        // given again.
        if let Err(e) = recorder.collect_times() {
            errors.add(ThreadNumber::here(), Err(e));
        }
        batch.recorded(errors)
    }

    /// Submits a batch, with what was recorded after it. The ticket of the batch must be the next
    /// one.
    #[inline]
    pub(crate) fn submit(&mut self, batch: RecordedBatch) -> SubmittedBatch {
        let submitted = self.recorder.submit(batch.ticket(), batch.work());
        batch.submitted(submitted)
    }
}
