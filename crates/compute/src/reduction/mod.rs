//! Reductions: an operator that folds elements of its input along some dimensions.
//!
//! A [`Fold`] says what is accumulated; `reduce` runs it over any dims of strided tensors. The
//! order of additions is a tree that depends on shapes, strides and alignment only, so that every
//! adapter gives the same bits: each invocation adds a few dozen elements in several independent
//! chains, a workgroup joins its chains in shared memory, and long reductions leave partial results
//! for a next pass. Rounding errors grow like those of pairwise summation (Higham, "The accuracy of
//! floating point summation", SIAM J. Sci. Comput. 14, 1993).

pub mod axes;
pub mod extremum;
pub mod fold;
pub mod functions;
pub mod hash;
pub mod histogram;
pub mod kernel;
pub mod logical;
pub mod norm;
pub mod plan;
pub mod reduce;
pub mod scan;
pub mod segment_reduce;
pub mod sum;
pub mod variance;

pub use crate::reduction::axes::Axes;
pub use crate::reduction::fold::Fold;
pub use crate::reduction::fold::Reduction;
pub use crate::reduction::fold::Refusals;
pub use crate::reduction::fold::Scope;
pub use crate::reduction::fold::Values;
#[cfg(test)]
pub use crate::reduction::kernel::validate;
pub use crate::reduction::reduce::reduce;
