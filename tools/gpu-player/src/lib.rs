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
