//! Reductions: folds of an input's elements along some dimensions.
//!
//! A [`Fold`] defines the accumulation; [`reduce()`] runs it over any dimensions of strided
//! tensors. The order of additions is a tree that depends only on shapes, strides and alignment, so
//! that results are bit-identical on every adapter: each invocation adds a few dozen elements in
//! several independent chains, a workgroup combines its chains in shared memory, and long
//! reductions write partial results for another pass. Rounding errors grow as in pairwise summation
//! (Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993).

pub mod axes;
pub mod extremum;
pub mod fold;
pub(crate) mod functions;
pub mod hash;
pub mod histogram;
pub(crate) mod kernel;
pub mod logical;
pub mod norm;
mod plan;
pub mod reduce;
pub mod scan;
pub mod segment_reduce;
pub mod sum;
pub mod variance;

pub use crate::reduction::axes::Axes;
pub use crate::reduction::fold::Fold;
pub use crate::reduction::fold::FoldScope;
pub use crate::reduction::fold::Reduction;
pub use crate::reduction::fold::Refusals;
pub use crate::reduction::fold::Values;
#[cfg(test)]
pub use crate::reduction::kernel::validate;
pub use crate::reduction::reduce::reduce;
