//! Operators of complex tensors.
//!
//! The operators of reals never see them: a call that has one goes to [`run_complex`], which knows
//! how the operator is done with reals, or falls back. There are four ways, by [`Route`].

pub mod arithmetic;
pub mod by_parts;
pub mod comparison;
pub mod conversion;
pub mod copy;
pub mod creation;
pub mod dispatch;
pub mod exponential;
pub mod functions;
pub mod lists;
pub mod log_cumsum_exp;
pub mod movement;
pub mod moves;
pub mod overload;
pub mod pointwise;
pub mod product;
pub mod reduction;
pub mod route;
pub mod scan;

use crate::operator::Operator;
pub use copy::checked_copy;
pub use dispatch::run_complex;

/// The overloads that make complex tensors of real ones.
pub const OPERATORS: &[&[Operator]] = &[creation::OPERATORS];
