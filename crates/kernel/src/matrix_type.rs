//! Types of matrices that subgroups hold.

use crate::dtype::DType;

/// Which part a matrix takes in a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixUse {
    Left,
    Right,
    Accumulator,
}

/// A matrix that the invocations of a subgroup hold together; which element is whose is the driver's choice.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixType {
    /// Its elements: f16, bf16, i8 or u8; f32, f16 or i32 in an accumulator.
    pub dtype: DType,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// What it is used for.
    pub part: MatrixUse,
}

impl MatrixType {
    /// Elements.
    pub const fn len(self) -> u32 {
        self.rows * self.columns
    }

    /// Whether it has no elements.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Which neighbours of a matrix are neighbours in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixLayout {
    RowMajor,
    ColumnMajor,
}
