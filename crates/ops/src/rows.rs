//! Rows of a contiguous tensor (all elements along one dimension), each shared by some invocations of a workgroup.

use crate::error::Result;
use crate::launch::{GROUP, Launcher};
use dml_kernel::{Builder, Scalar, Value};

/// How rows are dealt to invocations; part of a kernel's key.
#[derive(Copy, Clone)]
pub struct Rows {
    /// Type of indices.
    pub index: Scalar,
    /// Invocations that share a row; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share a row (whose elements are neighbours); otherwise they have neighbouring rows.
    pub lanes_first: bool,
}

/// An invocation's row, and its place among those that share it.
pub struct Place<'b> {
    /// Index of the invocation in the workgroup (u32).
    pub local: Value<'b>,
    /// Its index among those of its row (u32).
    pub lane: Value<'b>,
    /// Index in the workgroup of the row's first invocation (u32), and the step to the next one.
    pub leader: Value<'b>,
    /// See `leader`.
    pub apart: u32,
    /// Offset of the row's first element. The step to the next one is `inner`.
    pub first: Value<'b>,
    /// Whether there is such a row. A superfluous invocation reads the last one and must write nothing.
    pub valid: Value<'b>,
}

impl Rows {
    /// As a number for a kernel's key.
    pub fn code(&self) -> u32 {
        self.lanes | u32::from(self.lanes_first) << 16 | u32::from(self.index == Scalar::U64) << 17
    }

    /// The place of this invocation; `rows` rows of `n` elements, `inner` apart.
    pub fn place<'b>(&self, b: &'b Builder, rows: Value<'b>, n: Value<'b>, inner: Value<'b>) -> Place<'b> {
        let (lanes, columns) = (self.lanes, GROUP / self.lanes);
        let local = b.local_id(0);
        let (lane, column, leader, apart) = if self.lanes_first {
            let lane = local & (lanes - 1);
            (lane, local >> lanes.ilog2(), local - lane, 1)
        } else {
            let column = local & (columns - 1);
            (local >> columns.ilog2(), column, column, columns)
        };
        let index = self.index;
        let group = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        let wanted = group * columns + column.cast(index);
        let row = wanted.min(rows - 1);
        let outer = row / inner;
        let first = outer * n * inner + (row - outer * inner);
        Place { local, lane, leader, apart, first, valid: wanted.lt(rows) }
    }

    /// Passes `rows`, `n` and `inner`, in this order, and runs the kernel on as many workgroups as the rows take.
    pub fn run(&self, launcher: Launcher, rows: i64, n: i64, inner: i64) -> Result<()> {
        let groups = (rows as u64).div_ceil(u64::from(GROUP / self.lanes));
        let folds = groups.div_ceil(65_535);
        let launcher = launcher.index(self.index, rows).index(self.index, n).index(self.index, inner);
        launcher.groups([groups.div_ceil(folds) as u32, folds as u32, 1])
    }
}
