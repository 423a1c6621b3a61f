//! The operators of reductions, which fold the elements of an input along some dimensions.
//!
//! A [`Fold`] is the accumulation; [`reduce`] runs it over any dimensions of strided tensors. The
//! order of additions is a tree that depends on shapes, strides and alignment only, so that every
//! adapter gives the same bits: each invocation adds a few dozen elements in several independent
//! chains, a workgroup combines its chains in shared memory, and long reductions write partial
//! results for another pass. Rounding errors grow like those of pairwise summation (Higham, "The
//! accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993).

pub mod axes;
pub mod extremum;
pub mod hash;
pub mod histogram;
pub mod logical;
pub mod norm;
pub mod scan;
pub mod segment_reduce;
pub mod sum;
pub mod variance;

use crate::operator::Operator;

/// The overloads of this folder.
pub const OPERATORS: &[&[Operator]] = &[
    extremum::OPERATORS,
    hash::OPERATORS,
    histogram::OPERATORS,
    logical::OPERATORS,
    norm::OPERATORS,
    scan::OPERATORS,
    segment_reduce::OPERATORS,
    sum::OPERATORS,
    variance::OPERATORS,
];
