//! Operators on complex tensors.
//!
//! Functions of reals never get them: a call with a complex tensor goes to [`run_complex`], which
//! follows the operator's table ([`Complex`](crate::operator::route::Complex)), or falls back.

pub mod arithmetic;
pub mod bit_copies;
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
pub mod overload;
pub mod pointwise;
pub mod product;
pub mod reduction;
pub mod scan;

use crate::operator::Operator;
pub use crate::operator::route::each;
pub use bit_copies::run_as_bits;
pub use by_parts::{by_parts, created_by_parts, index_add};
pub use comparison::{equal, of_truth, where_};
pub use conversion::{MEAN, NAN_SUM, PRODUCT, RUNNING_PRODUCT, SUM};
pub use copy::checked_copy;
pub use dispatch::run_complex;
pub use exponential::matrix_exp;
pub use lists::copies;
pub use log_cumsum_exp::log_cumsum_exp;

/// The overloads that create complex tensors from real ones.
pub const OPERATORS: &[&[Operator]] = &[creation::OPERATORS];
