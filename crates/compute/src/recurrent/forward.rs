//! The kernel that takes sequences through steps of a recurrence.

use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::recurrent::gates::State;
use crate::recurrent::steps::StepTable;
use crate::recurrent::units::Recurrence;
use dml_engine::parameters;
use dml_kernel::{Builder, Value, Var, convert};

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    /// What is computed.
    pub of: Recurrence,
    /// A bias is added on the hidden side.
    pub biased: bool,
    /// What the gradient needs is kept.
    pub keeps: bool,
}

parameters! {
    /// Some steps of a recurrence.
    pub Forward as s => ForwardArguments, ForwardParameters {
        /// The steps.
        steps: StepTable,
        /// Every row's products of the input, `[rows, gates * hidden]`.
        gates: Input = s.of.dtype,
        /// The recurrent weight, transposed, `[hidden, gates * hidden]`, or the states' product
        /// with it.
        product: Input = s.of.dtype,
        /// The hidden side's bias, `[gates * hidden]`.
        bias: Option<Input> = s.biased.then_some(s.of.dtype),
        /// The states before, `[batch, hidden]`.
        h: Input = s.of.dtype,
        c: Option<Input> = s.of.cell.has_cell_state().then_some(s.of.dtype),
        /// Every row's state, `[rows, hidden]`.
        output: Output = s.of.dtype,
        /// What is kept of every row.
        kept: Option<Output> = s.keeps.then_some(s.of.dtype),
        /// The states after. They may be those before.
        last_h: Output = s.of.dtype,
        last_c: Option<Output> = s.of.cell.has_cell_state().then_some(s.of.dtype),
    }
}

impl KernelSpec for Forward {
    fn name(&self) -> &'static str {
        if self.of.tile.is_some() { "recurrence" } else { "recurrence step" }
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.of.threads(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let Recurrence { cell, dtype, hidden, .. } = self.of;
        let (of, gates) = (&self.of, cell.gates());
        let units = of.units(b, p.steps.batch);
        let product = of.product(b, p.product);
        let states: Vec<(Var, Option<Var>)> = units
            .iter()
            .map(|unit| {
                let at = of.state(unit);
                let h = p.h.load(at);
                if let Some(product) = &product {
                    unit.set(b, product, hidden, 0, unit.valid.select(h, h.like(0.0)));
                }
                (b.var(h), p.c.map(|c| b.var(c.load(at))))
            })
            .collect();
        let zero = b.constant_of(dtype.compute(), 0.0);
        let gates_of = |load: &dyn Fn(u32) -> Value<'b>| (0..gates).map(load).collect::<Vec<_>>();
        let biases: Vec<Vec<Value>> = units
            .iter()
            .map(|unit| gates_of(&|gate| p.bias.map_or(zero, |bias| bias.load(unit.unit + gate * hidden))))
            .collect();
        if product.is_some() {
            b.barrier();
        }

        b.for_(0, p.steps.count, 1, |i| {
            let step = p.steps.step(i);
            // Asked for before the product, these are there after it.
            let inputs: Vec<Vec<Value>> = units
                .iter()
                .map(|unit| {
                    let row = step.row(unit.sequence.min(step.active - 1));
                    gates_of(&|gate| p.gates.load(of.place(row, gates, gate, unit.unit)))
                })
                .collect();
            let cells = || {
                for (((unit, input), bias), (h, c)) in units.iter().zip(&inputs).zip(&biases).zip(&states) {
                    b.if_(unit.valid & unit.sequence.lt(step.active), || {
                        let multiplied = gates_of(&|gate| match &product {
                            Some(product) => unit.get(product, hidden, gate),
                            None => p.product.load(of.place(unit.sequence, gates, gate, unit.unit)),
                        });
                        let sums: Vec<Value> = multiplied.iter().zip(bias).map(|(&x, &bias)| x + bias).collect();
                        let before = State { h: h.get(), c: c.map(|c| c.get()) };
                        let (after, kept) = cell.step(input, &sums, before, |x| convert(x, dtype));
                        let row = step.row(unit.sequence);
                        p.output.store(of.place(row, 1, 0, unit.unit), after.h);
                        if let Some(memory) = p.kept {
                            for (part, value) in (0..).zip(kept) {
                                memory.store(of.place(row, cell.kept(), part, unit.unit), value);
                            }
                        }
                        h.set(after.h);
                        if let (Some(c), Some(after)) = (c, after.c) {
                            c.set(after);
                        }
                        if let Some(product) = &product {
                            unit.set(b, product, hidden, 0, after.h);
                        }
                    });
                }
            };
            let Some(product) = &product else { return cells() };
            // The first sequence of a workgroup is its longest.
            b.if_(of.first(b).lt(step.active), || {
                product.multiply();
                b.barrier();
                cells();
                b.barrier();
            });
        });

        for (unit, (h, c)) in units.iter().zip(&states) {
            b.if_(unit.valid, || {
                let at = of.state(unit);
                p.last_h.store(at, h.get());
                if let (Some(memory), Some(c)) = (p.last_c, c) {
                    memory.store(at, c.get());
                }
            });
        }
    }
}
