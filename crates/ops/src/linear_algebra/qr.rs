//! The decomposition `A = Q R` by Householder reflections, in panels of a few columns, which a workgroup
//! holds in registers where it can, and what is made of the reflections.

use super::householder::{self, Block};
use super::matrices::{self, as_contiguous, conjugated, part, transposed};
use super::qr_held_panel::{HeldPanel, HeldPanelArguments};
use super::qr_panel::{self, Panel, PanelArguments, WIDTH};
use crate::creation::triangle::{Half, copy_half};
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::loops::check_turns;
use crate::tensor::Tensor;
use crate::{check, operators};

operators! {
    geqrf(self, outs) {
        "aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)",
        "aten::geqrf.a(Tensor self, *, Tensor(a!) a, Tensor(b!) tau) -> (Tensor(a!) a, Tensor(b!) tau)",
    }
    householder_product(input, tau, out) {
        "aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
        "aten::linalg_householder_product.out(Tensor input, Tensor tau, *, Tensor(a!) out) -> Tensor(a!)",
    }
    ormqr(self, input2, input3, left, transpose, out) {
        "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        "aten::ormqr.out(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    linalg_qr(A, mode, outs) {
        "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
        "aten::linalg_qr.out(Tensor A, str mode=\"reduced\", *, Tensor(a!) Q, Tensor(b!) R) -> (Tensor(a!) Q, Tensor(b!) R)",
    }
}

/// R in the upper triangle of new matrices, the reflections' vectors below; and their factors, `[.., min(m, n)]`.
pub fn decompose(call: &Call, a: &Tensor) -> Result<(Tensor, Tensor)> {
    let (m, n) = (a.size(-2), a.size(-1));
    let k = m.min(n);
    let qr = matrices::copied(call, a, &a.sizes)?;
    let tau = call.empty(a.dtype, &matrices::sizes_of(matrices::batch_of(a), &[k]))?;
    if qr.numel() == 0 {
        return Ok((qr, tau));
    }
    let work = Work { call, a: &matrices::flat(&qr), tau: &tau };
    let mut from = 0;
    while from < k {
        from = work.block(from, k)?;
    }
    Ok((qr, tau))
}

/// A decomposition on its way: the first columns are done.
struct Work<'a, 'c> {
    call: &'a Call<'c>,
    a: &'a Tensor,
    /// `[.., k]`, contiguous.
    tau: &'a Tensor,
}

impl Work<'_, '_> {
    /// Decomposes some columns from `from` on, up to `most`, and applies their reflections to all columns to their right. Gives the first column that
    /// is not done.
    fn block(&self, from: i64, most: i64) -> Result<i64> {
        let (call, a) = (self.call, self.a);
        let (m, n) = (a.sizes[1], a.sizes[2]);
        let Some(spec) = HeldPanel::here(call, a.dtype, matrices::index_of(&[a]), m - from) else {
            let to = (from + i64::from(WIDTH)).min(most);
            let panel = self.panel((from, to))?;
            if to < n {
                Block::new(call, &panel, self.tau, from)?.apply(call, &part(a, (from, m), (to, n)), true)?;
            }
            return Ok(to);
        };
        let columns = i64::from(spec.shape.columns);
        // Narrow panels make a wider block: each is applied to the block's columns alone, and all of them together to those to its right.
        let width = if columns < i64::from(WIDTH) { householder::BLOCK.into() } else { columns };
        let to = (from + width).min(most);
        let alone = to - from <= columns;
        let v = matrices::empty(call, a.dtype, &[a.sizes[0], m - from, to - from])?;
        for at in (from..to).step_by(columns as usize) {
            let (end, right) = ((at + columns).min(to), if alone { n } else { to });
            let t = self.held_panel(&spec, (at, end), (&v, from), end < right || to < n)?;
            if end < right {
                let v = part(&v, (at - from, m - from), (at - from, end - from));
                Block { v, t }.apply(call, &part(a, (at, m), (end, right)), true)?;
            }
        }
        if !alone && to < n {
            Block::of_vectors(call, v, self.tau, from)?.apply(call, &part(a, (from, m), (to, n)), true)?;
        }
        Ok(to)
    }

    /// Decomposes a panel, and writes its vectors to columns of `v`, which begins at row and column `begin`, where they are to be applied. Gives T.
    fn held_panel(
        &self,
        spec: &HeldPanel,
        (from, to): (i64, i64),
        (v, begin): (&Tensor, i64),
        applied: bool,
    ) -> Result<Tensor> {
        let (batch, m) = (self.a.sizes[0], self.a.sizes[1]);
        let panel = part(self.a, (from, m), (from, to));
        let v = part(v, (0, m - begin), (from - begin, to - begin));
        let t = matrices::empty(self.call, panel.dtype, &[batch, to - from, to - from])?;
        let arguments = HeldPanelArguments {
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
        self.call.run(&HeldPanel { applied, ..spec.clone() }, &arguments, matrices::workgroups(batch, 1))?;
        Ok(t)
    }

    /// Decomposes a panel with any number of rows.
    fn panel(&self, (from, to): (i64, i64)) -> Result<Tensor> {
        let (batch, m) = (self.a.sizes[0], self.a.sizes[1]);
        check_turns(self.call, qr_panel::turns(m))?;
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
        self.call.run(&spec, &arguments, matrices::workgroups(batch, 1))?;
        Ok(panel)
    }
}

/// The first `columns` columns of Q as new matrices, of reflections `[.., m, at least k]` and `tau`, contiguous `[.., k]`.
pub fn orthogonal(call: &Call, v: &Tensor, tau: &Tensor, columns: i64) -> Result<Tensor> {
    let q = matrices::identity(call, v.dtype, &matrices::sizes_of(matrices::batch_of(v), &[v.size(-2), columns]))?;
    let k = tau.size(-1);
    if q.numel() > 0 && k > 0 {
        let v = matrices::readable(call, &v.narrow(v.dim() - 1, 0, k), matrices::batch_of(v))?;
        householder::apply(call, &v, tau, &matrices::flat(&q), false)?;
    }
    Ok(q)
}

fn geqrf(call: &mut Call, a: &Tensor, outs: Outs) -> Result<()> {
    check!(a.dim() >= 2, Runtime, "torch.geqrf: input must have at least 2 dimensions.");
    matrices::check_kernels(a, "geqrf_cpu")?;
    let (qr, tau) = decompose(call, a)?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    matrices::give(call, given(0), qr)?;
    matrices::give(call, given(1), tau)
}

fn householder_product(call: &mut Call, input: &Tensor, tau: &Tensor, out: Out) -> Result<()> {
    check!(input.dim() >= 2, Runtime, "torch.linalg.householder_product: input must have at least 2 dimensions.");
    check!(
        input.size(-2) >= input.size(-1),
        Runtime,
        "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
    );
    check!(
        tau.dim() >= 1 && input.size(-1) >= tau.size(-1),
        Runtime,
        "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
    );
    check!(
        tau.dim() + 1 == input.dim(),
        Runtime,
        "torch.linalg.householder_product: Expected tau to have one dimension less than input, but got tau.ndim equal to {} \
         and input.ndim is equal to {}",
        tau.dim(),
        input.dim()
    );
    check!(
        tau.sizes[..tau.dim() - 1] == *matrices::batch_of(input),
        Runtime,
        "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {:?}",
        &tau.sizes[..tau.dim() - 1]
    );
    check!(
        tau.dtype == input.dtype,
        Runtime,
        "torch.linalg.householder_product: tau dtype {} does not match input dtype {}",
        tau.dtype,
        input.dtype
    );
    matrices::check_kernels_of_elements(input, "orgqr_cpu")?;
    let q = orthogonal(call, input, &as_contiguous(call, tau)?, input.size(-1))?;
    matrices::give(call, out.given(), q)
}

fn ormqr(
    call: &mut Call,
    input: &Tensor,
    tau: &Tensor,
    other: &Tensor,
    left: bool,
    transpose: bool,
    out: Out,
) -> Result<()> {
    check!(input.dim() >= 2, Runtime, "torch.ormqr: input must have at least 2 dimensions.");
    check!(other.dim() >= 2, Runtime, "torch.ormqr: other must have at least 2 dimensions.");
    let at = if left { -2 } else { -1 };
    check!(
        other.size(at) == input.size(-2),
        Runtime,
        "torch.ormqr: other.shape[{at}] must be equal to input.shape[-2]"
    );
    check!(tau.dim() > 0, Index, "Dimension specified as -1 but tensor has no dimensions");
    check!(
        tau.size(-1) == other.size(at).min(input.size(-1)),
        Runtime,
        "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])"
    );
    check!(
        tau.dim() + 1 == input.dim(),
        Runtime,
        "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim \
         is equal to {}",
        tau.dim(),
        input.dim()
    );
    check!(
        input.dim() == other.dim(),
        Runtime,
        "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {} \
         and input.ndim is equal to {}",
        other.dim(),
        input.dim()
    );
    let batch = matrices::batch_of(input);
    for (name, given) in [("tau", &tau.sizes[..tau.dim() - 1]), ("other", matrices::batch_of(other))] {
        check!(
            *given == *batch,
            Runtime,
            "torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {given:?}"
        );
    }
    check!(
        tau.dtype == input.dtype && other.dtype == input.dtype,
        Runtime,
        "torch.ormqr: Expected input, tau and other to have the same dtype"
    );
    matrices::check_kernels(input, "ormqr_cpu")?;
    structured::check_given(out.given(), input.dtype)?;
    let c = matrices::copied(call, other, &other.sizes)?;
    let k = tau.size(-1);
    if c.numel() > 0 && k > 0 {
        let flat = matrices::flat(&c);
        // C Q is the transpose of Q^T C^T, and Q^T the adjoint of the conjugate of Q.
        let (turned, [input, tau]) =
            if left { (flat, [input.clone(), tau.clone()]) } else { (transposed(&flat), [input, tau].map(conjugated)) };
        let v = input.narrow(input.dim() - 1, 0, k);
        let v = if v.conjugate { as_contiguous(call, &v)? } else { v };
        let v = matrices::readable(call, &v, batch)?;
        householder::apply(call, &v, &as_contiguous(call, &tau)?, &turned, transpose == left)?;
    }
    matrices::give(call, out.given(), c)
}

fn linalg_qr(call: &mut Call, a: &Tensor, mode: Option<&str>, outs: Outs) -> Result<()> {
    matrices::check_matrices(a, "linalg.qr", "A")?;
    matrices::check_floats(a, "linalg.qr")?;
    let mode = mode.unwrap_or("reduced");
    check!(
        matches!(mode, "reduced" | "complete" | "r"),
        Runtime,
        "qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
    );
    matrices::check_kernels(a, "geqrf_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype)?;
    structured::check_given(given(1), a.dtype)?;
    let (m, n) = (a.size(-2), a.size(-1));
    let k = if mode == "complete" { m } else { m.min(n) };
    let (qr, tau) = decompose(call, a)?;
    let r = matrices::empty(call, a.dtype, &matrices::sizes_of(matrices::batch_of(a), &[k, n]))?;
    if r.numel() > 0 {
        copy_half(call, &qr.narrow(qr.dim() - 2, 0, k), &r, 0, Half::Upper)?;
    }
    if mode == "r" {
        let none = call.empty(a.dtype, &[0])?;
        matrices::give(call, given(0), none)?;
    } else {
        let q = orthogonal(call, &qr, &tau, k)?;
        matrices::give(call, given(0), q)?;
    }
    matrices::give(call, given(1), r)
}
