//! What attention's kernels are specialised by, and how their tiles are cut.

use crate::dtype::accumulator;
use dml_kernel::{DType, ScalarType};

/// Neighbouring rows, and columns, of one invocation's patch of a tile: lanes of a vector in shared
/// memory. (Patches of 8x4 and 8x8 take fewer loads, and leave fewer invocations to wait for them:
/// slower on an H100.) Of x, its other columns lie a round of all invocations further.
pub const QUAD: u32 = 4;

/// Invocations along a row of a tile.
pub const ACROSS: u32 = 8;

/// Elements of inner products that are staged at once.
pub const DEPTH: u32 = 16;

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

    /// Whether gradients of scores are needed, and for them the product of the values and the
    /// result's gradient.
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
    /// Rows of all matrices are made of whole quads that begin at multiples of their size.
    pub quads: bool,
    /// The next stage is on its way to registers while one is worked on.
    pub prefetch: bool,
}

impl Spec {
    /// Invocations along a column of a tile.
    pub fn down(&self) -> u32 {
        self.threads / ACROSS
    }

    /// Rows of a tile.
    pub fn rows(&self) -> u32 {
        self.down() * QUAD
    }

    /// Columns of a tile.
    pub fn columns(&self) -> u32 {
        ACROSS * QUAD
    }

    /// Rows of x that are staged at once.
    pub fn ahead(&self) -> u32 {
        // Of the narrowest x, as many quads as a workgroup has invocations.
        if self.width == 32 { 16 } else { 8 }
    }

    /// Turns of loops of an inner product of so many elements.
    pub fn product_turns(&self, elements: i64) -> i64 {
        (elements as u64).div_ceil(DEPTH.into()) as i64 * i64::from(1 + DEPTH / QUAD)
    }

    /// Turns of loops of adding a tile's weights times x.
    pub fn accumulate_turns(&self) -> i64 {
        i64::from(self.columns() / self.ahead() * (1 + self.ahead()))
    }

    /// The dtype of sums, and of the logarithms that are saved.
    pub fn sums(&self) -> DType {
        accumulator(self.dtype)
    }
}
