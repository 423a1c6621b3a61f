//! An Intel GPU that is played by the processor.
//!
//! Mesa's ANV compiles shaders to the machine code of an Intel GPU. Over a kernel interface that
//! accepts everything and computes nothing (Mesa's no-op shim of i915), this library, preloaded
//! before that shim, keeps where buffers lie in the GPU's address space, reads the commands of each
//! batch, and executes the machine code of its dispatches. The driver, its copies and its
//! semaphores run unchanged; results are real, times mean nothing.
//!
//! From a submission to a result:
//!
//! - [`shim`] stands before `ioctl` and keeps buffers, synchronisation objects and submissions.
//! - [`batch`] reads the commands of a batch.
//! - [`memory`] is the GPU's address space.
//! - [`queue`] carries the commands out; [`dispatch`] is what one launch is, and [`pool`] runs its
//!   workgroups over threads.
//! - [`isa`] decodes machine code, and [`execute`] carries it out.
//! - [`fault`] is what a launch can do wrong; [`report`] has the options.

// Nothing on other systems, where the workspace is built too.
#![cfg(target_os = "linux")]

pub mod batch;
pub mod dispatch;
pub mod execute;
pub mod fault;
pub mod isa;
pub mod memory;
pub mod pool;
pub mod queue;
pub mod report;
pub mod shim;
