//! The decomposition `A = P L U` with partial pivoting. Columns are recursively split in halves
//! down to panels of a few columns, which a workgroup holds in registers if possible. Matrices of
//! few rows and columns are one launch.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::lu_panel::{Panel, PanelArguments, WIDTH};
use crate::linear_algebra::lu_register_panel::{RegisterPanel, RegisterPanelArguments};
use crate::linear_algebra::lu_rows::{self, Rows, RowsArguments};
use crate::linear_algebra::matrices::{self, Update, fill_with, part};
use crate::linear_algebra::panel_exchange::{self, PanelExchange, PanelExchangeArguments};
use crate::linear_algebra::register_panel::Shape;
use crate::linear_algebra::row_exchange::{Exchange, ExchangeArguments};
use crate::linear_algebra::row_sources::{self, BringArguments, GatherRows, Sources, SourcesArguments};
use crate::linear_algebra::triangular::{self, Triangle};
use crate::primitives::loops::max_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_kernel::DType;

/// The result of a decomposition, in new tensors.
pub struct Decomposed {
    /// U with its diagonal, and below it L, whose unit diagonal is not stored.
    pub lu: View,
    /// The row with which each row was exchanged, counted from 1 (int32).
    pub pivots: View,
    /// 0, or the index of the first zero on U's diagonal, counted from 1 (int32).
    pub info: View,
}

/// Decomposes the matrices `a`; without `pivot` rows are not exchanged.
pub fn decompose(cx: &Context, a: &View, pivot: bool) -> Result<Decomposed> {
    let batch = matrices::batch_of(a);
    let (m, n) = (a.size(-2), a.size(-1));
    let pivots = cx.empty(DType::I32, &matrices::sizes_of(batch, &[m.min(n)]))?;
    let info = cx.empty(DType::I32, batch)?;
    if a.numel() > 0 && m.max(n) <= i64::from(matrices::block_rows(a.dtype)) {
        let decomposed = Decomposed { lu: matrices::empty(cx, a.dtype, &a.sizes)?, pivots, info };
        decompose_rows(cx, a, &decomposed, pivot)?;
        return Ok(decomposed);
    }
    let lu = matrices::copied(cx, a, &a.sizes)?;
    if info.numel() > 0 {
        fill_with(cx, &info, Number::Int(0))?;
    }
    if lu.numel() > 0 {
        let flat = matrices::flat(&lu);
        let work = LuState { cx, a: &flat, pivots: &pivots, info: &info, pivot };
        let k = m.min(n);
        work.factor((0, k))?;
        if n > k {
            work.update_right((0, k), (k, n))?;
        }
    }
    Ok(Decomposed { lu, pivots, info })
}

/// Decomposes the matrices `a` of few rows and columns into `to`.
fn decompose_rows(cx: &Context, a: &View, to: &Decomposed, pivot: bool) -> Result<()> {
    let a = matrices::to_contiguous_matrices(cx, a, matrices::batch_of(a))?;
    let lu = matrices::flat(&to.lu);
    let [batch, m, n] = [a.sizes[0], a.sizes[1], a.sizes[2]];
    let (index, rows) = (matrices::index_of(&[&a, &lu]), matrices::rows_for(m.max(n)));
    let in_registers = lu_rows::fit_registers(a.dtype, rows, cx.device.info().capabilities.registers);
    let spec = Rows { dtype: a.dtype, index, rows, pivot, conjugate: a.conjugate, in_registers };
    let arguments = RowsArguments {
        a: &a,
        lu: &lu,
        pivots: &to.pivots,
        info: &to.info,
        a_strides: &a,
        lu_strides: &lu,
        batch: batch as u32,
        m: m as u32,
        n: n as u32,
        steps: m.min(n) as u32,
    };
    let groups = matrices::workgroups_for(batch, matrices::matrices_per_workgroup(rows));
    cx.run(&spec, &arguments, matrices::workgroups(groups.into(), 1))
}

/// A decomposition in progress: the first columns are completed, and their row exchanges are
/// applied to all columns.
struct LuState<'a, 'c> {
    cx: &'a Context<'c>,
    a: &'a View,
    pivots: &'a View,
    info: &'a View,
    pivot: bool,
}

impl LuState<'_, '_> {
    /// The register shape for panels from row `from` on; `None` if they have too many rows.
    fn shape(&self, from: i64) -> Option<Shape> {
        Shape::here(self.cx, self.a.dtype, self.a.sizes[1] - from)
    }

    /// Decomposes columns `from..to` from row `from` on.
    fn factor(&self, (from, to): (i64, i64)) -> Result<()> {
        let (m, width) = (self.a.sizes[1], to - from);
        let shape = self.shape(from);
        let most = shape.map_or(WIDTH, |shape| shape.columns);
        if width <= i64::from(most) {
            self.panel((from, to), shape)?;
            return self.exchange((from, to));
        }
        let half = from + matrices::half(width, most);
        self.factor((from, half))?;
        self.update_right((from, half), (half, to))?;
        let [below, right] = [part(self.a, (half, m), (from, half)), part(self.a, (from, half), (half, to))];
        matrices::multiply(self.cx, [&below, &right], &part(self.a, (half, m), (half, to)), Update::Subtract)?;
        self.factor((half, to))
    }

    /// Updates columns `right` from the completed columns `done`, in the rows of the latter.
    fn update_right(&self, done: (i64, i64), right: (i64, i64)) -> Result<()> {
        let (l, u) = (part(self.a, done, done), part(self.a, done, right));
        triangular::solve(self.cx, &l, &u, Triangle::UNIT_LOWER)
    }

    /// Applies the row exchanges of a panel to all other columns.
    fn exchange(&self, (from, to): (i64, i64)) -> Result<()> {
        let (batch, columns) = (self.a.sizes[0], self.a.sizes[2] - (to - from));
        if !self.pivot || columns == 0 {
            return Ok(());
        }
        let tiles = (columns as u64).div_ceil(panel_exchange::COLUMNS.into()) as i64;
        let spec = PanelExchange { dtype: self.a.dtype, index: matrices::index_of(&[self.a]) };
        let arguments = PanelExchangeArguments {
            x: self.a,
            pivots: self.pivots,
            strides: self.a,
            batch: batch as u32,
            columns: columns as u32,
            tiles: tiles as u32,
            gap: from as u32,
            width: (to - from) as u32,
            first: from as u32,
            steps: (to - from) as u32,
            pivots_apart: self.pivots.size(-1) as u32,
        };
        self.cx.run(&spec, &arguments, matrices::workgroups(batch, tiles))
    }

    fn panel(&self, (from, to): (i64, i64), shape: Option<Shape>) -> Result<()> {
        let m = self.a.sizes[1];
        let panel = part(self.a, (from, m), (from, to));
        let groups = matrices::workgroups(self.a.sizes[0], 1);
        let (dtype, index, pivot) = (panel.dtype, matrices::index_of(&[self.a]), self.pivot);
        let (rows, columns, first) = ((m - from) as u32, (to - from) as u32, from as u32);
        let (batch, pivots_apart) = (self.a.sizes[0] as u32, self.pivots.size(-1) as u32);
        let (a, pivots, info, strides) = (&panel, self.pivots, self.info, &panel);
        if let Some(shape) = shape {
            let spec = RegisterPanel { dtype, index, pivot, shape };
            let arguments =
                RegisterPanelArguments { a, pivots, info, strides, batch, rows, columns, first, pivots_apart };
            return self.cx.run(&spec, &arguments, groups);
        }
        let arguments = PanelArguments { a, pivots, info, strides, batch, rows, columns, first, pivots_apart };
        self.cx.run(&Panel { dtype, index, pivot }, &arguments, groups)
    }
}

/// Applies the row exchanges of the pivots `steps` (contiguous, `[.., k]`) to `x`,
/// `[batch, rows, columns]`; inversely if `reverse`.
pub fn exchange_rows(cx: &Context, x: &View, pivots: &View, steps: (i64, i64), reverse: bool) -> Result<()> {
    let (batch, columns) = (x.sizes[0], x.sizes[2]);
    if x.numel() == 0 || steps.0 == steps.1 {
        return Ok(());
    }
    if steps.1 - steps.0 > COPY_THRESHOLD && max_loop_iterations(cx).is_none_or(|turns| steps.1 - steps.0 < turns) {
        return gather_rows(cx, x, pivots, steps, reverse);
    }
    let tiles = (columns as u64).div_ceil(u64::from(crate::linear_algebra::row_exchange::COLUMNS)) as i64;
    let spec = Exchange { dtype: x.dtype, index: matrices::index_of(&[x]), reverse };
    let arguments = ExchangeArguments {
        x,
        pivots,
        strides: x,
        batch: batch as u32,
        columns: columns as u32,
        tiles: tiles as u32,
        first: steps.0 as u32,
        steps: (steps.1 - steps.0) as u32,
        pivots_apart: pivots.size(-1) as u32,
    };
    cx.run(&spec, &arguments, matrices::workgroups(batch, tiles))
}

/// Number of exchanges above which they take longer one after another than two copies.
const COPY_THRESHOLD: i64 = 64;

/// Applies row exchanges by copying all rows to their final positions.
fn gather_rows(cx: &Context, x: &View, pivots: &View, steps: (i64, i64), reverse: bool) -> Result<()> {
    let [batch, rows, columns] = [x.sizes[0], x.sizes[1], x.sizes[2]];
    // Elements are copied as they are, without conjugation.
    let x = &View { conjugate: false, ..x.clone() };
    let sources = cx.empty(DType::I32, &[batch, rows])?;
    let spec = Sources { index: index_type(batch * rows.max(pivots.size(-1))), reverse };
    let arguments = SourcesArguments {
        pivots,
        sources: &sources,
        batch: batch as u32,
        rows: rows as u32,
        first: steps.0 as u32,
        steps: (steps.1 - steps.0) as u32,
        pivots_apart: pivots.size(-1) as u32,
    };
    cx.run_threads(&spec, &arguments, (batch * rows) as u64)?;
    let out = matrices::empty(cx, x.dtype, &x.sizes)?;
    let [row_tiles, column_tiles] = [(rows, row_sources::ROWS), (columns, row_sources::COLUMNS)]
        .map(|(of, tile)| (of as u64).div_ceil(tile.into()) as i64);
    let arguments = BringArguments {
        x,
        out: &out,
        sources: &sources,
        x_strides: x,
        out_strides: &out,
        batch: batch as u32,
        rows: rows as u32,
        columns: columns as u32,
        row_tiles: row_tiles as u32,
        tiles: (row_tiles * column_tiles) as u32,
    };
    let spec = GatherRows { dtype: x.dtype, index: matrices::index_of(&[x, &out]) };
    cx.run(&spec, &arguments, matrices::workgroups(batch, row_tiles * column_tiles))?;
    matrices::device_copy(cx, &out, x)
}

/// Solves `A x = x` in place, or `A^T x = x`, with `lu` `[batch, n, n]`, whose conjugate bit is
/// respected, and `x` `[batch, n, k]`.
pub fn solve(cx: &Context, lu: &View, pivots: &View, x: &View, transpose: bool) -> Result<()> {
    let steps = (0, pivots.size(-1));
    if transpose {
        let turned = matrices::transposed(lu);
        triangular::solve(cx, &turned, x, Triangle::LOWER)?;
        triangular::solve(cx, &turned, x, Triangle::UNIT_UPPER)?;
        return exchange_rows(cx, x, pivots, steps, true);
    }
    exchange_rows(cx, x, pivots, steps, false)?;
    triangular::solve(cx, lu, x, Triangle::UNIT_LOWER)?;
    triangular::solve(cx, lu, x, Triangle::UPPER)
}
