//! Copies between host and device.

pub(crate) mod copy_kernel;
pub(crate) mod lookup_tables;
pub(crate) mod pinned;
pub(crate) mod polled;
mod polled_slots;
pub(crate) mod readback;
pub(crate) mod upload;
