//! Operators of complex tensors.
//!
//! The operators of reals never see them: a call that has one goes to [`run_complex`], which knows how the operator is done with
//! reals, or falls back. There are four ways, by [`Route`].

mod arithmetic;
mod by_parts;
mod comparison;
mod conversion;
mod copy;
mod creation;
mod dispatch;
mod exponential;
mod functions;
mod lists;
mod log_cumsum_exp;
mod movement;
mod moves;
mod overload;
mod parts;
mod pointwise;
mod product;
mod reduction;
mod route;
mod scan;

pub use copy::{device_copy, fill_with};
pub use dispatch::run_complex;
pub use parts::{as_real, parts};
pub use product::{blocks, interleaved};
pub use reduction::working_copy as contiguous;

use crate::operator::Operator;

/// The overloads that make complex tensors of real ones.
pub const OPERATORS: &[&[Operator]] = &[creation::OPERATORS];
