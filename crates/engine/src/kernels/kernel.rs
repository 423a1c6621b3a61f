//! A kernel of one device, and its compilation.

use crate::backend::{self, Gpu, Pipeline};
use crate::error::Error;
use crate::interrupt;
use crate::kernels::costs;
use crate::kernels::id::KernelId;
use crate::kernels::once_job::OnceJob;
use crate::kernels::pointwise::Pointwise;
use dml_gpu::PipelineOptions;
use dml_gpu::traits::*;
use dml_kernel::{GroupCounts, Module};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A kernel of one device. Its pipeline is compiled, or about to be.
#[derive(Clone)]
pub struct KernelRef(Arc<Inner>);

struct Inner {
    id: KernelId,
    pointwise: Option<Pointwise>,
    name: String,
    workgroup_size: [u32; 3],
    matrices: bool,
    push_bytes: u32,
    param_bytes: u32,
    indirect: bool,
    counts: GroupCounts,
    pipeline: OnceLock<Result<Pipeline, dml_gpu::Error>>,
    /// Compiles the module's words.
    job: OnceJob<Vec<u32>>,
}

impl KernelRef {
    pub(super) fn new(module: Module, pointwise: Option<Pointwise>) -> Self {
        Self(Arc::new(Inner {
            id: KernelId::of(&module, pointwise.as_ref()),
            pointwise,
            name: module.name,
            workgroup_size: module.workgroup_size,
            matrices: module.needs.matrix,
            push_bytes: module.push_bytes,
            param_bytes: module.param_bytes,
            indirect: module.indirect,
            counts: module.counts,
            pipeline: OnceLock::new(),
            job: OnceJob::new(module.words),
        }))
    }

    /// The kernel's name, for messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The hash of the kernel's content. A device has one kernel for each content, whatever its
    /// specialisations.
    pub fn id(&self) -> KernelId {
        self.0.id
    }

    /// What the kernel computes of one element, if it is pointwise.
    pub(crate) fn pointwise(&self) -> Option<&Pointwise> {
        self.0.pointwise.as_ref()
    }

    /// Invocations of a workgroup.
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.0.workgroup_size
    }

    /// Bytes of the parameter block.
    pub fn param_bytes(&self) -> u32 {
        self.0.param_bytes
    }

    /// Whether parameters are in memory and the push constant is their address.
    pub(crate) fn has_indirect_parameters(&self) -> bool {
        self.0.indirect
    }

    /// The dimensions along which its launches may be split.
    pub(crate) fn group_counts(&self) -> GroupCounts {
        self.0.counts
    }

    /// Whether the compilation has ended, with or without success. Asking for the pipeline
    /// then costs nothing.
    pub fn is_compiled(&self) -> bool {
        self.0.pipeline.get().is_some()
    }

    /// Whether the driver refused the kernel.
    #[inline]
    pub fn refused(&self) -> bool {
        matches!(self.0.pipeline.get(), Some(Err(_)))
    }

    /// The pipeline. Compiles it here if no thread of the pool has begun to; waits if one has.
    pub(crate) fn pipeline(&self, gpu: &Gpu) -> Result<&Pipeline, Error> {
        if self.0.pipeline.get().is_none() {
            let start = Instant::now();
            self.compile(gpu);
            costs::waited(start);
        }
        match self.0.pipeline.get() {
            Some(Ok(pipeline)) => Ok(pipeline),
            Some(Err(dml_gpu::Error::DeviceLost)) => Err(dml_gpu::Error::DeviceLost.into()),
            Some(Err(e)) => Err(Error::Compile { kernel: self.0.name.clone(), reason: e.to_string() }),
            None => Err(Error::Compile { kernel: self.0.name.clone(), reason: "the compiler stopped".to_owned() }),
        }
    }

    /// Waits for the pipeline, or compiles it, so that no thread has to wait for it while it holds
    /// a lock. The wait can be interrupted; the caller must not hold a lock of the engine. A
    /// compilation in this thread is not interrupted.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn await_compiled(&self, gpu: &Gpu) -> Result<(), Error> {
        let start = Instant::now();
        while !self.is_compiled() {
            if !self.0.job.wait_for_another(interrupt::SLICE) {
                self.compile(gpu);
            }
            interrupt::unless(!interrupt::requested())?;
        }
        costs::waited(start);
        Ok(())
    }

    /// The options of its pipeline: a whole subgroup holds a matrix, with the subgroup size that
    /// the kernel was written for.
    fn options(&self, gpu: &Gpu) -> PipelineOptions {
        let size = gpu.info().capabilities.subgroup_size;
        if self.0.matrices {
            PipelineOptions { subgroup_size: Some(size), full_subgroups: true }
        } else {
            PipelineOptions::default()
        }
    }

    /// Compiles the kernel unless another thread has begun to, and returns when it is compiled.
    pub(crate) fn compile(&self, gpu: &Gpu) {
        self.0.job.run(|words| self.make_pipeline(gpu, &words));
    }

    fn make_pipeline(&self, gpu: &Gpu, words: &[u32]) {
        let start = Instant::now();
        let result = backend::code(words)
            .and_then(|code| gpu.compile_with(&self.0.name, code, self.0.push_bytes, &self.options(gpu)));
        costs::compiled(start);
        let _ = self.0.pipeline.set(result);
    }
}

impl std::fmt::Debug for KernelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelRef").field("name", &self.0.name).field("id", &self.0.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kernels::requirements::target;

    #[test]
    fn a_wait_for_a_kernel_that_is_being_compiled_ends_when_it_is_told_to() {
        thread_local! {
            static STOP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        let gpu = crate::backend::adapters().unwrap()[0].open().unwrap();
        let kernel = dml_kernel::Builder::new("slow_to_compile", [1, 1, 1]).finish();
        let kernel = KernelRef::new(kernel.emit_for(&target(gpu.info())).unwrap(), None);
        let (begin, begun) = std::sync::mpsc::channel();
        let (go_on, gone_on) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            // The state while a thread of the pool compiles it.
            let (kernel, gpu) = (&kernel, &gpu);
            scope.spawn(move || {
                kernel.0.job.run(|words| {
                    begin.send(()).unwrap();
                    gone_on.recv().unwrap();
                    kernel.make_pipeline(gpu, &words);
                });
            });
            begun.recv().unwrap();
            crate::set_interrupt_check(Some(Arc::new(|| STOP.get())));
            STOP.set(true);
            let interrupted = kernel.await_compiled(gpu);
            STOP.set(false);
            go_on.send(()).unwrap();
            assert_eq!(interrupted, Err(Error::Interrupted));
        });
        assert_eq!(kernel.await_compiled(&gpu), Ok(()));
        assert!(kernel.is_compiled());
    }
}
