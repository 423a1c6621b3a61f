//! The tensors of an operator that sorts or selects along a dimension, row by row.

use crate::primitives::launch::Launcher;
use crate::tensor::layout::{self, Layout, LayoutParams};
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, Scalar, Value};

/// An input and what is written: elements of its rows and their positions there. A row is all elements along one
/// dimension.
pub struct Operands {
    /// `input`, `values` and `indices` (int64).
    pub tensors: [Tensor; 3],
    /// The dimension along which rows lie.
    pub dim: usize,
    /// Number of rows.
    pub rows: i64,
    /// Elements of a row of the input.
    pub n: i64,
    /// How the rows of the three tensors are walked, in row-major order.
    pub layout: Layout,
    /// Strides of the three along the dimension.
    steps: [i64; 3],
}

/// Which elements of the sorted row are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Take {
    /// The first ones.
    First(u32),
    /// The one of this rank.
    Rank(u32),
    /// The median, see [`super::tile::median`].
    Median {
        /// Whether it is the median of the numbers only.
        ignore_nan: bool,
    },
}

impl Take {
    /// For a kernel's key.
    pub fn code(self) -> u32 {
        match self {
            Take::First(_) | Take::Rank(_) => 0,
            Take::Median { ignore_nan } => 1 + u32::from(ignore_nan),
        }
    }

    /// The first rank and how many, where they are known.
    pub fn window(self) -> (u32, u32) {
        match self {
            Take::First(count) => (0, count),
            Take::Rank(rank) => (rank, 1),
            Take::Median { .. } => (0, 1),
        }
    }
}

impl Operands {
    /// All three have the rank of the input, and its sizes but for `dim`.
    pub fn new(input: &Tensor, dim: usize, values: &Tensor, indices: &Tensor) -> Operands {
        let tensors = [input, values, indices].map(Tensor::clone);
        let along = |t: &Tensor| t.strides.get(dim).copied().unwrap_or(1);
        let rest = |of: &[i64]| -> Dims { of.iter().enumerate().filter(|e| e.0 != dim).map(|e| *e.1).collect() };
        let strides = tensors.each_ref().map(|t| rest(&t.strides));
        let mut layout = Layout::row_major(&rest(&input.sizes), &strides.each_ref().map(|s| s.as_slice()));
        if tensors.iter().any(|t| t.reach().max(t.numel()) >= crate::tensor::layout::SHORT) {
            layout.index = Scalar::U64;
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

    /// Whether neighbouring elements in memory belong to neighbouring rows.
    pub fn across(&self) -> bool {
        self.layout.strides[0].first().is_some_and(|&s| s < self.steps[0])
    }

    /// Passes what [`Params::declare`] declares.
    pub fn pass<'c, 'a>(&self, launcher: Launcher<'c, 'a>) -> Launcher<'c, 'a> {
        let index = self.layout.index;
        let launcher = launcher.index(index, self.rows);
        self.steps.iter().fold(self.layout.pass(launcher), |l, &s| l.index(index, s))
    }
}

/// The numbers of [`Operands`] in a kernel.
pub struct Params<'b> {
    /// Number of rows.
    pub rows: Value<'b>,
    layout: LayoutParams<'b>,
    steps: [Value<'b>; 3],
}

impl<'b> Params<'b> {
    /// Declares them.
    pub fn declare(b: &'b Builder, rank: usize, index: Scalar) -> Params<'b> {
        let rows = b.param("rows", index);
        let layout = layout::declare(b, rank, 3, index);
        Params { rows, layout, steps: [(); 3].map(|()| b.param("step", index)) }
    }

    /// Offsets of a row in the three tensors.
    pub fn offsets(&self, b: &'b Builder, row: Value<'b>) -> [Value<'b>; 3] {
        let offsets = self.layout.offsets(b, row);
        [offsets[0], offsets[1], offsets[2]]
    }

    /// Place of element `i` of a row in tensor `t`, given the row's offset there.
    pub fn at(&self, t: usize, offset: Value<'b>, i: Value<'b>) -> Value<'b> {
        offset + i.cast(self.rows.scalar()) * self.steps[t]
    }
}
