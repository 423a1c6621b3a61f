//! The recurrence of one layer in one direction, and its gradient. What does not depend on other
//! steps is computed by products over all steps: the input's product before the recurrence, and the
//! gradients of input and weights after it.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::product::Product;
use crate::movement::copy::as_contiguous;
use crate::recurrent::gates::Cell;
use crate::recurrent::plan::{Loop, plan};
use crate::recurrent::steps::Steps;
use crate::recurrent::units::Recurrence;
use crate::recurrent::{backward, forward};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::Verdict;
use dml_kernel::dense;

/// One layer in one direction.
pub struct Layer<'t> {
    /// What happens at a step.
    pub cell: Cell,
    /// The steps.
    pub steps: Steps,
    /// The recurrent weight, `[gates * hidden, hidden]`.
    pub weight: &'t View,
}

impl Layer<'_> {
    /// What launches over `rows` rows have in common.
    fn recurrence(&self, rows: i64) -> Recurrence {
        let (cell, hidden) = (self.cell, self.weight.sizes[1]);
        let widest = rows.max(self.steps.batch().into()) * hidden * i64::from(cell.gates().max(cell.saved_values()));
        Recurrence { cell, dtype: self.weight.dtype, index: index_type(widest), hidden: hidden as u32, tile: None }
    }

    /// Takes the sequences through all steps.
    pub fn run(&self, cx: &Context, operands: &forward::Operands) -> Result<()> {
        let Layer { steps, weight, .. } = self;
        let of = self.recurrence(operands.output.sizes[0]);
        let (batch, wide) = (i64::from(steps.batch()), weight.sizes[0]);
        let transposed = weight.transpose(0, 1);
        // Transposed, it lies as it did or is a new tensor, whose address is a multiple of any
        // access.
        let address = if transposed.is_contiguous() { weight.data } else { 0 };
        if let Some(found) = plan(cx, steps.batch(), [of.hidden, wide as u32], of.dtype, address) {
            let of = Recurrence { tile: Some(found.tile), ..of };
            let loops = |cx: &Context| {
                let matrix = as_contiguous(cx, &transposed)?;
                launches(steps, &found)
                    .try_for_each(|range| operands.run(cx, of, steps, &matrix, range, found.groups(steps.batch())))
            };
            if cx.run_if_accepted(Verdict::Optimised, loops)? {
                return Ok(());
            }
        }
        let groups = dense::groups((batch * i64::from(of.hidden)) as u64);
        for i in 0..steps.count() {
            let active = i64::from(steps.active(i));
            let h = if i > 0 { operands.last_h } else { operands.h };
            let product = cx.empty(of.dtype, &[active, wide])?;
            Product::new(&h.narrow(0, 0, active), &transposed).run(cx, &product)?;
            operands.run(cx, of, steps, &product, (i, 1), groups)?;
        }
        Ok(())
    }

    /// Takes gradients back through all steps; the weight is contiguous.
    pub fn gradients(&self, cx: &Context, operands: &backward::Operands) -> Result<()> {
        let Layer { steps, weight, .. } = self;
        let of = self.recurrence(operands.output.sizes[0]);
        let (batch, wide, hidden) = (steps.batch(), weight.sizes[0], weight.sizes[1]);
        if let Some(found) = plan(cx, batch, [wide as u32, of.hidden], of.dtype, weight.data) {
            let of = Recurrence { tile: Some(found.tile), ..of };
            let loops = |cx: &Context| {
                launches(steps, &found).rev().try_for_each(|(first, count)| {
                    let end = first + count == steps.count();
                    operands.run(cx, of, steps, weight, None, (first, count, end), found.groups(batch))
                })
            };
            if cx.run_if_accepted(Verdict::Optimised, loops)? {
                return Ok(());
            }
        }
        let groups = dense::groups((i64::from(batch) * hidden) as u64);
        let gradients = operands.grad_hidden.unwrap_or(operands.grad_gates);
        // The product of the step after, and the last launch has none of its own.
        let mut product: Option<View> = None;
        for i in (0..steps.count()).rev() {
            let end = i + 1 == steps.count();
            let multiplied = steps.active(i + 1);
            let after = product.as_ref().unwrap_or(operands.grad_h);
            operands.run(cx, of, steps, after, Some(multiplied), (i, 1, end), groups)?;
            let (active, (first, apart)) = (i64::from(steps.active(i)), steps.rows(i));
            let of_step = gradients.as_strided(&[active, wide], &[apart * wide, 1], first * wide);
            let next = cx.empty(of.dtype, &[active, hidden])?;
            Product::new(&of_step, weight).run(cx, &next)?;
            product = Some(next);
        }
        if let Some(product) = product {
            operands.run(cx, of, steps, &product, Some(steps.active(0)), (0, 0, false), groups)?;
        }
        Ok(())
    }
}

/// The ranges of steps of the launches that loop.
fn launches(steps: &Steps, found: &Loop) -> impl DoubleEndedIterator<Item = (usize, usize)> + use<> {
    let (all, most) = (steps.count(), found.steps);
    (0..all.div_ceil(most)).map(move |i| (i * most, most.min(all - i * most)))
}

#[cfg(test)]
mod tests {
    use crate::primitives::kernel::KernelSpec;
    use crate::primitives::validate::accepted;
    use crate::recurrent::backward::Backward;
    use crate::recurrent::forward::Forward;
    use crate::recurrent::gates::Cell;
    use crate::recurrent::row_product::Tile;
    use crate::recurrent::units::Recurrence;
    use dml_kernel::{DType, ScalarType};

    #[test]
    fn kernels_are_valid() {
        for (cell, dtype, index, hidden, register_vectors) in [
            (Cell::Lstm, DType::F32, ScalarType::U32, 32, 1),
            (Cell::Gru, DType::BF16, ScalarType::U64, 7, 0),
            (Cell::Tanh, DType::F64, ScalarType::U32, 5, 4),
            (Cell::Relu, DType::F16, ScalarType::U32, 300, 0),
        ] {
            let of = Recurrence { cell, dtype, index, hidden, tile: None };
            let n = hidden * cell.gates();
            let width = if n % 4 == 0 { 4 } else { 1 };
            let tile = |k, n| Some(Tile { threads: 96, rows: 2, k, n, width, register_vectors });
            for (forth, back) in [(None, None), (tile(hidden, n), tile(n, hidden).filter(|_| hidden % width == 0))] {
                for biased in [false, true] {
                    let of = Recurrence { tile: forth, ..of };
                    accepted(&Forward { of, biased, saves_for_backward: biased && cell.saved_values() > 0 }.build());
                }
                accepted(&Backward { of: Recurrence { tile: back, ..of } }.build());
            }
        }
    }
}
