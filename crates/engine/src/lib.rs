//! One [`Device`] = allocator + queue + store of kernels + generator + events. Knows kernels and
//! bytes, not tensors.
//!
//! # Guarantees
//!
//! - Work runs as if in the order of the calls on a device, whichever threads made them. Barriers
//!   are placed where the byte ranges of launches overlap, and nowhere else: accesses outside the
//!   named ranges are not ordered.
//! - An allocation is an address that kernels use directly. A freed block may be handed out again
//!   at once, while earlier work still uses it: the order of the work makes that safe.
//! - Only these calls wait: [`Device::synchronize`], [`Device::download`], [`Event::wait`],
//!   [`Event::elapsed_ms`], [`Device::empty_cache`], an allocation that finds no memory, and an
//!   upload that finds all staging memory in use.
//! - Pending work is submitted in batches: when 64 commands are pending, when the GPU is idle and 8
//!   are (4 in a program that waits often), at every wait, and when the host stops enqueuing. A
//!   thread of the device records and submits them while the host goes on; a waiting thread records
//!   the rest itself.
//! - A [`Graph`] runs its captured work in order with all other work, with the results of the
//!   captured calls.
//! - Every run-time failure is an [`Error`]; nothing panics. A later call returns the failure of
//!   enqueued work. After a loss of the device every call on it returns [`Error::DeviceLost`];
//!   other devices work on.
//! - The generator's numbers are the same on every adapter.
//!
//! # Not guaranteed
//!
//! - Addresses inside kernel parameters are not checked.
//! - A device does not survive `fork`: in the child every call fails with [`Error::Forked`].
//!
//! # Environment
//!
//! | variable | effect |
//! |---|---|
//! | `TORCH_DML_FUSION=0` | pointwise launches are not fused; `wait`: a flush waits for fused kernels (tests) |
//! | `TORCH_DML_SUBMIT_THREAD=0` | the threads that enqueue also record and submit; `1`: a thread of the device does |
//! | `TORCH_DML_SUBMIT_WORK=137000` | the most operations of one submission, in millions |
//! | `TORCH_DML_COMPILE_THREADS=4` | the number of threads that compile kernels |
//! | `TORCH_DML_SOFTWARE=1` | software adapters are devices too, after the others |
//! | `TORCH_DML_CHECK_KERNELS=1` | every lookup of a kernel builds it again and compares |
//! | `TORCH_DML_DEVICES_PER_ADAPTER=2` | every adapter is two devices (tests) |

mod adapter_records;
mod backend;
mod capture;
mod commands;
mod device;
mod error;
mod event;
mod exit;
mod fault;
mod fork;
mod fusion;
mod generator;
mod graph;
mod interrupt;
mod kernels;
mod memory;
mod profile;
mod queue;
mod registry;
mod submit;
mod sync;
mod threads;
mod transfer;

pub use backend::{
    Adapter, adapters, answer_child_query, set_child_command, unsupported_adapters, validation_messages,
};
pub use device::Device;
pub use dml_gpu::{AdapterInfo, AdapterKind, Capabilities, MatrixShape, RegisterFile};
pub use error::{Bytes, Error, Shortage};
pub use event::Event;
pub use fault::{FaultKind, fault_id, operator_id};
pub use fork::forked;
pub use fusion::parameters::PointwiseParameters;
pub use generator::{Generator, philox4x32_10};
pub use graph::capture::Capture;
pub use graph::pool::GraphPool;
pub use graph::random::RandomSource;
pub use graph::replay::{Graph, GraphStats};
pub use interrupt::set_interrupt_check;
pub use kernels::argument_block::ArgumentBlock;
pub use kernels::costs::{KernelStats, kernel_stats};
pub use kernels::id::KernelId;
pub use kernels::interface::{self, Interface, Parameter};
pub use kernels::kernel::KernelRef;
pub use kernels::key::KernelKey;
pub use kernels::launch::Launch;
pub use kernels::matrix_element::element_dtype;
pub use kernels::pointwise::{Pointwise, PointwiseInput};
pub use kernels::refusals::Verdict;
pub use memory::range::{AddressRange, DeviceRange};
pub use memory::statistics::{BlockInfo, MemoryStats, PoolStats, SegmentInfo, Stat};
pub use profile::activity::{Activity, Work, set_correlation};
pub use profile::measure;
pub use registry::{
    adapter_info, all_opened, device, device_count, opened, seed_all, set_default_seed, shutdown, start_profile,
    stop_profile,
};
pub use submit::statistics::QueueStats;
