//! Attention on matrix units, for f16 or bf16 with accumulators in f32.

mod forward;
mod gradients;
#[cfg(test)]
mod interpreted;
mod kernel;
mod matrix_layouts;
mod products;
mod run;
mod spec;
mod stage;
mod tile;
mod worker;

pub use crate::attention::matrix_units::matrix_layouts::MatrixLayouts;
pub use crate::attention::matrix_units::run::Problem;
pub use crate::attention::matrix_units::spec::Role;
pub use crate::attention::matrix_units::tile::Tile;
pub use crate::attention::matrix_units::tile::tiles;
