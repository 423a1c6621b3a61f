//! Types of matrix registers.

use crate::dtype::DType;
use std::fmt;

/// The most rows and columns: far more than any matrix unit has.
const MOST: u32 = 1024;

/// The role of a matrix in a product.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixUse {
    Left,
    Right,
    Accumulator,
}

impl MatrixUse {
    /// Its name in a kernel's text.
    pub const fn name(self) -> &'static str {
        match self {
            MatrixUse::Left => "left",
            MatrixUse::Right => "right",
            MatrixUse::Accumulator => "accumulator",
        }
    }
}

/// The type of a matrix whose elements are distributed over the invocations of a subgroup. The
/// driver chooses the distribution.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MatrixType {
    /// Element type: f16, bf16, i8 or u8; f32, f16 or i32 for an accumulator.
    pub dtype: DType,
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub columns: u32,
    /// Its role in a product.
    pub part: MatrixUse,
}

impl MatrixType {
    /// Checks that a kernel may declare a matrix of this type.
    pub(crate) fn check(self) -> Result<(), String> {
        let sizes = [self.rows, self.columns].iter().all(|size| (1..=MOST).contains(size));
        let elements = match self.part {
            MatrixUse::Left | MatrixUse::Right => {
                matches!(self.dtype, DType::F16 | DType::BF16 | DType::I8 | DType::U8)
            }
            MatrixUse::Accumulator => matches!(self.dtype, DType::F32 | DType::F16 | DType::I32),
        };
        if sizes && elements { Ok(()) } else { Err(format!("there is no matrix of type {self}")) }
    }

    /// Elements.
    pub const fn len(self) -> u32 {
        self.rows * self.columns
    }

    /// Whether it has no elements.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for MatrixType {
    /// `left f16[16, 16]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dtype, rows, columns, part } = *self;
        write!(f, "{} {}[{rows}, {columns}]", part.name(), dtype.short_name())
    }
}

/// The order of a matrix's elements in memory: rows or columns are contiguous.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixLayout {
    RowMajor,
    ColumnMajor,
}
