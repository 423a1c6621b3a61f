//! The installed adapters and what they can do: plain data, read once per process.
//!
//! [`list`] enumerates the adapters; [`physical`] inspects one; [`features`], [`properties`] and
//! [`matrix`] query the driver; [`kind`] and [`reported`] hold the driver's answers, and
//! [`capabilities`] what this crate reports; [`queue_family`] selects the queue; [`memory`] has the
//! memory types, and [`heaps`] counts memory. [`quirks`] has the known faults of drivers, and
//! [`child_query`] asks a question that ends some processes.
//! [`profile`] makes one adapter look like another one, of those in [`profiles`].

mod capabilities;
mod child_query;
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
mod registers;
mod reported;
mod vendors;

pub use child_query::{answer as answer_child_query, set_command as set_child_command};
pub use list::{adapters, profiles, unsupported_adapters};
pub use physical::Adapter;

pub(crate) use features::Features;
pub(crate) use memory::MemoryLayout;
pub(crate) use physical::AdapterShared;
#[cfg(test)]
pub(crate) use profiles::imitations;
pub(crate) use queue_family::QueueFamily;
