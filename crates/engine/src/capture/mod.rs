//! Captures in progress: while a thread captures a graph, its commands are collected here and not
//! in the queue's pending batch. [`crate::graph`] makes a graph of them.

pub(crate) mod capturing;
pub(crate) mod constants;
pub(crate) mod draws;
pub(crate) mod slot;
