//! The kernel that takes gradients back through steps of a recurrence.

use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::recurrent::gates::State;
use crate::recurrent::steps::StepTable;
use crate::recurrent::units::{Recurrence, Unit};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, Value, Var};

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Backward {
    /// What is computed.
    pub of: Recurrence,
}

parameters! {
    /// Some steps of a recurrence, the last one first.
    pub Backward as s => BackwardArguments, BackwardParameters {
        /// The steps.
        steps: StepTable,
        /// Sequences of which `product` is one.
        multiplied: Option<U32> = s.of.tile.is_none().then_some(()),
        /// The recurrent weight, `[gates * hidden, hidden]`, or the product with it of the gates'
        /// gradients of the step after.
        product: Input = s.of.dtype,
        /// What the recurrence kept of every row.
        kept: Option<Input> = (s.of.cell.kept() > 0).then_some(s.of.dtype),
        /// Every row's state, `[rows, hidden]`, and its gradient.
        output: Input = s.of.dtype,
        grad_output: Input = s.of.dtype,
        /// The states before the first step, `[batch, hidden]`.
        h: Input = s.of.dtype,
        c: Option<Input> = s.of.cell.has_cell_state().then_some(s.of.dtype),
        /// Gradients by the states after these steps.
        grad_h: Input = s.of.dtype,
        grad_c: Option<Input> = s.of.cell.has_cell_state().then_some(s.of.dtype),
        /// Gradients by every row's sums of the gates, `[rows, gates * hidden]`, and by those of
        /// the hidden side.
        grad_gates: Output = s.of.dtype,
        grad_hidden: Option<Output> = s.of.cell.has_sides().then_some(s.of.dtype),
        /// Every row's state before, `[rows, hidden]`.
        before: Output = s.of.dtype,
        /// Gradients by the states before these steps, without `product` of the first one. They may
        /// be those after.
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
        let units = of.units(b, p.steps.batch);
        let product = of.product(b, p.product);
        let grads: Vec<(Var, Option<Var>)> = units
            .iter()
            .map(|unit| {
                let at = of.state(unit);
                (b.var(p.grad_h.load(at)), p.grad_c.map(|c| b.var(c.load(at))))
            })
            .collect();
        if let Some(multiplied) = p.multiplied {
            for (unit, (h, _)) in units.iter().zip(&grads) {
                b.if_(unit.sequence.lt(multiplied), || h.set(h.get() + p.product.load(of.state(unit))));
            }
        }

        // Numbers of a unit at a step: what was kept, its state, that before, and the gradients
        // that come in.
        let load = |unit: &Unit<'b>, i: Value<'b>| -> Vec<Value<'b>> {
            let (step, before) = (p.steps.step(i), p.steps.before(i));
            let row = step.row(unit.sequence.min(step.active - 1));
            let at = of.place(row, 1, 0, unit.unit);
            let began = unit.sequence.lt(before.active);
            let previous = before.row(unit.sequence.min(before.active.max(1) - 1));
            let state = of.state(unit);
            let mut values = vec![p.output.load(at), p.grad_output.load(at)];
            let h = p.output.load(of.place(previous, 1, 0, unit.unit));
            values.push(began.select(h, p.h.load(state)));
            if let Some(kept) = p.kept {
                values.extend((0..cell.kept()).map(|part| kept.load(of.place(row, cell.kept(), part, unit.unit))));
                if let Some(c) = p.c {
                    let previous = kept.load(of.place(previous, cell.kept(), cell.kept() - 1, unit.unit));
                    values.push(began.select(previous, c.load(state)));
                }
            }
            values
        };
        let cells = |i: Value<'b>, loaded: &[Vec<Value<'b>>]| {
            let step = p.steps.step(i);
            for ((unit, values), (h, c)) in units.iter().zip(loaded).zip(&grads) {
                b.if_(unit.valid & unit.sequence.lt(step.active), || {
                    let (kept, cell_state) = values[3..].split_at(cell.kept() as usize);
                    let before = State { h: values[2], c: cell_state.first().copied() };
                    let grad = State { h: h.get() + values[1], c: c.map(|c| c.get()) };
                    let found = cell.gradient(grad, kept, values[0], before);
                    let row = step.row(unit.sequence);
                    p.before.store(of.place(row, 1, 0, unit.unit), before.h);
                    for (part, (&input, &hidden_side)) in (0..).zip(found.gates.iter().zip(&found.hidden)) {
                        let at = of.place(row, gates, part, unit.unit);
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
            // Loads of the next step go before the product, and are there after it.
            let next: Vec<Vec<Var>> =
                units.iter().map(|unit| load(unit, zero).into_iter().map(|x| b.var(x)).collect()).collect();
            b.for_(0, p.steps.count, 1, |i| {
                let step = p.steps.step(i);
                let loaded: Vec<Vec<Value>> =
                    next.iter().map(|vars| vars.iter().map(|var| var.get()).collect()).collect();
                cells(i, &loaded);
                let following = (i + 1).min(p.steps.count - 1);
                for (unit, vars) in units.iter().zip(&next) {
                    load(unit, following).into_iter().zip(vars).for_each(|(value, var)| var.set(value));
                }
                // The first sequence of a workgroup is its longest.
                b.if_(of.first(b).lt(step.active), || {
                    b.barrier();
                    product.multiply();
                    b.barrier();
                    for (unit, (h, _)) in units.iter().zip(&grads) {
                        b.if_(unit.valid & unit.sequence.lt(step.active), || {
                            h.set(h.get() + unit.get(product, hidden, 0));
                        });
                    }
                });
            });
        } else {
            b.for_(0, p.steps.count, 1, |i| {
                let loaded: Vec<Vec<Value>> = units.iter().map(|unit| load(unit, i)).collect();
                cells(i, &loaded);
            });
        }

        for (unit, (h, c)) in units.iter().zip(&grads) {
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
