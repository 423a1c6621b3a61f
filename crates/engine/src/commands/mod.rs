//! The one list of commands: what a batch of eager calls and a captured graph are both made of.
//!
//! [`CommandList`](list::CommandList) packs launches, copies, frees, timestamps and replays in the
//! order of the calls. The queue fills one with the pending commands ([`crate::queue`]), a capture
//! fills another ([`crate::capture`]); fusion reads either ([`crate::fusion`]), and both are
//! recorded through [`Encodable`](encode::Encodable).
//!
//! To add a kind of command: a variant of [`CommandKind`](list::CommandKind), a method that appends
//! it, and what is recorded for it (`submit/ordered.rs` for batches, `graph/build.rs` for graphs).

pub(crate) mod encode;
pub(crate) mod intervals;
pub(crate) mod list;
pub(crate) mod marker;
pub(crate) mod replay;
