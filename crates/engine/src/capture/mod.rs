//! What a thread's calls are collected in while it captures a graph, in place of the queue's
//! pending batch. What becomes of it is [`crate::graph`]'s.

pub(crate) mod capturing;
pub(crate) mod constants;
pub(crate) mod draws;
pub(crate) mod slot;
