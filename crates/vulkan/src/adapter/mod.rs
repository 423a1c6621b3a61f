//! What is installed, and what it can do: plain data, read once a process.
//!
//! [`list`] enumerates the adapters; [`physical`] inspects one; [`features`], [`properties`] and [`matrix`] ask the
//! driver, and [`capabilities`] is what the crate says of it; [`queue_family`] chooses the queues; [`heaps`] counts
//! memory.

mod capabilities;
mod features;
mod heaps;
mod info;
mod list;
mod matrix;
mod physical;
mod properties;
mod queue_family;

pub use capabilities::{Capabilities, FloatControls, FloatModes};
pub use info::{AdapterInfo, AdapterKind};
pub use list::{adapters, unsupported_adapters};
pub use matrix::{MatrixElement, MatrixShape};
pub use physical::Adapter;

pub(crate) use features::Features;
pub(crate) use physical::AdapterShared;
pub(crate) use queue_family::QueueFamily;
