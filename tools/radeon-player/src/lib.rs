//! A Radeon that is played by the processor.
//!
//! Mesa's RADV compiles shaders to a Radeon's machine code. Over a kernel interface that accepts
//! everything and computes nothing (Mesa's no-op shim of amdgpu), this library, preloaded before
//! that shim, keeps where buffers lie in the GPU's address space, reads the packets of each
//! submission, and executes the machine code of its dispatches. The driver, its copies and its
//! semaphores run unchanged; results are real, times mean nothing.
//!
//! From a submission to a result:
//!
//! - [`shim`] stands before `ioctl` and keeps buffers, synchronisation objects and submissions.
//! - [`pm4`] reads the packets of a submission, and [`sdma`] those of a DMA engine.
//! - [`memory`] is the GPU's address space.
//! - [`queue`] carries the packets out; [`dispatch`] is what one launch is, and [`pool`] runs its
//!   workgroups over threads.
//! - [`isa`] decodes machine code, and [`execute`] carries it out.
//! - [`fault`] is what a launch can do wrong; [`report`] has the options and counts.

// Nothing on other systems, where the workspace is built too.
#![cfg(target_os = "linux")]

pub mod dispatch;
pub mod execute;
pub mod fault;
pub mod isa;
pub mod memory;
pub mod pm4;
pub mod pool;
pub mod queue;
pub mod report;
pub mod sdma;
pub mod shim;
