//! Products of matrices: a kernel in tiles, specialised by dtype, tile, layout and epilogue, and
//! one for few rows.
//!
//! `Problem` is one product; `choice` says how it is cut up, into a `Tile` (`select`) or a
//! tile on matrix units (`matrix_select`), which `tune` may refine; `gemm`, `gemv` and
//! `matrix_gemm` write the kernels, `place` says which part is a workgroup's, `operand` where
//! elements lie, `reader` fetches them, float32 as halves where `on_load` says so, and
//! `epilogue` is what happens to sums. Convolutions are products with operands of their own.

pub mod linear;
pub mod matrix_products;
pub mod product;
pub mod vector_products;

use crate::operator::Operator;
pub use product::check_dtype;

/// The files' overloads.
pub const OPERATORS: &[&[Operator]] = &[matrix_products::OPERATORS, vector_products::OPERATORS, linear::OPERATORS];
