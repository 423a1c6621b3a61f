//! Memory of the device and of the host: the caching allocator, rings, pools and pinned memory.

pub(crate) mod allocator;
pub(crate) mod free_lists;
pub(crate) mod host_pool;
pub(crate) mod pinned;
pub(crate) mod ring;
pub(crate) mod statistics;
