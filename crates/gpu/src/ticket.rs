//! Tickets of submissions.

/// The number of a submission. The first one is 1; 0 is complete from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);
