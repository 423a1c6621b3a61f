//! Products of matrices: one tiled kernel family, specialised by dtype, tile, layout and epilogue.
//!
//! [`Problem`] is one product; [`select`] chooses how it is cut up ([`Tile`]), [`kernel`] writes the kernel,
//! [`operand`] says how elements are fetched and [`epilogue`] what happens to sums. Convolutions are products with
//! operands of their own.

pub mod divisor;
pub mod epilogue;
pub mod kernel;
mod linear;
pub mod operand;
pub mod problem;
mod products;
pub mod reduce;
pub mod select;
pub mod thin;
pub mod tile;

pub use epilogue::{Bias, Finish, Output};
pub use operand::Source;
pub use problem::Problem;
pub use products::{OPERATORS, check_dtype};
pub use select::Choice;
pub use tile::Tile;
