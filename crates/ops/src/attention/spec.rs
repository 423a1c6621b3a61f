//! What attention's kernels are specialised by, and how their tiles are cut.

use crate::tensor::promote::accumulator;
use dml_kernel::{DType, ScalarType};

/// Rows and columns of one invocation's patch of a tile.
pub const PATCH: u32 = 4;
/// Columns of a tile.
pub const COLUMNS: u32 = 32;
/// Invocations along a row of a tile.
pub const ACROSS: u32 = COLUMNS / PATCH;

/// What is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The result: rows are queries, columns keys, x the values.
    Forward,
    /// The gradient of the queries: x are the keys.
    Query,
    /// The gradient of the keys: rows are keys, columns queries, x the queries.
    Key,
    /// The gradient of the values: rows are keys, columns queries, x the result's gradient.
    Value,
}

impl Role {
    /// Whether columns are queries.
    pub fn transposed(self) -> bool {
        matches!(self, Role::Key | Role::Value)
    }

    /// Whether gradients of scores are needed, and for them the product of the values and the result's gradient.
    pub fn needs_gradients(self) -> bool {
        matches!(self, Role::Query | Role::Key)
    }
}

/// Everything that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is computed.
    pub role: Role,
    /// Of all matrices.
    pub dtype: DType,
    /// Of what is added to scores.
    pub bias: Option<DType>,
    /// A query sees the keys up to its own position.
    pub causal: bool,
    /// Weights are dropped at random.
    pub dropout: bool,
    /// Type of offsets in one head's matrix.
    pub index: ScalarType,
    /// Invocations of a workgroup: 32, 64 or 128.
    pub threads: u32,
    /// Columns of x that a workgroup takes: 32, 64 or 128.
    pub width: u32,
}

impl Spec {
    /// Rows of a tile.
    pub fn rows(&self) -> u32 {
        self.threads / ACROSS * PATCH
    }

    /// The dtype of sums, and of the logarithms that are saved.
    pub fn sums(&self) -> DType {
        accumulator(self.dtype)
    }
}
