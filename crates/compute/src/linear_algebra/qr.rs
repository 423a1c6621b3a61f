//! The decomposition `A = Q R` by Householder reflections, in panels of a few columns, which a
//! workgroup holds in registers if possible; and the matrix Q from the reflections.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::householder::{self, Block};
use crate::linear_algebra::matrices::{self, part};
use crate::linear_algebra::qr_panel::{self, Panel, PanelArguments, WIDTH};
use crate::linear_algebra::qr_register_panel::{RegisterPanel, RegisterPanelArguments};
use crate::primitives::loops::check_loop_iterations;
use crate::view::View;

/// R in the upper triangle of new matrices, the reflections' vectors below; and the reflections'
/// factors, `[.., min(m, n)]`.
pub fn decompose(cx: &Context, a: &View) -> Result<(View, View)> {
    let (m, n) = (a.size(-2), a.size(-1));
    let k = m.min(n);
    let qr = matrices::copied(cx, a, &a.sizes)?;
    let tau = cx.empty(a.dtype, &matrices::sizes_of(matrices::batch_of(a), &[k]))?;
    if qr.numel() == 0 {
        return Ok((qr, tau));
    }
    let work = QrState { cx, a: &matrices::flat(&qr), tau: &tau };
    let mut from = 0;
    while from < k {
        from = work.block(from, k)?;
    }
    Ok((qr, tau))
}

/// A decomposition in progress: the first columns are completed.
struct QrState<'a, 'c> {
    cx: &'a Context<'c>,
    a: &'a View,
    /// `[.., k]`, contiguous.
    tau: &'a View,
}

impl QrState<'_, '_> {
    /// Decomposes columns from `from` on, up to `most`, and applies their reflections to all
    /// columns to their right. Returns the first column that is not completed.
    fn block(&self, from: i64, most: i64) -> Result<i64> {
        let (cx, a) = (self.cx, self.a);
        let (m, n) = (a.sizes[1], a.sizes[2]);
        let Some(spec) = RegisterPanel::here(cx, a.dtype, matrices::index_of(&[a]), m - from) else {
            let to = (from + i64::from(WIDTH)).min(most);
            let panel = self.panel((from, to))?;
            if to < n {
                Block::new(cx, &panel, self.tau, from)?.apply(cx, &part(a, (from, m), (to, n)), true)?;
            }
            return Ok(to);
        };
        let columns = i64::from(spec.shape.columns);
        // Several narrow panels are a wider block: each panel is applied to the block's columns
        // alone, and the block's reflections together to the columns to its right.
        let width = if columns < i64::from(WIDTH) { householder::BLOCK.into() } else { columns };
        let to = (from + width).min(most);
        let alone = to - from <= columns;
        let v = matrices::empty(cx, a.dtype, &[a.sizes[0], m - from, to - from])?;
        for at in (from..to).step_by(columns as usize) {
            let (end, right) = ((at + columns).min(to), if alone { n } else { to });
            let t = self.register_panel(&spec, (at, end), (&v, from), end < right || to < n)?;
            if end < right {
                let v = part(&v, (at - from, m - from), (at - from, end - from));
                Block { v, t }.apply(cx, &part(a, (at, m), (end, right)), true)?;
            }
        }
        if !alone && to < n {
            Block::of_vectors(cx, v, self.tau, from)?.apply(cx, &part(a, (from, m), (to, n)), true)?;
        }
        Ok(to)
    }

    /// Decomposes a panel, and writes its vectors to columns of `v`, which begins at row and column
    /// `begin`, for the reflections to be applied. Returns T.
    fn register_panel(
        &self,
        spec: &RegisterPanel,
        (from, to): (i64, i64),
        (v, begin): (&View, i64),
        applied: bool,
    ) -> Result<View> {
        let (batch, m) = (self.a.sizes[0], self.a.sizes[1]);
        let panel = part(self.a, (from, m), (from, to));
        let v = part(v, (0, m - begin), (from - begin, to - begin));
        let t = matrices::empty(self.cx, panel.dtype, &[batch, to - from, to - from])?;
        let arguments = RegisterPanelArguments {
            a: &panel,
            tau: self.tau,
            v: &v,
            t: &t,
            strides: &panel,
            v_strides: &v,
            t_strides: &t,
            batch: batch as u32,
            rows: (m - from) as u32,
            columns: (to - from) as u32,
            first: from as u32,
            tau_apart: self.tau.size(-1) as u32,
            above: (from - begin) as u32,
        };
        self.cx.run(&RegisterPanel { applied, ..spec.clone() }, &arguments, matrices::workgroups(batch, 1))?;
        Ok(t)
    }

    /// Decomposes a panel with any number of rows.
    fn panel(&self, (from, to): (i64, i64)) -> Result<View> {
        let (batch, m) = (self.a.sizes[0], self.a.sizes[1]);
        check_loop_iterations(self.cx, qr_panel::loop_iterations(m))?;
        let panel = part(self.a, (from, m), (from, to));
        let arguments = PanelArguments {
            a: &panel,
            tau: self.tau,
            strides: &panel,
            batch: batch as u32,
            rows: (m - from) as u32,
            columns: (to - from) as u32,
            steps: (to - from) as u32,
            first: from as u32,
            tau_apart: self.tau.size(-1) as u32,
        };
        let spec = Panel { dtype: panel.dtype, index: matrices::index_of(&[self.a]) };
        self.cx.run(&spec, &arguments, matrices::workgroups(batch, 1))?;
        Ok(panel)
    }
}

/// The first `columns` columns of Q as new matrices, from the reflections `[.., m, at least k]` and
/// `tau`, contiguous `[.., k]`.
pub fn orthogonal(cx: &Context, v: &View, tau: &View, columns: i64) -> Result<View> {
    let q = matrices::identity(cx, v.dtype, &matrices::sizes_of(matrices::batch_of(v), &[v.size(-2), columns]))?;
    let k = tau.size(-1);
    if q.numel() > 0 && k > 0 {
        let v = matrices::to_contiguous_matrices(cx, &v.narrow(v.dim() - 1, 0, k), matrices::batch_of(v))?;
        householder::apply(cx, &v, tau, &matrices::flat(&q), false)?;
    }
    Ok(q)
}
