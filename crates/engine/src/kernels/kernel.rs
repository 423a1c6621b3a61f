//! A kernel of one device, and its compilation.

use crate::backend::{self, Gpu, Pipeline};
use crate::error::Error;
use crate::interrupt;
use crate::kernels::costs;
use crate::kernels::id::KernelId;
use crate::kernels::key::KernelKey;
use crate::kernels::once_job::OnceJob;
use crate::kernels::pointwise::Pointwise;
use crate::kernels::refusals::{Refusals, Verdict};
use crate::kernels::requirements::{missing, target};
use crate::kernels::statistics;
use dml_environment::DRY_RUN;
use dml_gpu::PipelineOptions;
use dml_gpu::traits::*;
use dml_kernel::{GroupCounts, Kernel, Module, Target};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A kernel of one device. Its pipeline is compiled, or about to be.
#[derive(Clone)]
pub struct KernelRef(Arc<Inner>);

struct Inner {
    id: KernelId,
    pointwise: Option<Pointwise>,
    name: String,
    /// What it was built for, if pipelines are reported.
    origin: Option<Origin>,
    workgroup_size: [u32; 3],
    matrices: bool,
    /// Invocations know their lane, or exchange with others.
    lanes: bool,
    push_bytes: u32,
    param_bytes: u32,
    indirect: bool,
    counts: GroupCounts,
    pipeline: OnceLock<(Verdict, Result<Pipeline, dml_gpu::Error>)>,
    refusals: Arc<Refusals>,
    /// Compiles the code.
    job: OnceJob<Code>,
}

/// What a kernel is compiled from.
struct Code {
    /// The module's words.
    words: Vec<u32>,
    /// What the module was emitted from.
    kernel: Kernel,
}

/// What a kernel was built for, in words.
#[derive(Debug)]
pub(super) struct Origin {
    /// The specialisation's type, with its modules.
    source: &'static str,
    /// The specialisation, as Rust's `Debug` writes it.
    specialisation: String,
}

impl Origin {
    pub(super) fn of<K: KernelKey>(key: &K) -> Self {
        Self { source: std::any::type_name::<K>(), specialisation: format!("{key:?}") }
    }

    pub(super) fn source(&self) -> &str {
        self.source
    }

    pub(super) fn specialisation(&self) -> &str {
        &self.specialisation
    }
}

impl KernelRef {
    pub(super) fn new(
        module: Module,
        kernel: Kernel,
        pointwise: Option<Pointwise>,
        origin: Option<Origin>,
        refusals: Arc<Refusals>,
    ) -> Self {
        Self(Arc::new(Inner {
            id: KernelId::of(&module, pointwise.as_ref()),
            pointwise,
            name: module.name,
            origin,
            workgroup_size: module.workgroup_size,
            matrices: module.needs.matrix,
            lanes: module.needs.subgroup_shuffle,
            push_bytes: module.push_bytes,
            param_bytes: module.param_bytes,
            indirect: module.indirect,
            counts: module.counts,
            pipeline: OnceLock::new(),
            refusals,
            job: OnceJob::new(Code { words: module.words, kernel }),
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

    /// What the kernel was built for first, if pipelines are reported.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.0.origin.as_ref()
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

    /// Whether the driver compiled the kernel as a slow one, because it refused it otherwise.
    pub fn plain(&self) -> bool {
        matches!(self.0.pipeline.get(), Some((Verdict::Unoptimised | Verdict::Halved, Ok(_))))
    }

    /// Whether the driver refused the kernel in every form.
    #[inline]
    pub fn refused(&self) -> bool {
        matches!(self.0.pipeline.get(), Some((_, Err(_))))
    }

    /// The pipeline. Compiles it here if no thread of the pool has begun to; waits if one has.
    #[inline]
    pub(crate) fn pipeline(&self, gpu: &Gpu) -> Result<&Pipeline, Error> {
        match self.0.pipeline.get() {
            Some((_, Ok(pipeline))) => Ok(pipeline),
            _ => self.compiled_now(gpu),
        }
    }

    /// As [`pipeline`](Self::pipeline), when there is none yet or none that can run.
    #[cold]
    fn compiled_now(&self, gpu: &Gpu) -> Result<&Pipeline, Error> {
        if self.0.pipeline.get().is_none() {
            let start = Instant::now();
            self.compile(gpu);
            costs::waited(start);
        }
        match self.0.pipeline.get() {
            Some((_, Ok(pipeline))) => Ok(pipeline),
            Some((_, Err(dml_gpu::Error::DeviceLost))) => Err(dml_gpu::Error::DeviceLost.into()),
            Some((_, Err(e))) => Err(self.error(gpu, e.to_string())),
            None => Err(self.error(gpu, "the compiler stopped".to_owned())),
        }
    }

    fn error(&self, gpu: &Gpu, reason: String) -> Error {
        Error::Compile { kernel: self.0.name.clone(), driver: driver(gpu), reason }
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

    /// What the driver made of the kernel. Waits as [`await_compiled`](Self::await_compiled).
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn verdict(&self, gpu: &Gpu) -> Result<Verdict, Error> {
        self.await_compiled(gpu)?;
        Ok(self.0.pipeline.get().map_or(Verdict::Refused, |(verdict, _)| *verdict))
    }

    /// Checks that it is compiled in some form. Waits as [`await_compiled`](Self::await_compiled).
    ///
    /// # Errors
    /// [`Error::Compile`]; [`Error::Interrupted`].
    pub(crate) fn check_accepted(&self, gpu: &Gpu) -> Result<(), Error> {
        self.await_compiled(gpu)?;
        self.pipeline(gpu).map(drop)
    }

    /// The options of its pipeline: a whole subgroup holds a matrix, emulated or not, with the
    /// subgroup size that the kernel was written for. Intel's driver compiles other kernels for
    /// fewer lanes than it calls a subgroup.
    fn options(&self, gpu: &Gpu) -> PipelineOptions {
        let capabilities = &gpu.info().capabilities;
        let size = match (self.0.matrices, self.0.lanes) {
            (true, _) => Some(capabilities.matrix_subgroup_size),
            (false, true) => Some(capabilities.subgroup_size),
            (false, false) => None,
        };
        PipelineOptions { subgroup_size: size, full_subgroups: size.is_some(), ..PipelineOptions::default() }
    }

    /// Compiles the kernel unless another thread has begun to, and returns when it is compiled.
    pub(crate) fn compile(&self, gpu: &Gpu) {
        self.0.job.run(|code| self.make_pipeline(gpu, &code));
    }

    fn make_pipeline(&self, gpu: &Gpu, code: &Code) {
        let options = self.options(gpu);
        let known = statistics::known(gpu, self, &options, self.0.push_bytes).map(|known| (Verdict::Optimised, known));
        let result = known.unwrap_or_else(|| self.accepted_pipeline(gpu, code, options));
        let _ = self.0.pipeline.set(result);
    }

    /// The pipeline in the first form that the driver accepts. What it refused before it is not
    /// asked for again.
    fn accepted_pipeline(
        &self,
        gpu: &Gpu,
        code: &Code,
        options: PipelineOptions,
    ) -> (Verdict, Result<Pipeline, dml_gpu::Error>) {
        if DRY_RUN.get() == Some(true) {
            // To see what a driver refuses.
            return (Verdict::Optimised, self.compile_with(gpu, &self.0.name, &code.words, &options));
        }
        let mut refusal = None;
        let mut expected = self.0.refusals.expected(self.id());
        while expected != Verdict::Refused {
            let options = PipelineOptions { optimised: expected == Verdict::Optimised, ..options };
            let compile = |name: &str, words: &[u32]| {
                let compile = || self.compile_with(gpu, name, words, &options);
                self.0.refusals.watched(self.id(), expected, compile)
            };
            let result = match expected {
                Verdict::Halved => self.halved(gpu, &code.kernel).map(|words| compile(&self.halved_name(), &words)),
                _ => Some(compile(&self.0.name, &code.words)),
            };
            match result {
                Some(Err(error @ dml_gpu::Error::Driver { .. })) => {
                    tracing::warn!("{} refuses kernel {}{}: {error}", driver(gpu), self.name(), expected.in_words());
                    refusal = Some(error);
                }
                Some(result) => return (if result.is_ok() { expected } else { Verdict::Refused }, result),
                None => {} // There is no such form.
            }
            expected = self.0.refusals.worsen(self.id(), expected);
        }
        (Verdict::Refused, Err(refusal.unwrap_or_else(refused_before)))
    }

    /// The words of the kernel with half the invocations in a workgroup, each of which does the
    /// work of two; `None` if there cannot be fewer.
    fn halved(&self, gpu: &Gpu, kernel: &Kernel) -> Option<Vec<u32>> {
        let invocations = self.0.workgroup_size.iter().product::<u32>() / 2;
        let module = kernel.emit_for(&Target { invocations, ..target(gpu.info()) }).ok()?;
        let is_smaller = module.workgroup_size.iter().product::<u32>() <= invocations;
        let passed = |of: &Inner| (of.push_bytes, of.param_bytes, of.indirect);
        let is_alike = (module.push_bytes, module.param_bytes, module.indirect) == passed(&self.0);
        (is_smaller && is_alike && missing(&module, gpu.info()).is_none()).then_some(module.words)
    }

    fn halved_name(&self) -> String {
        format!("halved {}", self.0.name)
    }

    fn compile_with(
        &self,
        gpu: &Gpu,
        name: &str,
        words: &[u32],
        options: &PipelineOptions,
    ) -> Result<Pipeline, dml_gpu::Error> {
        let start = Instant::now();
        let result = backend::code(words).and_then(|code| gpu.compile_with(name, code, self.0.push_bytes, options));
        costs::compiled(start);
        statistics::record(gpu, self, name, options, &result, start.elapsed());
        result
    }
}

/// The driver's name and version, for messages.
fn driver(gpu: &Gpu) -> String {
    let info = gpu.info();
    format!("the driver of {} ({} {})", info.name, info.driver_name, info.driver_info)
}

/// The error for a kernel that an earlier process was refused, or died of.
fn refused_before() -> dml_gpu::Error {
    dml_gpu::Error::Driver { call: "compilation", code: 0, name: "refused in an earlier process".to_owned() }
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
    use crate::adapter_records::AdapterRecords;

    #[test]
    fn a_wait_for_a_kernel_that_is_being_compiled_ends_when_it_is_told_to() {
        thread_local! {
            static STOP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        let gpu = crate::backend::adapters().unwrap()[0].open().unwrap();
        let refusals = |gpu| Arc::new(Refusals::new(gpu, Arc::new(AdapterRecords::new(None))));
        let kernel = dml_kernel::Builder::new("slow_to_compile", [1, 1, 1]).finish();
        let module = kernel.emit_for(&target(gpu.info())).unwrap();
        let kernel = KernelRef::new(module, kernel, None, None, refusals(&gpu));
        let (begin, begun) = std::sync::mpsc::channel();
        let (go_on, gone_on) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            // The state while a thread of the pool compiles it.
            let (kernel, gpu) = (&kernel, &gpu);
            scope.spawn(move || {
                kernel.0.job.run(|code| {
                    begin.send(()).unwrap();
                    gone_on.recv().unwrap();
                    kernel.make_pipeline(gpu, &code);
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
