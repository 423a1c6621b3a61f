//! The reduction of losses.

/// How losses are reduced.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// No reduction: a loss for each element.
    None,
    /// The mean, possibly weighted.
    Mean,
    /// The sum.
    Sum,
}
