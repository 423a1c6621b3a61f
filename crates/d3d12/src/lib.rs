//! Adapters, memory, pipelines, command recording and timelines over Direct3D 12: an implementation
//! of `dml_gpu`'s traits, which `D3d12` names. Empty except on Windows.
//!
//! Nothing uses it yet: the engine runs on Vulkan. It compiles for Windows, and its tests run on
//! the available Direct3D 12, which so far was Wine's. `docs/design/direct3d-12.md` lists the
//! missing parts.
//!
//! # Mapping of the interface to Direct3D
//!
//! | interface | here |
//! |---|---|
//! | an address | the upper half is a segment's index in one descriptor table, which all kernels see as `u0` of `space1`; the lower half is an offset in bytes. So a segment has at most 4 GiB |
//! | mapped memory that kernels write | heaps of a custom kind (`D3D12_HEAP_TYPE_CUSTOM`): kernels must not write to upload and readback heaps |
//! | push constants | root constants, `b0`; behind them three words, the number of workgroups |
//! | [`Commands::barrier`] between kernels | an UAV barrier of all resources |
//! | copies among kernels | Direct3D requires the states of buffers before a copy, and the layer above only has addresses. Buffers lose their state between two `ExecuteCommandLists`, so a change between kernels and copies begins a new command list, which is executed by a call of its own |
//! | [`Commands::barrier`] elsewhere, [`Recorder::host_barrier`] | nothing: the commands of one `ExecuteCommandLists` are done, and visible, before the next begins |
//! | a [`Timeline`] | a fence |
//!
#![cfg_attr(windows, doc = "[`Commands::barrier`]: dml_gpu::Commands::barrier")]
#![cfg_attr(windows, doc = "[`Recorder::host_barrier`]: dml_gpu::Recorder::host_barrier")]
#![cfg_attr(windows, doc = "[`Timeline`]: dml_gpu::Timeline")]
#![cfg_attr(not(windows), allow(rustdoc::broken_intra_doc_links))]
#![cfg(windows)]

mod adapter;
mod capabilities;
mod command;
mod descriptor_table;
mod device;
mod direct3d;
mod error;
mod gpu;
mod library;
mod pipeline;
mod queries;
mod recorder;
mod segment;
mod timeline;

pub use adapter::{Adapter, adapters, adapters_without_kernels, unsupported_adapters};
pub use command::{Encoder, Recording};
pub use direct3d::D3d12;
pub use gpu::Gpu;
pub use pipeline::Pipeline;
pub use queries::TimestampId;
pub use recorder::Recorder;
pub use segment::Segment;
pub use timeline::Timeline;
