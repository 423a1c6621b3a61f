//! When a command ran.

/// Begin and end of one command, in ticks of the device's clock; see [`Clocks`](crate::Clocks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When everything before the command was done.
    pub begin: u64,
    /// When the command was done.
    pub end: u64,
}
