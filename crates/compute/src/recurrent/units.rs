//! The units and sequences that an invocation computes.

use crate::recurrent::gates::Cell;
use crate::recurrent::row_product::{RowProduct, Tile};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// What the kernels of a recurrence share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    /// The kind of cell.
    pub cell: Cell,
    /// The dtype of all tensors.
    pub dtype: DType,
    /// Integer type of indices.
    pub index: ScalarType,
    /// Units of a sequence.
    pub hidden: u32,
    /// The product's shape if workgroups loop over steps; `None` if a launch is at most one step,
    /// whose product is an argument.
    pub tile: Option<Tile>,
}

/// A unit of a sequence, computed by an invocation.
#[derive(Copy, Clone)]
pub struct HiddenUnit<'b> {
    /// The sequence; the last one if the invocation has none.
    pub sequence: Value<'b>,
    /// The unit's index.
    pub unit: Value<'b>,
    /// Whether the sequence exists.
    pub valid: Value<'b>,
    /// The sequence's row in the workgroup's product.
    row: Value<'b>,
    /// Whether the row is in range of the workgroup's product.
    in_tile: Value<'b>,
}

impl Recurrence {
    /// Invocations of a workgroup.
    pub fn threads(&self) -> u32 {
        self.tile.map_or(dml_kernel::dense::GROUP, |tile| tile.threads)
    }

    /// The workgroup's product with a matrix, if it loops.
    pub fn product<'b>(&self, b: &'b Builder, matrix: Pointer<'b>) -> Option<RowProduct<'b>> {
        self.tile.map(|tile| RowProduct::new(b, tile, self.dtype.compute(), matrix))
    }

    /// An invocation's units, of `batch` sequences.
    pub fn hidden_units<'b>(&self, b: &'b Builder, batch: Value<'b>) -> Vec<HiddenUnit<'b>> {
        let Some(Tile { threads, rows, .. }) = self.tile else {
            let item = linear_id(b, ScalarType::U32);
            let sequence = item / self.hidden;
            let valid = sequence.lt(batch);
            let (row, in_tile) = (b.u32(0), b.bool(false));
            return vec![HiddenUnit {
                sequence: sequence.min(batch - 1),
                unit: item % self.hidden,
                valid,
                row,
                in_tile,
            }];
        };
        let first = self.first(b);
        let count = rows * self.hidden;
        let unit = |round: u32| {
            let item = b.local_id(0) + round * threads;
            let (row, in_tile) = (item / self.hidden, item.lt(count));
            let sequence = first + row;
            let valid = in_tile & sequence.lt(batch);
            let row = row.min(b.u32(rows - 1));
            HiddenUnit { sequence: sequence.min(batch - 1), unit: item % self.hidden, valid, row, in_tile }
        };
        (0..count.div_ceil(threads)).map(unit).collect()
    }

    /// The first sequence of a workgroup that loops.
    pub fn first<'b>(&self, b: &'b Builder) -> Value<'b> {
        let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
        group * self.tile.map_or(0, |tile| tile.rows)
    }

    /// Offset of number `part` of a unit, in rows of `parts` adjacent numbers for each unit.
    pub fn offset<'b>(&self, row: Value<'b>, parts: u32, part: u32, unit: Value<'b>) -> Value<'b> {
        row.cast(self.index) * (parts * self.hidden) + (unit + part * self.hidden).cast(self.index)
    }

    /// Offset of the unit's state.
    pub fn state<'b>(&self, unit: &HiddenUnit<'b>) -> Value<'b> {
        self.offset(unit.sequence, 1, 0, unit.unit)
    }
}

impl<'b> HiddenUnit<'b> {
    /// Sets number `part` of the unit in the operand of the workgroup's product, if its row is in
    /// range.
    pub fn set(&self, b: &'b Builder, product: &RowProduct<'b>, hidden: u32, part: u32, value: Value<'b>) {
        b.if_(self.in_tile, || product.set(self.row, self.unit + part * hidden, value));
    }

    /// Number `part` of the unit in the result of the workgroup's product.
    pub fn get(&self, product: &RowProduct<'b>, hidden: u32, part: u32) -> Value<'b> {
        product.get(self.row, self.unit + part * hidden)
    }
}
