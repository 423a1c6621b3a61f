//! The C ABI of the engine, as `plugin/engine.h` declares it. The PyTorch plugins and the Python package call it.
//!
//! Promised: no panic crosses it, a failed call leaves a status and a message ([`error`]), and what a pointer argument
//! points to is not kept after the call. Not promised: safety against a caller that breaks `engine.h`.

#![expect(clippy::missing_safety_doc, reason = "engine.h is the contract of every function")]

pub mod abi;
pub mod convert;
pub mod device;
pub mod error;
pub mod event;
pub mod generator;
pub mod graph;
pub mod host;
mod log;
pub mod measure;
pub mod memory;
pub mod operators;
pub mod pinned;
pub mod profile;
