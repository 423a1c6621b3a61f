//! The kernel for the gradient of steps of a recurrence.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::recurrent::gates::State;
use crate::recurrent::steps::{StepRange, StepTable, Steps};
use crate::recurrent::units::{HiddenUnit, Recurrence};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, Value, Var};

/// The operands of a recurrence's gradient, contiguous and of its dtype. `rows` are the steps of
/// all sequences.
pub struct Operands<'t> {
    /// The values saved for every row, `[rows, saved_values * hidden]`.
    pub saved: Option<&'t View>,
    /// Every row's hidden state, `[rows, hidden]`.
    pub output: &'t View,
    /// The gradient of every row's hidden state, `[rows, hidden]`.
    pub grad_output: &'t View,
    /// The hidden states before the first step, `[batch, hidden]`.
    pub h: &'t View,
    /// The cell states before the first step, `[batch, hidden]`.
    pub c: Option<&'t View>,
    /// The gradient of the hidden states after the last step, `[batch, hidden]`.
    pub grad_h: &'t View,
    /// The gradient of the cell states after the last step, `[batch, hidden]`.
    pub grad_c: Option<&'t View>,
    /// Result: the gradient of every row's sums of the gates, `[rows, gates * hidden]`.
    pub grad_gates: &'t View,
    /// Result: the gradient of the hidden side's sums, if it differs, `[rows, gates * hidden]`.
    pub grad_hidden: Option<&'t View>,
    /// Result: every row's hidden state before its step, `[rows, hidden]`.
    pub before: &'t View,
    /// Result: the gradient of the hidden states before the first step, `[batch, hidden]`.
    pub first_h: &'t View,
    /// Result: the gradient of the cell states before the first step, `[batch, hidden]`.
    pub first_c: Option<&'t View>,
}

impl Operands<'_> {
    /// Computes gradients of `count` steps, the lowest of which is `first`; `end` if the last step
    /// is among them. `product` is the recurrent weight, `[gates * hidden, hidden]`, if `of` has a
    /// tile; otherwise the product of the weight with the gates' gradients of the next step, for
    /// the first `multiplied` sequences.
    pub(super) fn run(
        &self,
        cx: &Context,
        of: Recurrence,
        steps: &Steps,
        product: &View,
        multiplied: Option<u32>,
        (first, count, end): (usize, usize, bool),
        groups: [u32; 3],
    ) -> Result<()> {
        let words = steps.reversed_table(first, count.max(1));
        let arguments = BackwardArguments {
            steps: StepRange { words: &words, count, steps },
            multiplied,
            product,
            saved: self.saved,
            output: self.output,
            grad_output: self.grad_output,
            h: self.h,
            c: self.c,
            grad_h: if end { self.grad_h } else { self.first_h },
            grad_c: if end { self.grad_c } else { self.first_c },
            grad_gates: self.grad_gates,
            grad_hidden: self.grad_hidden,
            before: self.before,
            first_h: self.first_h,
            first_c: self.first_c,
        };
        cx.run(&Backward { of }, &arguments, groups)
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backward {
    /// The recurrence.
    pub(super) of: Recurrence,
}

parameters! {
    /// Some steps of a recurrence, the last one first.
    pub(super) Backward as s => BackwardArguments, BackwardParameters {
        /// The steps.
        steps: StepTable,
        /// Number of sequences for which `product` is valid.
        multiplied: Option<U32> = s.of.tile.is_none().then_some(()),
        /// The recurrent weight, `[gates * hidden, hidden]`, or its product with the gates'
        /// gradients of the next step.
        product: Input = s.of.dtype,
        /// The values saved for every row.
        saved: Option<Input> = (s.of.cell.saved_values() > 0).then_some(s.of.dtype),
        /// Every row's state, `[rows, hidden]`, and its gradient.
        output: Input = s.of.dtype,
        grad_output: Input = s.of.dtype,
        /// The states before the first step, `[batch, hidden]`.
        h: Input = s.of.dtype,
        c: Option<Input> = s.of.cell.has_cell_state().then_some(s.of.dtype),
        /// Gradients with respect to the states after these steps.
        grad_h: Input = s.of.dtype,
        grad_c: Option<Input> = s.of.cell.has_cell_state().then_some(s.of.dtype),
        /// Gradients with respect to every row's sums of the gates, `[rows, gates * hidden]`, and
        /// to the sums of the hidden side.
        grad_gates: Output = s.of.dtype,
        grad_hidden: Option<Output> = s.of.cell.has_sides().then_some(s.of.dtype),
        /// Every row's previous state, `[rows, hidden]`.
        before: Output = s.of.dtype,
        /// Gradients with respect to the states before these steps, without `product` of the first
        /// one. They may share memory with the gradients of the states after.
        first_h: Output = s.of.dtype,
        first_c: Option<Output> = s.of.cell.has_cell_state().then_some(s.of.dtype),
    }
}

impl KernelSpec for Backward {
    fn name(&self) -> &'static str {
        if self.of.tile.is_some() { "recurrence_backward" } else { "recurrence_backward step" }
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.of.threads(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: BackwardParameters<'b>) {
        let Recurrence { cell, hidden, .. } = self.of;
        let (of, gates) = (&self.of, cell.gates());
        let hidden_units = of.hidden_units(b, p.steps.batch);
        let product = of.product(b, p.product);
        let grads: Vec<(Var, Option<Var>)> = hidden_units
            .iter()
            .map(|unit| {
                let at = of.state(unit);
                (b.var(p.grad_h.load(at)), p.grad_c.map(|c| b.var(c.load(at))))
            })
            .collect();
        if let Some(multiplied) = p.multiplied {
            for (unit, (h, _)) in hidden_units.iter().zip(&grads) {
                b.if_(unit.sequence.lt(multiplied), || h.set(h.get() + p.product.load(of.state(unit))));
            }
        }

        // The values of a unit at a step: saved values, state, previous state, and incoming
        // gradients.
        let load = |unit: &HiddenUnit<'b>, i: Value<'b>| -> Vec<Value<'b>> {
            let (step, before) = (p.steps.step(i), p.steps.before(i));
            let row = step.row(unit.sequence.min(step.active - 1));
            let at = of.offset(row, 1, 0, unit.unit);
            let began = unit.sequence.lt(before.active);
            let previous = before.row(unit.sequence.min(before.active.max(1) - 1));
            let state = of.state(unit);
            let mut values = vec![p.output.load(at), p.grad_output.load(at)];
            let h = p.output.load(of.offset(previous, 1, 0, unit.unit));
            values.push(began.select(h, p.h.load(state)));
            if let Some(saved) = p.saved {
                values.extend(
                    (0..cell.saved_values())
                        .map(|part| saved.load(of.offset(row, cell.saved_values(), part, unit.unit))),
                );
                if let Some(c) = p.c {
                    let previous =
                        saved.load(of.offset(previous, cell.saved_values(), cell.saved_values() - 1, unit.unit));
                    values.push(began.select(previous, c.load(state)));
                }
            }
            values
        };
        let cells = |i: Value<'b>, loaded: &[Vec<Value<'b>>]| {
            let step = p.steps.step(i);
            for ((unit, values), (h, c)) in hidden_units.iter().zip(loaded).zip(&grads) {
                b.if_(unit.valid & unit.sequence.lt(step.active), || {
                    let (saved, cell_state) = values[3..].split_at(cell.saved_values() as usize);
                    let before = State { h: values[2], c: cell_state.first().copied() };
                    let grad = State { h: h.get() + values[1], c: c.map(|c| c.get()) };
                    let found = cell.gradient(grad, saved, values[0], before);
                    let row = step.row(unit.sequence);
                    p.before.store(of.offset(row, 1, 0, unit.unit), before.h);
                    for (part, (&input, &hidden_side)) in (0..).zip(found.gates.iter().zip(&found.hidden)) {
                        let at = of.offset(row, gates, part, unit.unit);
                        p.grad_gates.store(at, input);
                        if let Some(memory) = p.grad_hidden {
                            memory.store(at, hidden_side);
                        }
                        if let Some(product) = &product {
                            unit.set(b, product, hidden, part, hidden_side);
                        }
                    }
                    h.set(found.before.h);
                    if let (Some(c), Some(before)) = (c, found.before.c) {
                        c.set(before);
                    }
                });
            }
        };

        if let Some(product) = &product {
            let zero = b.u32(0);
            // The next step's loads are issued before the product, which hides their latency.
            let next: Vec<Vec<Var>> =
                hidden_units.iter().map(|unit| load(unit, zero).into_iter().map(|x| b.var(x)).collect()).collect();
            b.for_(0, p.steps.count, 1, |i| {
                let step = p.steps.step(i);
                let loaded: Vec<Vec<Value>> =
                    next.iter().map(|vars| vars.iter().map(|var| var.get()).collect()).collect();
                cells(i, &loaded);
                let following = (i + 1).min(p.steps.count - 1);
                for (unit, vars) in hidden_units.iter().zip(&next) {
                    load(unit, following).into_iter().zip(vars).for_each(|(value, var)| var.set(value));
                }
                // The first sequence of a workgroup is its longest.
                b.if_(of.first(b).lt(step.active), || {
                    b.barrier();
                    product.multiply();
                    b.barrier();
                    for (unit, (h, _)) in hidden_units.iter().zip(&grads) {
                        b.if_(unit.valid & unit.sequence.lt(step.active), || {
                            h.set(h.get() + unit.get(product, hidden, 0));
                        });
                    }
                });
            });
        } else {
            b.for_(0, p.steps.count, 1, |i| {
                let loaded: Vec<Vec<Value>> = hidden_units.iter().map(|unit| load(unit, i)).collect();
                cells(i, &loaded);
            });
        }

        for (unit, (h, c)) in hidden_units.iter().zip(&grads) {
            b.if_(unit.valid, || {
                let at = of.state(unit);
                p.first_h.store(at, h.get());
                if let (Some(memory), Some(c)) = (p.first_c, c) {
                    memory.store(at, c.get());
                }
            });
        }
    }
}
