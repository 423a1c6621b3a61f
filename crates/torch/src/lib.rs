//! The C ABI of the engine, libdml_torch. The PyTorch plugins call it through `plugin/engine.h`,
//! and the Python package through `python/torch_dml/abi.py`: both are written from this crate's
//! sources (`tests/abi.rs`). Plain C, no PyTorch type.
//!
//! A function that can fail returns a `DmlStatus`; the message is `dml_last_error()`. Sizes and
//! strides are in elements, memory figures in bytes. No panic crosses the interface, and what a
//! pointer argument points to is not kept after the call. There is no safety against a caller that
//! breaks the contract:
//!
//! - **places**: a pointer to be written through is not null, aligned, and valid for a write of its
//!   type;
//! - **arrays**: a pointer with a length is valid for so many values, which are initialised and
//!   which nobody writes during the call, unless it is where the call writes; with the length 0 it
//!   may be null;
//! - **values**: a `DmlValue` holds what its tag says, and the arrays in it are as above, for the
//!   time of the call;
//! - **host**: the functions of a `DmlHost` may be called, with its `context`, on the calling
//!   thread until the call returns;
//! - **handles**: a handle is 0, or what the function that makes its kind has given, and was not
//!   freed. It may be used by several threads at a time, but not while one frees it;
//! - **texts**: a string is null or ends with a 0.
//!
//! The proofs of the `unsafe` blocks name the contract by these words.

#![expect(clippy::missing_safety_doc, reason = "the contract above is that of every function")]

pub mod abi;
pub mod convert;
pub mod device;
pub mod error;
pub mod event;
pub mod generator;
pub mod graph;
pub mod handle;
pub mod host;
mod log;
pub mod measure;
pub mod memory;
mod message;
pub mod operators;
pub mod pinned;
pub mod profile;
