//! What becomes of the losses of single elements.

/// How losses are reduced.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// Not at all.
    None,
    /// To their mean, which weights may weigh.
    Mean,
    /// To their sum.
    Sum,
}
