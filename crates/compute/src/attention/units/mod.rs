//! Attention on matrix units, of f16 or bf16 with sums in f32.

#[cfg(test)]
pub mod interpreted;
pub mod kernel;
pub mod parts;
pub mod products;
pub mod run;
pub mod spec;
pub mod stage;
pub mod tile;
pub mod worker;

pub use crate::attention::units::parts::Parts;
pub use crate::attention::units::run::Problem;
pub use crate::attention::units::spec::Role;
pub use crate::attention::units::tile::Tile;
pub use crate::attention::units::tile::tiles;
