//! Rewrites a kernel for adapters that lack features of the language.
//!
//! [`target`] describes an adapter and selects the rewritings. [`workgroup`] runs several
//! invocations of a workgroup as one, for adapters with smaller workgroups; [`returns`] prepares a
//! kernel for it. [`doubles`] replaces 64-bit floats, with [`double`]'s arithmetic. [`words`]
//! replaces 64-bit integers, and 8 and 16-bit accesses, with [`pair`]'s arithmetic and
//! [`address`]'s accesses. [`control`] copies control flow for all of them.

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
