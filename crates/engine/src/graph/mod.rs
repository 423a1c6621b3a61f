//! Graphs: work that is captured once and replayed at next to no cost, as CUDA's graphs.
//!
//! Between [`Device::capture`](crate::Device::capture) and [`Capture::end`](crate::Capture::end)
//! the launches of the capturing thread do not run: they are collected in a list of commands. At
//! the end the list is fused, scheduled (see [`schedule`]) and recorded into a command buffer of
//! its own, which [`Graph::replay`](crate::Graph::replay) enqueues like any other command.
//!
//! - A capture belongs to the thread that began it. Commands of other threads run meanwhile as
//!   usual; they may not use memory that was allocated in the capture before it has ended.
//! - Memory allocated in a capture comes from a pool of the graph
//!   ([`GraphPool`](crate::GraphPool)), and stays the graph's until the last graph of the pool is
//!   dropped. Memory from outside is the caller's to keep: a replay after it was freed computes
//!   with whatever the memory holds then. The driver never gets it back while a graph names it, so
//!   nothing worse happens.
//! - A call that must wait for the device fails, and so does the capture, whose end then returns
//!   the first error. Small uploads are captured with their bytes.
//! - Random numbers are new in each replay, the same as the captured calls would draw if they ran
//!   then.

pub(crate) mod build;
pub(crate) mod capture;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod schedule;
