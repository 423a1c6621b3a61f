//! The device: connects its parts, and forwards each call to the responsible one.

mod graphs;
mod statistics;
mod transfers;

use crate::adapter_records::AdapterRecords;
use crate::backend::Adapter;
use crate::error::Error;
use crate::event::Event;
use crate::generator::Generator;
use crate::graph::capture::Graphs;
use crate::kernels::kernel::KernelRef;
use crate::kernels::key::KernelKey;
use crate::kernels::launch::Launch;
use crate::kernels::pointwise::Pointwise;
use crate::kernels::refusals::Verdict;
use crate::kernels::store::KernelStore;
use crate::memory::range::DeviceRange;
use crate::profile::measure::{self, Stage};
use crate::queue::device_queue::DeviceQueue;
use crate::queue::thread::SubmitThread;
use crate::transfer::copy_kernel;
use crate::transfer::lookup_tables::LookupTables;
use crate::transfer::pinned::PinnedTransfers;
use crate::transfer::polled::PolledReadback;
use crate::transfer::readback::Readbacks;
use crate::transfer::upload::Uploads;
use dml_gpu::AdapterInfo;
use dml_gpu::traits::*;
use dml_kernel::Kernel;
use std::sync::{Arc, Mutex, PoisonError};

/// One GPU, opened. All methods may be called from any thread.
///
/// Work is executed as if in the order of the calls. What a call enqueues may fail later: the error
/// is returned by a later call on the device.
///
/// ```
/// use dml_engine::{AddressRange, ArgumentBlock, Interface, device, interface::WriteRange, parameters};
/// use dml_kernel::{Builder, DType};
///
/// /// Adds each of 64 numbers to itself.
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Double(DType);
/// parameters! { Double as spec => Arguments, Parameters { data: WriteRange = spec.0 } }
///
/// let device = device(0)?;
/// let data = AddressRange::new(device.allocate(256)?, 256);
/// device.upload(data.start, &[3; 256])?;
/// let spec = Double(DType::I32);
/// // Built the first time, found by its specialisation afterwards.
/// let kernel = device.kernel(&spec, || {
///     let b = Builder::new("double", [64, 1, 1]);
///     let Parameters { data } = spec.declare(&b);
///     let i = b.global_id(0);
///     data.store(i, data.load(i) + data.load(i));
///     b.finish()
/// })?;
/// ArgumentBlock::with_spare(|block| {
///     spec.pass(&Arguments { data }, block);
///     device.launch(block.launch(kernel, [1, 1, 1], "example")?)
/// })?;
/// let mut out = [0; 256];
/// device.download(data.start, &mut out)?; // Waits for this and for everything before it.
/// assert_eq!(out, [6; 256]);
/// device.free(data.start);
/// # Ok::<(), dml_engine::Error>(())
/// ```
pub struct Device {
    /// Dropped first. Events and graphs may outlive the device, and enqueued work is done before
    /// the last of them is dropped.
    _thread: SubmitThread,
    queue: Arc<DeviceQueue>,
    kernels: Arc<KernelStore>,
    generator: Arc<Mutex<Generator>>,
    uploads: Arc<Uploads>,
    tables: LookupTables,
    readbacks: Readbacks,
    pinned: PinnedTransfers,
    graphs: Arc<Graphs>,
    records: Arc<AdapterRecords>,
}

impl Device {
    /// Opens an adapter as a new device, in addition to those of [`device`](crate::device()).
    ///
    /// # Errors
    /// The driver's error.
    pub fn open(adapter: &Adapter, index: usize) -> Result<Self, Error> {
        let queue = Arc::new(DeviceQueue::new(adapter.open()?, index)?);
        let kernels = Arc::clone(&queue.kernels);
        let copy_words = copy_kernel::copy_words(&kernels)?;
        let polled = PolledReadback::new(&kernels)?;
        let uploads = Arc::new(Uploads::new(Arc::clone(&queue), copy_words.clone()));
        Ok(Self {
            _thread: SubmitThread::start(&queue),
            kernels,
            generator: Arc::default(),
            readbacks: Readbacks::new(Arc::clone(&queue), copy_words, polled),
            pinned: PinnedTransfers::new(Arc::clone(&queue)),
            tables: LookupTables::new(Arc::clone(&queue), Arc::clone(&uploads)),
            graphs: Arc::new(Graphs::new(Arc::clone(&queue), Arc::clone(&uploads))),
            uploads,
            records: Arc::clone(&queue.records),
            queue,
        })
    }

    /// The device's index.
    pub fn index(&self) -> usize {
        self.queue.device()
    }

    /// Its adapter.
    pub fn info(&self) -> &AdapterInfo {
        self.queue.gpu().info()
    }

    // ---- memory

    /// Allocates `bytes` bytes and returns their GPU address, a multiple of 256. The address of 0
    /// bytes is 0. The memory is not cleared.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if releasing cached memory did not help; [`Error::DeviceLost`].
    #[inline]
    pub fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        if bytes == 0 { Ok(0) } else { self.queue.allocate(bytes) }
    }

    /// Frees memory of [`allocate`](Self::allocate). Work enqueued before may still use it; work
    /// enqueued later may get it again. An address that is not in use is ignored.
    pub fn free(&self, address: u64) {
        if address != 0 {
            self.queue.free(address);
        }
    }

    /// A range of this device's memory, for comparisons with ranges of other devices.
    pub fn range(&self, address: u64, bytes: u64) -> DeviceRange {
        DeviceRange::new(self.index(), address, bytes)
    }

    /// The block in use that `address` lies in.
    pub fn block(&self, address: u64) -> Option<DeviceRange> {
        let (start, bytes) = self.queue.lock().memory.block(address)?;
        Some(self.range(start, bytes))
    }

    /// Releases cached memory to the driver. Waits for all work.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub fn empty_cache(&self) -> Result<(), Error> {
        self.queue.release()
    }

    /// Limits the memory allocated from the driver to a fraction of the device's total.
    pub fn set_memory_fraction(&self, fraction: f64) {
        let total = self.info().memory_total as f64;
        let limit = if fraction >= 1.0 { u64::MAX } else { (total * fraction.max(0.0)) as u64 };
        self.queue.lock().memory.set_limit(limit);
    }

    /// Limits one submission to this number of operations from now on, as [`Launch::work`] counts
    /// them. Longer launches are split into parts of some of their workgroups, and a batch with
    /// more operations is split into several submissions. The default is `TORCH_DML_SUBMIT_WORK` or
    /// 2^37, and for one launch 2^34 for each compute unit that it fills, if that is more. A graph
    /// is split when its capture ends. No result depends on the limit.
    pub fn set_submission_work(&self, operations: u64) {
        self.queue.work_bound.set(operations);
    }

    // ---- kernels

    /// The kernel of `key`. The first call builds it with `build`, and the pipeline is compiled in
    /// the background. Keys whose kernels have the same content share one kernel.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the adapter lacks a feature that the kernel needs. With
    /// `TORCH_DML_CHECK_KERNELS=1`, [`Error::AmbiguousKernel`] if `build` makes another kernel than
    /// in the first call.
    #[inline]
    pub fn kernel<K: KernelKey>(&self, key: &K, build: impl FnOnce() -> Kernel) -> Result<&KernelRef, Error> {
        let _stage = measure::enter(Stage::Lookup);
        self.kernels.get(key, || (build(), None))
    }

    /// As [`kernel`](Self::kernel), for a kernel that the queue may fuse with others: `build` also
    /// returns a description of its computation.
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel).
    #[inline]
    pub fn pointwise_kernel<K: KernelKey>(
        &self,
        key: &K,
        build: impl FnOnce() -> (Kernel, Option<Pointwise>),
    ) -> Result<&KernelRef, Error> {
        let _stage = measure::enter(Stage::Lookup);
        self.kernels.get(key, build)
    }

    /// Whether the driver has refused a kernel, or is known to refuse some: only then it is worth
    /// to ask for the [verdict](Self::verdict) on one. One load.
    #[inline]
    pub fn has_refusals(&self) -> bool {
        self.kernels.refusals().any()
    }

    /// What the driver made of a kernel of this device. Waits for its compilation.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn verdict(&self, kernel: &KernelRef) -> Result<Verdict, Error> {
        kernel.verdict(self.queue.gpu())
    }

    /// Checks that the driver compiles a kernel of this device in some form. Waits for its
    /// compilation, if the driver [has refused](Self::has_refusals) any.
    ///
    /// # Errors
    /// [`Error::Compile`]; [`Error::Interrupted`].
    pub fn check_accepted(&self, kernel: &KernelRef) -> Result<(), Error> {
        if !self.has_refusals() {
            return Ok(());
        }
        kernel.check_accepted(self.queue.gpu())
    }

    /// Enqueues a run of a kernel.
    ///
    /// # Errors
    /// [`Error::InvalidLaunch`]; [`Error::DeviceLost`]; an error of earlier work, such as
    /// [`Error::IndexOutOfRange`] and [`Error::Compile`].
    #[inline]
    pub fn launch(&self, launch: Launch<'_>) -> Result<(), Error> {
        let _stage = measure::enter(Stage::Enqueue);
        self.queue.launch(&launch)
    }

    // ---- ordering and waiting

    /// Submits everything enqueued.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of pending work.
    pub fn flush(&self) -> Result<(), Error> {
        self.queue.flush()
    }

    /// Waits for everything enqueued.
    ///
    /// # Errors
    /// [`Error::DeviceLost`], or an error of that work.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.queue.synchronize()
    }

    /// Whether everything enqueued is done. Does not wait, but submits.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn idle(&self) -> Result<bool, Error> {
        self.queue.is_idle()
    }

    /// Marks the current end of the queue; with `timing`, also the time at which the device reaches
    /// it. Without timestamps, this waits to measure the time.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn record_event(&self, timing: bool) -> Result<Event, Error> {
        Event::record(&self.queue, timing)
    }

    // ---- faults and loss

    /// The address at which kernels that the calling thread launches or captures report faults:
    /// `[code u32, operator id u32, index lo, index hi, size lo, size hi, dim, 0]`. A kernel that
    /// meets a bad index exchanges the code from 0 to 1 atomically and, if it was the first, writes
    /// the rest. The operator id comes from [`operator_id`](crate::operator_id).
    pub fn fault_address(&self) -> u64 {
        self.queue.fault_address()
    }

    /// An address that may always be read and that nobody writes. Launches pass it as the address
    /// of memory without bytes.
    #[inline]
    pub fn placeholder_address(&self) -> u64 {
        self.queue.fault.placeholder()
    }

    /// Returns the fault that a kernel reported, once. Waits for all work if there is one.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::DeviceLost`].
    #[inline]
    pub fn check_faults(&self) -> Result<(), Error> {
        self.queue.check_faults()
    }

    /// Whether the device was lost.
    pub fn is_lost(&self) -> bool {
        self.queue.submission.is_lost() || self.queue.gpu().is_lost()
    }

    /// For tests: every later call returns [`Error::DeviceLost`].
    pub fn simulate_loss(&self) {
        self.queue.gpu().simulate_loss();
        self.queue.submission.lose();
    }

    // ---- records on disk

    /// The record of this name about the adapter and its driver, which this process has put or an
    /// earlier one of the same version has saved.
    pub fn adapter_record(&self, name: &str) -> Option<String> {
        self.records.get(name)
    }

    /// Puts a record about the adapter and its driver. Name and text have at most 120 bytes, no
    /// tabs and no line breaks. The record is saved at the end of the process, or by
    /// [`save_adapter_records`](Self::save_adapter_records). A device has room for 4,096 records.
    pub fn put_adapter_record(&self, name: &str, text: &str) {
        self.records.put(name, text);
    }

    /// Saves the records on disk, which takes milliseconds. If the file cannot be written, only
    /// this process has them.
    pub fn save_adapter_records(&self) {
        self.records.save();
    }

    // ---- the rest

    /// The device's random number generator.
    pub fn generator(&self) -> &Mutex<Generator> {
        &self.generator
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner).set_seed(seed);
    }

    /// For the end of the process: waits for all work that the driver has, and submits nothing
    /// more.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.queue.finish()
    }

    /// Saves records and compiled pipelines on disk.
    pub(crate) fn save_pipelines(&self) {
        self.kernels.refusals().close();
        self.records.save();
        if let Err(e) = self.queue.gpu().save_pipeline_cache() {
            tracing::debug!("pipeline cache not saved: {e}");
        }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("index", &self.index())
            .field("name", &self.info().name)
            .field("lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
