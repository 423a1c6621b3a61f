//! The tensors of an operator that sorts or selects along a dimension, by row.

use crate::view::layout::{Layout, LayoutParameter, LayoutParams, LayoutSpec, MAX_INDEX_32};
use crate::view::{Dims, View};
use dml_engine::interface::{Index, ReadRange, WriteRange};
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// An input and two results: elements of its rows, and their positions in the rows. A row is all
/// elements along one dimension.
pub struct Operands {
    /// `input`, `values` and `indices` (int64).
    pub tensors: [View; 3],
    /// The dimension of the rows.
    pub dim: usize,
    /// Number of rows.
    pub rows: i64,
    /// Elements of a row of the input.
    pub n: i64,
    /// The layout for iterating over the rows of the three tensors, in row-major order.
    pub layout: Layout,
    /// Strides of the three tensors along the dimension.
    steps: [i64; 3],
}

/// The elements of the sorted row that are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// The first elements.
    First(u32),
    /// The element of this rank.
    Rank(u32),
    /// The median, see `median` of `sorting`.
    Median {
        /// Whether NaN is ignored.
        ignore_nan: bool,
    },
}

/// The kind of a [`Take`], which kernels are specialised by.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum TakeKind {
    /// Elements of given ranks.
    Ranks,
    /// The median.
    Median {
        /// Whether NaN is ignored.
        ignore_nan: bool,
    },
}

impl Take {
    /// The kind, for the specialisation.
    pub fn kind(self) -> TakeKind {
        match self {
            Take::First(_) | Take::Rank(_) => TakeKind::Ranks,
            Take::Median { ignore_nan } => TakeKind::Median { ignore_nan },
        }
    }

    /// The first rank and the number of ranks; for a median, whose rank is not known, 0 and 1.
    pub fn window(self) -> (u32, u32) {
        match self {
            Take::First(count) => (0, count),
            Take::Rank(rank) => (rank, 1),
            Take::Median { .. } => (0, 1),
        }
    }
}

impl Operands {
    /// All three tensors have the input's number of dimensions, and its sizes except in `dim`.
    pub fn new(input: &View, dim: usize, values: &View, indices: &View) -> Operands {
        let tensors = [input, values, indices].map(View::clone);
        let along = |t: &View| t.strides.get(dim).copied().unwrap_or(1);
        let rest = |of: &[i64]| -> Dims { of.iter().enumerate().filter(|e| e.0 != dim).map(|e| *e.1).collect() };
        let strides = tensors.each_ref().map(|t| rest(&t.strides));
        let mut layout = Layout::row_major(&rest(&input.sizes), &strides.each_ref().map(|s| s.as_slice()));
        if tensors.iter().any(|t| t.reach().max(t.numel()) >= MAX_INDEX_32) {
            layout.index = ScalarType::U64;
        }
        Operands {
            dim,
            rows: rest(&input.sizes).iter().product(),
            n: input.sizes.get(dim).copied().unwrap_or(1),
            steps: tensors.each_ref().map(along),
            tensors,
            layout,
        }
    }

    /// Whether adjacent elements in memory belong to adjacent rows.
    pub fn across(&self) -> bool {
        self.layout.strides[0].first().is_some_and(|&s| s < self.steps[0])
    }
}

/// Kernel parameter: [`Operands`].
pub struct RowOperands;

/// [`Operands`] in a kernel. Elements are accessed as bits.
pub struct OperandParams<'b> {
    /// The tensor whose elements are sorted or selected.
    pub input: Pointer<'b>,
    /// The elements that are written.
    pub values: Pointer<'b>,
    /// The positions that are written.
    pub indices: Pointer<'b>,
    /// Number of rows.
    pub rows: Value<'b>,
    layout: LayoutParams<'b>,
    steps: [Value<'b>; 3],
}

impl Parameter for RowOperands {
    /// The dtype of the elements, and the layout of the rows.
    type Type = (DType, LayoutSpec);
    type Argument<'a> = &'a Operands;
    type Declared<'b> = OperandParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (dtype, layout): &(DType, LayoutSpec)) -> OperandParams<'b> {
        OperandParams {
            input: ReadRange::declare(b, "input", &dtype.bits()),
            values: WriteRange::declare(b, "values", &dtype.bits()),
            indices: WriteRange::declare(b, "indices", &DType::I64),
            rows: Index::declare(b, "rows", &layout.index),
            layout: LayoutParameter::declare(b, name, layout),
            steps: <[Index; 3]>::declare(b, "step", &layout.index),
        }
    }

    fn pass(operands: &&Operands, (dtype, layout): &(DType, LayoutSpec), block: &mut ArgumentBlock) {
        let [input, values, indices] = operands.tensors.each_ref().map(View::range);
        ReadRange::pass(&input, dtype, block);
        WriteRange::pass(&values, dtype, block);
        WriteRange::pass(&indices, &DType::I64, block);
        Index::pass(&operands.rows, &layout.index, block);
        LayoutParameter::pass(&&operands.layout, layout, block);
        <[Index; 3]>::pass(&operands.steps, &layout.index, block);
    }
}

impl<'b> OperandParams<'b> {
    /// Offsets of a row in the three tensors.
    pub fn offsets(&self, b: &'b Builder, row: Value<'b>) -> [Value<'b>; 3] {
        let offsets = self.layout.offsets(b, row);
        [offsets[0], offsets[1], offsets[2]]
    }

    /// Offset of element `i` of a row in tensor `t`, given the row's offset there.
    pub fn at(&self, t: usize, offset: Value<'b>, i: Value<'b>) -> Value<'b> {
        offset + i.cast(self.rows.scalar()) * self.steps[t]
    }
}
