//! Kernels by key: emitted once, compiled on the pool, waited for at the first flush that needs them.

use crate::backend::{self, Gpu, Pipeline};
use crate::error::Error;
use crate::interrupt;
use crate::kernels::append_only::{AppendOnlyList, End};
use crate::kernels::compiler;
use crate::kernels::key::{self, AnyKey, KernelKey};
use crate::kernels::matrix_element::element_dtype;
use crate::kernels::once_job::OnceJob;
use crate::kernels::pointwise::Pointwise;
#[cfg(debug_assertions)]
use crate::kernels::written::Written;
use dml_gpu::traits::*;
use dml_gpu::{AdapterInfo, PipelineOptions};
use dml_kernel::{FloatModes, GroupCounts, Kernel, MatrixType, Module, Target};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What kernels cost this process so far, on all devices. Times are nanoseconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Kernels that the driver compiled, or found in the pipeline cache.
    pub kernels: u64,
    /// Building and emitting them, in the threads that asked for them.
    pub emit_ns: u64,
    /// The driver's work, added up over all threads.
    pub compile_ns: u64,
    /// The longest of the driver's compilations.
    pub longest_ns: u64,
    /// How long work that was to be submitted waited for kernels, or compiled them itself.
    pub wait_ns: u64,
}

/// [`KernelStats`] while it is added to.
struct Costs {
    kernels: AtomicU64,
    emit_ns: AtomicU64,
    compile_ns: AtomicU64,
    longest_ns: AtomicU64,
    wait_ns: AtomicU64,
}

static COSTS: Costs = Costs {
    kernels: AtomicU64::new(0),
    emit_ns: AtomicU64::new(0),
    compile_ns: AtomicU64::new(0),
    longest_ns: AtomicU64::new(0),
    wait_ns: AtomicU64::new(0),
};

/// What kernels cost this process so far.
pub fn kernel_stats() -> KernelStats {
    let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    KernelStats {
        kernels: read(&COSTS.kernels),
        emit_ns: read(&COSTS.emit_ns),
        compile_ns: read(&COSTS.compile_ns),
        longest_ns: read(&COSTS.longest_ns),
        wait_ns: read(&COSTS.wait_ns),
    }
}

fn nanoseconds_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// A kernel of one device, compiled or about to be.
#[derive(Clone)]
pub struct KernelRef(Arc<Inner>);

struct Inner {
    /// No other kernel of the process has it.
    id: u32,
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
    #[cfg(debug_assertions)]
    written: Written,
}

impl KernelRef {
    pub(crate) fn new(module: Module, pointwise: Option<Pointwise>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        #[cfg(debug_assertions)]
        let written = Written::of(&module);
        Self(Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
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
            #[cfg(debug_assertions)]
            written,
        }))
    }

    /// The kernel's name, for messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    /// What it computes of one element, if that is all it does.
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

    /// Whether parameters live in memory and the push constant is their address.
    pub(crate) fn has_indirect_parameters(&self) -> bool {
        self.0.indirect
    }

    /// Along which dimensions its launches may be cut.
    pub(crate) fn group_counts(&self) -> GroupCounts {
        self.0.counts
    }

    /// Whether the pipeline is there, good or bad: asking for it then costs nothing.
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
            COSTS.wait_ns.fetch_add(nanoseconds_since(start), Ordering::Relaxed);
        }
        match self.0.pipeline.get() {
            Some(Ok(pipeline)) => Ok(pipeline),
            Some(Err(dml_gpu::Error::DeviceLost)) => Err(dml_gpu::Error::DeviceLost.into()),
            Some(Err(e)) => Err(Error::Compile { kernel: self.0.name.clone(), reason: e.to_string() }),
            None => Err(Error::Compile { kernel: self.0.name.clone(), reason: "the compiler stopped".to_owned() }),
        }
    }

    /// Has the pipeline made before it is needed, so that nobody waits for it with something locked. Asks between the parts of
    /// the wait whether it is to end; nothing of the engine may be locked. A driver that compiles in this thread is not
    /// interrupted.
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
        COSTS.wait_ns.fetch_add(nanoseconds_since(start), Ordering::Relaxed);
        Ok(())
    }

    /// What its pipeline asks for: a matrix is held by a whole subgroup, of the size that the kernel was written for.
    fn options(&self, gpu: &Gpu) -> PipelineOptions {
        let size = gpu.info().capabilities.subgroup_size;
        if self.0.matrices {
            PipelineOptions { subgroup_size: Some(size), full_subgroups: true }
        } else {
            PipelineOptions::default()
        }
    }

    /// Compiles if nobody has, and returns when it is done.
    pub(crate) fn compile(&self, gpu: &Gpu) {
        self.0.job.run(|words| self.make_pipeline(gpu, &words));
    }

    fn make_pipeline(&self, gpu: &Gpu, words: &[u32]) {
        let start = Instant::now();
        let result = backend::code(words)
            .and_then(|code| gpu.compile_with(&self.0.name, code, self.0.push_bytes, &self.options(gpu)));
        let taken = nanoseconds_since(start);
        COSTS.kernels.fetch_add(1, Ordering::Relaxed);
        COSTS.compile_ns.fetch_add(taken, Ordering::Relaxed);
        COSTS.longest_ns.fetch_max(taken, Ordering::Relaxed);
        let _ = self.0.pipeline.set(result);
    }
}

impl std::fmt::Debug for KernelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelRef").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// Lists that a device's kernels are spread over: programs use some tens to some thousands.
const LISTS: usize = 4096;

/// The kernels of one device. None ever goes, so a lookup takes no lock, counts no reference and returns a borrow.
pub(crate) struct KernelCache {
    lists: Box<[AppendOnlyList<Listed>]>,
    count: AtomicUsize,
}

struct Listed {
    hash: u64,
    key: Box<dyn AnyKey>,
    kernel: KernelRef,
}

impl Listed {
    #[inline]
    fn is<K: KernelKey>(&self, hash: u64, key: &K) -> bool {
        self.hash == hash && key::is(&*self.key, key)
    }
}

impl Default for KernelCache {
    fn default() -> Self {
        Self { lists: (0..LISTS).map(|_| AppendOnlyList::default()).collect(), count: AtomicUsize::new(0) }
    }
}

impl KernelCache {
    /// The kernel of `key`; the first time it is built, emitted, checked and given to the pool.
    #[inline]
    pub(crate) fn get<K: KernelKey>(
        &self,
        gpu: &Gpu,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&KernelRef, Error> {
        let hash = key::hash(key);
        match self.lists[hash as usize % LISTS].find(|listed| listed.is(hash, key)) {
            Ok(listed) => {
                #[cfg(debug_assertions)]
                listed.kernel.0.written.assert_written_again(gpu, key, build);
                Ok(&listed.kernel)
            }
            Err(end) => self.add(end, gpu, hash, key, build),
        }
    }

    /// Makes a kernel that is not in the list that has this end.
    #[cold]
    fn add<'c, K: KernelKey>(
        &'c self,
        end: End<'c, Listed>,
        gpu: &Gpu,
        hash: u64,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&'c KernelRef, Error> {
        let start = Instant::now();
        let (kernel, pointwise) = build();
        let module = kernel.emit_for(&target(gpu.info()))?;
        COSTS.emit_ns.fetch_add(nanoseconds_since(start), Ordering::Relaxed);
        if let Some(feature) = missing(&module, gpu.info()) {
            return Err(Error::Unsupported { kernel: module.name, adapter: gpu.info().name.clone(), feature });
        }
        let new = KernelRef::new(module, pointwise);
        let entry = Listed { hash, key: Box::new(key.clone()), kernel: new.clone() };
        let (listed, added) = end.append(entry, |listed| listed.is(hash, key));
        if added {
            self.count.fetch_add(1, Ordering::Relaxed);
            compiler::enqueue(gpu, Box::new(move |gpu| new.compile(gpu)));
        } else {
            // Another thread was quicker.
            #[cfg(debug_assertions)]
            listed.kernel.0.written.assert_same(&new.0.written, key);
        }
        Ok(&listed.kernel)
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// What kernels are emitted for.
pub(crate) fn target(info: &AdapterInfo) -> Target {
    let has = &info.capabilities;
    Target {
        floats: float_modes(info),
        int64: has.i64,
        float64: has.f64 && has.i64,
        storage8: has.i8_storage,
        storage16: has.f16_storage,
        invocations: has.max_workgroup_invocations,
    }
}

/// What the adapter promises about floats when asked.
fn float_modes(info: &AdapterInfo) -> FloatModes {
    let (has, modes) = (&info.capabilities, &info.capabilities.float_controls);
    FloatModes {
        round_to_even: has.rounds_to_even(),
        keep_subnormals: has.keeps_subnormals(),
        keep_special_f32: modes.f32.signed_zero_inf_nan,
        keep_special_f64: modes.f64.signed_zero_inf_nan,
        halves: has.converts_halves(),
    }
}

/// Whether the adapter's matrix units multiply matrices of these types: left, right, sum.
fn multiplies(info: &AdapterInfo, [left, right, sum]: &[MatrixType; 3]) -> bool {
    info.capabilities.matrix_shapes.iter().any(|shape| {
        let [a, b, c, result] = [shape.a, shape.b, shape.c, shape.result].map(element_dtype);
        (shape.m, shape.n, shape.k) == (left.rows, right.columns, left.columns)
            && [a, b, c, result] == [left, right, sum, sum].map(|ty| Some(ty.dtype))
    })
}

/// The first feature that a module needs and an adapter lacks.
fn missing(module: &Module, info: &AdapterInfo) -> Option<String> {
    let (needs, has) = (&module.needs, &info.capabilities);
    let flags = [
        (needs.f64, has.f64 && has.i64, "64-bit floating point (float64)"),
        (needs.i64, has.i64, "64-bit integers (int64)"),
        (needs.i16, has.i16, "16-bit integers"),
        (needs.i8, has.i8_arithmetic, "8-bit integers"),
        (needs.f16_storage, has.f16_storage, "16-bit storage"),
        (needs.f16, has.f16_arithmetic, "16-bit floating point"),
        (needs.i8_storage, has.i8_storage, "8-bit storage"),
        (needs.atomics_i64, has.atomics_i64, "64-bit atomics"),
        (needs.subgroup_arithmetic, has.subgroup_arithmetic, "subgroup arithmetic"),
        (needs.subgroup_shuffle, has.subgroup_shuffle, "subgroup shuffles"),
        (needs.matrix, has.memory_model && !has.matrix_shapes.is_empty(), "matrix units"),
        (needs.bf16_matrix, has.bf16_matrix, "matrix units for bfloat16"),
    ];
    if let Some((.., name)) = flags.iter().find(|(need, has, _)| *need && !has) {
        return Some((*name).to_owned());
    }
    if let Some([left, right, sum]) = module.products.iter().find(|product| !multiplies(info, product)) {
        return Some(format!("matrix units that multiply {left:?} and {right:?} into {sum:?}"));
    }
    if needs.shared_bytes > has.max_shared_memory {
        return Some(format!("{} bytes of shared memory (there are {})", needs.shared_bytes, has.max_shared_memory));
    }
    if needs.workgroup_invocations > has.max_workgroup_invocations {
        return Some(format!(
            "workgroups of {} invocations (the most is {})",
            needs.workgroup_invocations, has.max_workgroup_invocations
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
            // As a thread of the pool does.
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

    /// A key of the tests.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Numbered(u32);

    /// Keys that share a list, asked for by several threads at once.
    #[test]
    fn kernels_of_one_list_are_told_apart_and_made_once() {
        let device = crate::Device::open(&crate::backend::adapters().unwrap()[0], 0).unwrap();
        let before = device.kernel_count();
        let list = |key: &Numbered| key::hash(key) as usize % LISTS;
        let keys: Vec<_> = (0..).map(Numbered).filter(|k| list(k) == list(&Numbered(0))).take(3).collect();
        let build = || dml_kernel::Builder::new("one_list", [1, 1, 1]).finish();
        let ids = || keys.iter().map(|key| device.kernel(key, build).unwrap().id()).collect::<Vec<_>>();
        let all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ids)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|found| *found == ids()), "{all:?}");
        assert_eq!(device.kernel_count() - before, 3);
        for (key, id) in keys.iter().zip(ids()) {
            assert_eq!(device.kernel(key, build).unwrap().id(), id);
            assert_eq!(ids().iter().filter(|other| **other == id).count(), 1);
        }
    }
}
