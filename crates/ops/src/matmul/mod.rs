//! Products of matrices: a kernel in tiles, specialised by dtype, tile, layout and epilogue, and one for few rows.
//!
//! [`Problem`] is one product; [`select`] chooses how it is cut up ([`Tile`]), [`gemm`] and [`gemv`] write the kernels,
//! [`operand`] says where elements lie, [`reader`] fetches them, and [`epilogue`] is what happens to sums. Convolutions
//! are products with operands of their own.

pub mod divisor;
pub mod epilogue;
pub mod gemm;
pub mod gemv;
pub mod interface;
pub mod operand;
pub mod problem;
pub mod reader;
pub mod select;
pub mod split_k;
pub mod tile;

mod linear;
mod matrix_products;
mod product;
mod vector_products;

pub use epilogue::{Bias, Finish, Output};
pub use operand::Source;
pub use problem::Problem;
pub use product::check_dtype;
pub use select::Choice;
pub use tile::Tile;

use crate::operator::Operator;

/// The files' overloads.
pub const OPERATORS: &[&[Operator]] = &[matrix_products::OPERATORS, vector_products::OPERATORS, linear::OPERATORS];
