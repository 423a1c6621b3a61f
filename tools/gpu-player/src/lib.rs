//! What the players of GPUs have in common, whatever the GPU's maker.
//!
//! - [`interpose`] stands before `ioctl` and `mmap` of the process.
//! - [`drm`] has the requests that all drivers make, [`buffers`] and [`syncobjs`] what they ask
//!   for.
//! - [`memory`] is the GPU's address space.
//! - [`pool`] runs the workgroups of a launch over threads.

// Nothing on other systems, where the workspace is built too.
#![cfg(target_os = "linux")]

pub mod buffers;
pub mod drm;
pub mod interpose;
pub mod memory;
pub mod pool;
pub mod syncobjs;

/// Instructions of a wave or thread after which it is taken for one that does not end: seconds of
/// a GPU, where the driver would have ended it by then, and half a minute here.
pub const ENDLESS: u64 = 1_000_000_000;
