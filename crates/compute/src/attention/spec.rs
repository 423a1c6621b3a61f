//! The specialisation of attention's kernels, and the shapes of their tiles.

use crate::dtype::accumulator;
use crate::primitives::registers::{Kept, Loads};
use dml_kernel::{DType, ScalarType};

/// Side of an invocation's patch of a tile: 4 neighbouring rows by 4 neighbouring columns, a vector
/// of 4 lanes in shared memory. (Patches of 8x4 and 8x8 take fewer loads, and leave fewer
/// invocations to hide latency: slower on an H100.) Of `x`, an invocation has several vectors of
/// columns, as far apart as all invocations of a row reach.
pub const PATCH: u32 = 4;

/// Invocations along a row of a tile.
pub const ACROSS: u32 = 8;

/// Elements of the inner products that one stage holds in shared memory, at most.
pub const DEPTH: u32 = 16;

/// What is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The output: rows are queries, columns are keys, x is the values.
    Forward,
    /// The gradient of the queries: rows are queries, columns are keys, x is the keys.
    Query,
    /// The gradient of the keys: rows are keys, columns are queries, x is the queries.
    Key,
    /// The gradient of the values: rows are keys, columns are queries, x is the output's gradient.
    Value,
}

impl Role {
    /// Whether columns are queries.
    pub fn transposed(self) -> bool {
        matches!(self, Role::Key | Role::Value)
    }

    /// Whether the gradients of scores are needed, and for them the product of the values and the
    /// output's gradient.
    pub fn needs_gradients(self) -> bool {
        matches!(self, Role::Query | Role::Key)
    }
}

/// Specialisation: everything that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is computed.
    pub role: Role,
    /// The dtype of all matrices.
    pub dtype: DType,
    /// The dtype of the bias that is added to scores, if there is one.
    pub bias: Option<DType>,
    /// Causal mask: a query attends to the keys up to its own position.
    pub causal: bool,
    /// Weights are dropped at random.
    pub dropout: bool,
    /// Integer type of offsets inside one head's matrix.
    pub index: ScalarType,
    /// Invocations of a workgroup: 32, 64 or 128.
    pub threads: u32,
    /// Columns of `x` for each workgroup: 32, 64 or 128.
    pub width: u32,
    /// Loads are vectors of four elements: the rows of all matrices consist of whole, aligned
    /// vectors.
    pub vector_loads: bool,
    /// Software prefetch: the next stage is loaded to registers while the current one is computed
    /// with.
    pub prefetch: bool,
    /// Elements of the inner products that one stage holds in shared memory: [`DEPTH`], or half of
    /// it with at most 64 threads, so that an invocation loads fewer elements at a time.
    pub depth: u32,
    /// For adapters with few registers: weights wait in shared memory for the gradients of their
    /// scores, and the addresses of matrices are computed where they are used.
    pub few_registers: bool,
    /// For adapters whose registers do not hold the smallest tile either: accumulators wait in
    /// shared memory while scores are computed, and scores while one at a time becomes a weight.
    pub parks_sums: bool,
}

impl Spec {
    /// Invocations along a column of a tile.
    pub fn invocations_per_column(&self) -> u32 {
        self.threads / ACROSS
    }

    /// Rows of a tile.
    pub fn rows(&self) -> u32 {
        self.invocations_per_column() * PATCH
    }

    /// Columns of a tile.
    pub fn columns(&self) -> u32 {
        ACROSS * PATCH
    }

    /// Rows of `x` that one stage holds in shared memory.
    pub fn staged_rows(&self) -> u32 {
        // For the narrowest x, a workgroup has one invocation for each vector.
        if self.width == 32 { 16 } else { 8 }
    }

    /// Loop iterations of an inner product of `elements` elements.
    pub fn product_iterations(&self, elements: i64) -> i64 {
        (elements as u64).div_ceil(self.depth.into()) as i64 * i64::from(1 + self.depth / PATCH)
    }

    /// Loop iterations of accumulating a tile's weights times x.
    pub fn accumulate_iterations(&self) -> i64 {
        i64::from(self.columns() / self.staged_rows() * (1 + self.staged_rows()))
    }

    /// What an invocation keeps in registers: accumulators, its patches of scores and of factors,
    /// the vectors that are multiplied, and the elements that it loads for a stage.
    pub fn kept(&self) -> Kept {
        let sums = if self.parks_sums { 0 } else { PATCH * self.width / ACROSS };
        let patches = if self.role.needs_gradients() && !self.few_registers { 3 } else { 2 };
        let stage = (self.rows() + self.columns()) * self.depth / self.threads;
        let loads = if self.prefetch { 2 * stage } else { stage };
        Kept {
            bytes: self.dtype.compute().bytes(),
            elements: sums + patches * PATCH * PATCH + 2 * PATCH + loads,
            loaded: (stage, if self.vector_loads { Loads::Vectors } else { Loads::Elements }),
        }
    }

    /// The specialisation after one that a driver refuses: with fewer registers, and when there are
    /// none to save, with fewer invocations.
    pub fn smaller(self) -> Option<Spec> {
        match self {
            Spec { prefetch: true, .. } => Some(Spec { prefetch: false, ..self }),
            Spec { width: 33.., .. } => Some(Spec { width: self.width / 2, ..self }),
            Spec { threads: 33.., .. } => Some(Spec { threads: self.threads / 2, ..self }),
            _ => None,
        }
    }

    /// The dtype of accumulators, and of the saved log-sum-exps.
    pub fn sums(&self) -> DType {
        accumulator(self.dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_ones_end_with_the_smallest() {
        let spec = Spec {
            role: Role::Forward,
            dtype: DType::F32,
            bias: None,
            causal: false,
            dropout: false,
            index: ScalarType::U32,
            threads: 128,
            width: 128,
            vector_loads: true,
            prefetch: true,
            depth: DEPTH,
            few_registers: false,
            parks_sums: false,
        };
        let all: Vec<_> = std::iter::successors(Some(spec), |spec| spec.smaller()).collect();
        let shapes: Vec<_> = all.iter().map(|spec| (spec.prefetch, spec.width, spec.threads)).collect();
        let expected = [(true, 128, 128), (false, 128, 128), (false, 64, 128), (false, 32, 128), (false, 32, 64)];
        assert_eq!(shapes, [&expected[..], &[(false, 32, 32)]].concat());
    }
}
