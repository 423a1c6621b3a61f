//! Products of matrices: a kernel in tiles, specialised by dtype, tile, layout and epilogue, and
//! one for few rows.
//!
//! [`Problem`] is one product; [`choice`] says how it is cut up, into a [`Tile`] ([`select`]) or a
//! tile on matrix units ([`matrix_select`]), which [`tune`] may refine; [`gemm`], [`gemv`] and
//! [`matrix_gemm`] write the kernels, [`place`] says which part is a workgroup's, [`operand`] where
//! elements lie, [`reader`] fetches them, float32 as halves where [`on_load`] says so, and
//! [`epilogue`] is what happens to sums. Convolutions are products with operands of their own.

pub mod choice;
pub mod conditional;
pub mod dispatch;
pub mod divisor;
pub mod epilogue;
pub mod gemm;
pub mod gemv;
pub mod guard;
pub mod interface;
pub mod matrix_gemm;
pub mod matrix_select;
pub mod matrix_stage;
pub mod matrix_tile;
pub mod on_load;
pub mod operand;
pub mod order;
pub mod padded;
pub mod place;
pub mod problem;
pub mod product;
pub mod reader;
pub mod rounding;
pub mod scales;
pub mod select;
pub mod self_test;
pub mod split;
pub mod split_k;
pub mod split_product;
pub mod terms;
pub mod tile;
pub mod tune;
pub mod waves;

pub use crate::matmul::epilogue::Bias;
pub use crate::matmul::epilogue::Finish;
pub use crate::matmul::epilogue::Output;
pub use crate::matmul::operand::Source;
pub use crate::matmul::problem::Problem;
pub use crate::matmul::select::Choice;
pub use crate::matmul::tile::Tile;
