//! Attention on matrix units, of f16 or bf16 with sums in f32.

#[cfg(test)]
mod interpreted;
mod kernel;
mod parts;
mod products;
mod run;
mod spec;
mod stage;
mod tile;
mod worker;

pub use parts::Parts;
pub use run::Problem;
pub use spec::Role;
pub use tile::{Tile, tiles};
