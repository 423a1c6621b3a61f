//! Which units of which sequences an invocation computes.

use crate::recurrent::gates::Cell;
use crate::recurrent::row_product::{RowProduct, Tile};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// What kernels of a recurrence have in common.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    /// The kind of cell.
    pub cell: Cell,
    /// Of all tensors.
    pub dtype: DType,
    /// Type of indices.
    pub index: ScalarType,
    /// Units of a sequence.
    pub hidden: u32,
    /// How workgroups that loop over steps multiply; without it a launch is a step at most, and
    /// gets the product.
    pub tile: Option<Tile>,
}

/// A unit of a sequence.
#[derive(Copy, Clone)]
pub struct Unit<'b> {
    /// The sequence; the last one where there is none.
    pub sequence: Value<'b>,
    /// The unit's index.
    pub unit: Value<'b>,
    /// Whether there is such a sequence.
    pub valid: Value<'b>,
    /// The sequence's row in the workgroup's product.
    row: Value<'b>,
    /// Whether there is such a row.
    in_tile: Value<'b>,
}

impl Recurrence {
    /// Invocations of a workgroup.
    pub fn threads(&self) -> u32 {
        self.tile.map_or(dml_kernel::dense::GROUP, |tile| tile.threads)
    }

    /// The workgroup's product with a matrix.
    pub fn product<'b>(&self, b: &'b Builder, matrix: Pointer<'b>) -> Option<RowProduct<'b>> {
        self.tile.map(|tile| RowProduct::new(b, tile, self.dtype.compute(), matrix))
    }

    /// An invocation's units, of `batch` sequences.
    pub fn units<'b>(&self, b: &'b Builder, batch: Value<'b>) -> Vec<Unit<'b>> {
        let Some(Tile { threads, rows, .. }) = self.tile else {
            let item = linear_id(b, ScalarType::U32);
            let sequence = item / self.hidden;
            let valid = sequence.lt(batch);
            let (row, in_tile) = (b.u32(0), b.bool(false));
            return vec![Unit { sequence: sequence.min(batch - 1), unit: item % self.hidden, valid, row, in_tile }];
        };
        let first = self.first(b);
        let count = rows * self.hidden;
        let unit = |round: u32| {
            let item = b.local_id(0) + round * threads;
            let (row, in_tile) = (item / self.hidden, item.lt(count));
            let sequence = first + row;
            let valid = in_tile & sequence.lt(batch);
            let row = row.min(b.u32(rows - 1));
            Unit { sequence: sequence.min(batch - 1), unit: item % self.hidden, valid, row, in_tile }
        };
        (0..count.div_ceil(threads)).map(unit).collect()
    }

    /// The first sequence of the workgroup, where workgroups loop.
    pub fn first<'b>(&self, b: &'b Builder) -> Value<'b> {
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        group * self.tile.map_or(0, |tile| tile.rows)
    }

    /// Where number `part` of a unit is, of `parts` that stand side by side for each row.
    pub fn place<'b>(&self, row: Value<'b>, parts: u32, part: u32, unit: Value<'b>) -> Value<'b> {
        row.cast(self.index) * (parts * self.hidden) + (unit + part * self.hidden).cast(self.index)
    }

    /// Where the unit's state is.
    pub fn state<'b>(&self, unit: &Unit<'b>) -> Value<'b> {
        self.place(unit.sequence, 1, 0, unit.unit)
    }
}

impl<'b> Unit<'b> {
    /// Sets number `part` of the unit among what the workgroup multiplies, where the workgroup has
    /// such a row.
    pub fn set(&self, b: &'b Builder, product: &RowProduct<'b>, hidden: u32, part: u32, value: Value<'b>) {
        b.if_(self.in_tile, || product.set(self.row, self.unit + part * hidden, value));
    }

    /// Number `part` of the unit in the workgroup's product.
    pub fn get(&self, product: &RowProduct<'b>, hidden: u32, part: u32) -> Value<'b> {
        product.get(self.row, self.unit + part * hidden)
    }
}
