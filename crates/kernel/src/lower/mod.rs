//! Rewrites a kernel for adapters that lack what the language has.
//!
//! [`target`] says what an adapter has, and which rewriting that takes; [`workgroup`] makes one
//! invocation do the work of several, where workgroups are smaller than the kernel's; [`returns`]
//! prepares that; [`doubles`] does without 64-bit floats, with [`double`]'s arithmetic; [`words`]
//! does without 64-bit
//! integers and without 8- and 16-bit storage, with [`pair`]'s arithmetic and [`address`]'s
//! accesses. [`control`] is what all keep.

mod address;
mod control;
mod double;
mod doubles;
mod pair;
mod returns;
mod target;
mod words;
mod workgroup;

pub use target::{FloatModes, Target};
