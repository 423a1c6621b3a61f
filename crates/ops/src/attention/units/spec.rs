//! What attention's kernels on matrix units are specialised by.

use super::parts::Parts;
use super::tile::Tile;
use dml_kernel::{DType, ScalarType};

/// What is computed. Rows belong to queries or keys, and columns to the others.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The result: rows are queries.
    Forward,
    /// The gradient of the queries: rows are queries.
    Query,
    /// The gradients of keys and values: rows are keys.
    Key,
}

impl Role {
    /// Whether columns are queries.
    pub fn transposed(self) -> bool {
        self == Role::Key
    }
}

/// What has an edge in a tile.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ragged {
    /// Columns are no multiple of the tile's.
    pub columns: bool,
    /// Queries and keys have fewer elements than the kernel's.
    pub depth: bool,
    /// Values have.
    pub width: bool,
}

/// Everything that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is computed.
    pub role: Role,
    /// Of all matrices: f16 or bf16.
    pub dtype: DType,
    /// Of what is added to scores.
    pub bias: Option<DType>,
    /// A query sees the keys up to its own position.
    pub causal: bool,
    /// Weights are dropped at random.
    pub dropout: bool,
    /// Type of offsets in one head's matrix.
    pub index: ScalarType,
    /// How it is cut up.
    pub tile: Tile,
    /// The adapter's matrices.
    pub parts: Parts,
    /// Elements of inner products of queries and keys, rounded up to whole matrices.
    pub depth: u32,
    /// Elements of values, likewise.
    pub width: u32,
    /// What has edges.
    pub ragged: Ragged,
    /// Whether 16 bytes are loaded at once: of the rows' matrices, and of the columns'.
    pub aligned: [[bool; 2]; 2],
}

impl Spec {
    /// Rows of a workgroup.
    pub fn rows(&self) -> u32 {
        self.tile.subgroups * self.tile.rows
    }

    /// Invocations of a workgroup.
    pub fn threads(&self) -> u32 {
        self.tile.subgroups * self.parts.lanes
    }

    /// Whether scores of a tile of columns may have to be masked.
    pub fn masks(&self) -> bool {
        self.causal || self.ragged.columns
    }
}
