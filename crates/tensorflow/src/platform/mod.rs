//! The devices: TensorFlow's StreamExecutor interface over `dml_engine`.
//!
//! A device has one queue, on which work is done in the order of its calls. So all streams of a
//! device are that queue, a stream need not wait for another one, and memory that is freed may be
//! given to later work at once.
#![allow(unsafe_code)]

mod controls;
mod copies;
mod devices;
mod events;
mod graph_passes;
mod information;
mod memory;
mod plugin;
mod profile;
mod profiler;
mod raw;
mod streams;
mod xspace;

pub use controls::{dml_tensorflow_limit_memory, dml_tensorflow_memory, dml_tensorflow_simulate_loss};
pub use graph_passes::TF_InitGraph;
pub use information::{dml_tensorflow_free, dml_tensorflow_information};
pub use plugin::{SE_InitPlugin, device_type};
pub use profiler::TF_InitProfiler;
pub use streams::Stream;
