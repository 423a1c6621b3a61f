//! Matrix products: a tiled kernel, specialised by dtype, tile, layout and epilogue, and a kernel
//! for few rows.
//!
//! [`Problem`] is one product; [`choice`] selects the algorithm and a [`Tile`] ([`select`]) or a
//! tile on matrix units ([`matrix_unit_select`]), which `tune` may refine; [`gemm`], [`gemv`] and
//! [`matrix_unit_gemm`] write the kernels, `workgroup_tile` gives a workgroup's part, [`operand`]
//! describes the memory layout of operands, `reader` loads elements, in 16 bits for float32 if
//! `on_load` chooses so, and [`epilogue`] processes the sums. Convolutions are products with
//! special operands.

pub mod choice;
pub(crate) mod conditional;
mod dispatch;
pub(crate) mod divisor;
pub mod epilogue;
pub mod functions;
pub mod gemm;
pub mod gemv;
pub mod guard;
pub mod interface;
pub mod matrix_unit_gemm;
pub mod matrix_unit_select;
mod matrix_unit_stage;
pub mod matrix_unit_tile;
mod on_load;
pub mod operand;
mod order;
pub(crate) mod padded;
pub mod problem;
pub mod product;
mod reader;
pub mod rounding;
mod scales;
pub mod select;
pub(crate) mod self_test;
pub mod split;
pub mod split_k;
mod split_product;
mod terms;
mod tile;
mod tune;
pub mod two_launches;
mod workgroup_tile;

pub use crate::matmul::epilogue::Bias;
pub use crate::matmul::epilogue::EpilogueOperands;
pub use crate::matmul::epilogue::Output;
pub use crate::matmul::epilogue::ResultTensor;
pub use crate::matmul::epilogue::Then;
pub use crate::matmul::operand::Source;
pub use crate::matmul::problem::Problem;
pub use crate::matmul::select::Choice;
pub use crate::matmul::tile::Tile;
