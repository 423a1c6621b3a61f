//! The C ABI of the engine, libdml_torch. The PyTorch plugins call it through `plugin/engine.h`,
//! and the Python package through `python/torch_dml/abi.py`. Both files are written from the
//! sources of this crate (`tests/abi`). It is plain C without PyTorch's types.
//!
//! A function that can fail returns a `DmlStatus`; `dml_last_error()` has the message. Sizes and
//! strides are in elements, memory figures in bytes. No panic crosses the interface, and no pointer
//! argument is kept after the call. The interface is not safe against a caller that breaks the
//! contract:
//!
//! - **places**: a pointer for a result is not null, aligned, and valid for a write of its type;
//! - **arrays**: a pointer with a length is valid for that many initialised values. Nobody writes
//!   them during the call, unless the call itself does. If the length is 0, the pointer may be
//!   null;
//! - **values**: a `DmlValue` has the content that its tag selects, and its arrays are valid as
//!   above during the call;
//! - **host**: the functions of a `DmlHost` may be called, with its `context`, on the calling
//!   thread until the call returns;
//! - **handles**: a handle is 0, or the result of the function that makes handles of its kind, and
//!   was not freed. Several threads may use it at a time, but not while a thread frees it;
//! - **texts**: a string is null or ends with a 0.
//!
//! The proofs of the `unsafe` blocks name the contract by these words.

#![expect(clippy::missing_safety_doc, reason = "the contract above is that of every function")]

pub mod abi;
pub mod child_query;
pub mod convert;
pub mod device;
pub mod error;
pub mod event;
pub mod generator;
pub mod graph;
pub mod handle;
pub mod host;
pub mod kernel;
pub mod measure;
pub mod memory;
mod message;
pub mod operators;
pub mod pinned;
pub mod profile;
