//! What attention's kernels on matrix units are specialised by.

use crate::attention::units::parts::Parts;
use crate::attention::units::tile::Tile;
use dml_kernel::{DType, ScalarType};

/// What is computed. Rows belong to queries or keys, and columns to the others.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The result: rows are queries.
    Forward,
    /// The gradient of the queries: rows are queries.
    Query,
    /// That of the keys: rows are keys.
    Key,
    /// That of the values: rows are keys.
    Value,
    /// Those of keys and values together: one product of five less, if registers hold both.
    KeyValue,
}

impl Role {
    /// Whether columns are queries.
    pub fn transposed(self) -> bool {
        matches!(self, Role::Key | Role::Value | Role::KeyValue)
    }

    /// Whether gradients of scores are needed, and for them the product of the values and the
    /// result's gradient.
    pub fn needs_slopes(self) -> bool {
        matches!(self, Role::Query | Role::Key | Role::KeyValue)
    }

    /// Whether weights themselves multiply the gradient of the result.
    pub fn gives_values(self) -> bool {
        matches!(self, Role::Value | Role::KeyValue)
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
    /// Nothing is added to scores, and their scale is above 0: weights are made of inner products
    /// at once.
    pub deferred: bool,
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
    /// Whether two neighbours of a row of the results are one word.
    pub pairs: bool,
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
}
