//! The specialisation of attention's kernels on matrix units.

use crate::attention::matrix_units::matrix_layouts::MatrixLayouts;
use crate::attention::matrix_units::tile::Tile;
use crate::matmul::operand::VECTOR_16_BIT;
use crate::primitives::registers::{Kept, Loads};
use dml_engine::RegisterFile;
use dml_kernel::{DType, ScalarType};

/// What is computed. Rows are queries or keys; columns are the other of the two.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The output: rows are queries.
    Forward,
    /// The gradient of the queries: rows are queries.
    Query,
    /// The gradient of the keys: rows are keys.
    Key,
    /// The gradient of the values: rows are keys.
    Value,
    /// The gradients of keys and values together, which saves one product of five, if registers
    /// hold both.
    KeyValue,
}

impl Role {
    /// Whether columns are queries.
    pub fn transposed(self) -> bool {
        matches!(self, Role::Key | Role::Value | Role::KeyValue)
    }

    /// Whether the gradients of scores are needed, and for them the product of the values and the
    /// output's gradient.
    pub fn needs_score_gradients(self) -> bool {
        matches!(self, Role::Query | Role::Key | Role::KeyValue)
    }

    /// Whether the weights themselves multiply the output's gradient.
    pub fn computes_value_gradients(self) -> bool {
        matches!(self, Role::Value | Role::KeyValue)
    }
}

/// Which dimensions are not a multiple of the tile, so that accesses need a bounds check.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BoundsChecks {
    /// The number of columns is not a multiple of the tile's.
    pub columns: bool,
    /// Queries and keys have fewer elements than the kernel's `depth`.
    pub depth: bool,
    /// Values have fewer elements than the kernel's `width`.
    pub width: bool,
}

/// Specialisation: everything that changes the code.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// What is computed.
    pub role: Role,
    /// The dtype of all matrices: f16 or bf16.
    pub dtype: DType,
    /// The dtype of the bias that is added to scores, if there is one.
    pub bias: Option<DType>,
    /// Causal mask: a query attends to the keys up to its own position.
    pub causal: bool,
    /// The scale is applied with the exponential: there is no bias, and the scale is positive, so
    /// that scores are ordered like inner products.
    pub scale_in_exponential: bool,
    /// Weights are dropped at random.
    pub dropout: bool,
    /// Integer type of offsets inside one head's matrix.
    pub index: ScalarType,
    /// The tile of a workgroup.
    pub tile: Tile,
    /// The adapter's cooperative matrices.
    pub layouts: MatrixLayouts,
    /// Length of the inner product of a query and a key, rounded up to whole matrices.
    pub depth: u32,
    /// Elements of a value, rounded up to whole matrices.
    pub width: u32,
    /// The dimensions that need a bounds check.
    pub bounds_checks: BoundsChecks,
    /// Whether two neighbours in a row of the results can be stored as one word.
    pub pairs: bool,
    /// Whether loads are of 16 bytes: of the rows' two matrices, and of the columns' two.
    pub aligned: [[bool; 2]; 2],
}

/// Words that an invocation keeps while it draws random numbers.
const RANDOM: u32 = 32;

impl Spec {
    /// Rows of a workgroup.
    pub fn rows(&self) -> u32 {
        self.tile.subgroups * self.tile.rows
    }

    /// What an invocation keeps in registers, in words: accumulators, scores, their gradients, and
    /// the rows' matrices, of 16-bit elements.
    pub fn kept(&self, registers: Option<RegisterFile>) -> Kept {
        let Tile { rows, columns, rows_in_registers, .. } = self.tile;
        let MatrixLayouts { shape: [m, n, k], lanes, .. } = self.layouts;
        let slopes = self.role.needs_score_gradients();
        let results = match self.role {
            Role::Forward | Role::Value => self.width,
            Role::Query | Role::Key => self.depth,
            Role::KeyValue => self.width + self.depth,
        };
        let scores = if slopes { 2 * columns } else { columns };
        let depth = self.depth + if slopes { self.width } else { 0 };
        let sums = rows * (results + scores) / lanes;
        // A row of a matrix, or an equal part of the matrix.
        let whole_rows = registers.is_some_and(|file| file.whole_rows);
        let [of_left, of_right] = if whole_rows { [k / 2; 2] } else { [m, n].map(|lines| lines * k / 2 / lanes) };
        let left = if rows_in_registers { rows / m * (depth / k) * of_left } else { 0 };
        // The columns' matrices of a step along k.
        let right = columns / n * of_right;
        let stages = [0, 1].map(|which| self.elements_of_stage(which));
        let beside = if whole_rows {
            // The weights' gradients as operands.
            if slopes { 2 * (rows / m) * (columns / k) * of_left } else { 0 }
        } else {
            // For each row of an invocation's components: maxima before and now, a partial sum, and
            // a factor; or in the gradients the saved numbers.
            let rows_of_invocation = rows / m * self.layouts.sums.lines_of_lane(0);
            let numbers = if self.role == Role::Forward { 4 } else { 2 } * rows_of_invocation;
            // The indices of these rows, which masks and biases need.
            let indices = if self.causal || self.bias.is_some() { rows_of_invocation } else { 0 };
            // The next step's elements of the columns' matrices, in words of two.
            let staged = stages.iter().sum::<u32>() / 2;
            let BoundsChecks { columns, depth, width } = self.bounds_checks;
            let limits = [columns, depth, width].map(u32::from).iter().sum::<u32>();
            numbers + indices + staged + limits + if self.dropout { RANDOM } else { 0 }
        };
        let biases = if self.bias.is_some() { rows * columns / lanes } else { 0 };
        let of_stage = |(&stage, aligned)| if aligned { 0 } else { stage };
        let single = biases + stages.iter().zip(self.aligned[1]).map(of_stage).sum::<u32>();
        let loaded = if whole_rows || single == 0 { (4, Loads::Vectors) } else { (single, Loads::Elements) };
        Kept { bytes: 4, elements: sums + left + right + beside, loaded }
    }

    /// Elements of one of the columns' matrices that an invocation fetches for a step: whole
    /// vectors, of two rows if they are transposed.
    fn elements_of_stage(&self, which: usize) -> u32 {
        let [_, along_rows] = self.products_of_columns();
        let together = if self.layouts.transposes && along_rows[which] { 2 } else { 1 };
        let load = together * VECTOR_16_BIT;
        (self.tile.columns * [self.depth, self.width][which] / load).div_ceil(self.threads()) * load
    }

    /// Which of the columns' two matrices are multiplied along their rows' elements, and which
    /// along their rows.
    pub fn products_of_columns(&self) -> [[bool; 2]; 2] {
        let slopes = self.role.needs_score_gradients();
        [[true, slopes], [slopes, self.role == Role::Forward || self.role.computes_value_gradients()]]
    }

    /// Invocations of a workgroup.
    pub fn threads(&self) -> u32 {
        self.tile.subgroups * self.layouts.lanes
    }
}
