//! Memory of the device and of the host: the caching allocator, rings, pools and pinned memory.
//! Independent of commands: the caller that frees memory names the ticket after which the device is
//! done with it.

pub(crate) mod allocator;
pub(crate) mod device_memory;
mod free_lists;
pub(crate) mod host_pool;
pub(crate) mod mapped;
pub(crate) mod pinned;
pub(crate) mod range;
mod ring;
pub(crate) mod statistics;
pub(crate) mod upload_ring;
