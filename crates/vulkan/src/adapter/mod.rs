//! What is installed, and what it can do: plain data, read once a process.
//!
//! [`list`] enumerates the adapters; [`physical`] inspects one; [`features`], [`properties`] and [`matrix`] ask the
//! driver, [`kind`] and [`reported`] are what it said, and [`capabilities`] is what the crate says of it; [`queue_family`] chooses
//! the queue; [`memory`] has the memory types, and [`heaps`] counts memory. [`quirks`] has the drivers' known
//! faults; [`profile`] makes one adapter look like another, of those in [`profiles`].

mod capabilities;
mod features;
mod heaps;
mod kind;
mod list;
mod matrix;
mod memory;
mod physical;
mod profile;
mod profiles;
mod properties;
mod queue_family;
mod quirks;
mod reported;

pub use list::{adapters, profiles, unsupported_adapters};
pub use physical::Adapter;

pub(crate) use features::Features;
pub(crate) use memory::MemoryLayout;
pub(crate) use physical::AdapterShared;
#[cfg(test)]
pub(crate) use profiles::imitations;
pub(crate) use queue_family::QueueFamily;
