//! Triangular systems, recursively split in halves that are coupled by a matrix product; and two
//! kernels for the diagonal blocks: the one here for few right-hand sides, `triangular_columns` for
//! more.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::element::{Element, ElementVar, InputElements, OutputElements, SharedElements};
use crate::linear_algebra::matrices::{self, MatrixStrides, Update, part};
use crate::linear_algebra::tile::LOADS_IN_FLIGHT;
use crate::linear_algebra::triangular_columns::{self, Columns, ColumnsArguments};
use crate::primitives::kernel::KernelSpec;
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType};

/// Which triangle of a matrix is read, and whether its diagonal is taken to be ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// The upper triangle.
    pub upper: bool,
    /// The diagonal is ones, and is not read.
    pub unit: bool,
}

impl Triangle {
    /// The lower triangle.
    pub const LOWER: Triangle = Triangle { upper: false, unit: false };
    /// The lower triangle with a unit diagonal.
    pub const UNIT_LOWER: Triangle = Triangle { upper: false, unit: true };
    /// The upper triangle.
    pub const UPPER: Triangle = Triangle { upper: true, unit: false };
    /// The upper triangle with a unit diagonal.
    pub const UNIT_UPPER: Triangle = Triangle { upper: true, unit: true };
}

/// Maximum number of right-hand sides for which an invocation holds one element; with more it holds
/// a column.
const MAX_COLUMNS_PER_ELEMENT: i64 = 8;

/// Solves `t @ x = x` in place: `t` is `[batch, n, n]`, whose conjugate bit is respected, `x` is
/// `[batch, n, k]`.
pub fn solve(cx: &Context, t: &View, x: &View, triangle: Triangle) -> Result<()> {
    let (n, k) = (x.sizes[1], x.sizes[2]);
    if x.numel() == 0 {
        return Ok(());
    }
    let rows = matrices::block_rows(x.dtype);
    if k <= MAX_COLUMNS_PER_ELEMENT && n <= i64::from(rows) {
        return solve_block(cx, t, x, triangle);
    }
    if k > MAX_COLUMNS_PER_ELEMENT && n <= triangular_columns::most_rows(x.dtype) {
        return solve_columns(cx, t, x, triangle);
    }
    let half = matrices::half(n, rows);
    let (first, second) = if triangle.upper { ((half, n), (0, half)) } else { ((0, half), (half, n)) };
    let [x_first, x_second] = [first, second].map(|part_rows| part(x, part_rows, (0, k)));
    solve(cx, &part(t, first, first), &x_first, triangle)?;
    matrices::multiply(cx, [&part(t, second, first), &x_first], &x_second, Update::Subtract)?;
    solve(cx, &part(t, second, second), &x_second, triangle)
}

fn solve_columns(cx: &Context, t: &View, x: &View, triangle: Triangle) -> Result<()> {
    let [batch, n, k] = [x.sizes[0], x.sizes[1], x.sizes[2]];
    let (side, loads) = match cx.device.info().capabilities.has_few_registers() {
        true => triangular_columns::FOR_FEW_REGISTERS,
        false => (matrices::block_rows(x.dtype), LOADS_IN_FLIGHT),
    };
    let side = matrices::rows_for(n).min(side);
    let spec =
        Columns { dtype: x.dtype, index: matrices::index_of(&[t, x]), triangle, conjugate: t.conjugate, side, loads };
    let tiles = (k as u64).div_ceil(side.into()) as i64;
    let arguments = ColumnsArguments {
        t,
        x,
        t_strides: t,
        x_strides: x,
        batch: batch as u32,
        n: n as u32,
        k: k as u32,
        tiles: tiles as u32,
    };
    cx.run(&spec, &arguments, matrices::workgroups(batch, tiles))
}

fn solve_block(cx: &Context, t: &View, x: &View, triangle: Triangle) -> Result<()> {
    let [batch, n, k] = [x.sizes[0], x.sizes[1], x.sizes[2]];
    let (rows, columns) = (matrices::rows_for(n), (k as u32).next_power_of_two());
    let index = matrices::index_of(&[t, x]);
    let spec = Block { dtype: x.dtype, index, triangle, conjugate: t.conjugate, rows, columns };
    let arguments = BlockArguments { t, x, t_strides: t, x_strides: x, batch: batch as u32, n: n as u32, k: k as u32 };
    cx.run(&spec, &arguments, matrices::workgroups(batch, 1))
}

/// A diagonal block with a few right-hand sides: an invocation holds one element, and the elements
/// of a solved row are broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Block {
    dtype: DType,
    index: ScalarType,
    triangle: Triangle,
    /// The conjugate of `t` is used.
    conjugate: bool,
    /// Maximum rows and columns: powers of two.
    rows: u32,
    columns: u32,
}

parameters! {
    Block as s => BlockArguments, BlockParameters {
        t: InputElements = s.dtype,
        x: OutputElements = s.dtype,
        t_strides: MatrixStrides = s.index,
        x_strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
        k: U32,
    }
}

impl KernelSpec for Block {
    fn name(&self) -> &'static str {
        "triangular_block"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.rows * self.columns, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: BlockParameters<'b>) {
        let Triangle { upper, unit } = self.triangle;
        let (dtype, rows, columns) = (self.dtype, self.rows, self.columns);
        let (matrix, _) = matrices::workgroup_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let (row, lane) = (local & (rows - 1), local >> rows.ilog2());
        let counted = |element: Element<'b>| if self.conjugate { element.conjugate() } else { element };
        // The block in column-major order.
        let block = SharedElements::shared(b, dtype, rows * rows);
        for e in 0..rows / columns {
            let at = lane + e * columns;
            b.if_(row.lt(p.n) & at.lt(p.n), || {
                block.store(at * rows + row, counted(p.t.load(p.t_strides.at(matrix, row, at))));
            });
        }
        let own = row.lt(p.n) & lane.lt(p.k);
        let x = ElementVar::var(b, Element::constant(b, dtype, 0.0));
        b.if_(own, || x.set(p.x.load(p.x_strides.at(matrix, row, lane))));
        // Double-buffered rows, so that one barrier a step is enough.
        let known = SharedElements::shared(b, dtype, 2 * columns);
        b.barrier();
        b.for_(0, p.n, 1, |step| {
            let j = if upper { p.n - 1 - step } else { step };
            let slot = (step & 1) * columns + lane;
            b.if_(row.eq(j), || {
                if !unit {
                    x.set(x.get() / block.load(j * rows + j));
                }
                known.store(slot, x.get());
            });
            b.barrier();
            b.if_((if upper { row.lt(j) } else { row.gt(j) }) & row.lt(p.n), || {
                x.set(x.get() - block.load(j * rows + row) * known.load(slot));
            });
        });
        b.if_(own, || p.x.store(p.x_strides.at(matrix, row, lane), x.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, triangle, conjugate, [rows, columns]) in [
            (DType::F32, ScalarType::U32, Triangle::UNIT_LOWER, false, [32, 1]),
            (DType::F64, ScalarType::U64, Triangle::UPPER, false, [32, 8]),
            (DType::C64, ScalarType::U32, Triangle::LOWER, true, [8, 2]),
            (DType::C128, ScalarType::U64, Triangle::UNIT_UPPER, false, [16, 4]),
        ] {
            accepted(&Block { dtype, index, triangle, conjugate, rows, columns }.build());
        }
    }
}
