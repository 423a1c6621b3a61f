//! The kernel for steps of a recurrence.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::recurrent::gates::State;
use crate::recurrent::steps::{StepRange, StepTable, Steps};
use crate::recurrent::units::Recurrence;
use crate::view::View;
use dml_engine::parameters;
use dml_kernel::{Builder, Value, Var, convert};

/// The operands of a recurrence, contiguous and of its dtype. `rows` are the steps of all
/// sequences.
pub struct Operands<'t> {
    /// Every row's products of the input, `[rows, gates * hidden]`.
    pub gates: &'t View,
    /// The hidden side's bias, `[gates * hidden]`.
    pub bias: Option<&'t View>,
    /// The hidden states before the first step, `[batch, hidden]`.
    pub h: &'t View,
    /// The cell states before the first step, `[batch, hidden]`.
    pub c: Option<&'t View>,
    /// Result: every row's hidden state, `[rows, hidden]`.
    pub output: &'t View,
    /// Result, if requested: the values saved for the gradient of every row,
    /// `[rows, saved_values * hidden]`.
    pub saved: Option<&'t View>,
    /// Result: the hidden states after the last step, `[batch, hidden]`.
    pub last_h: &'t View,
    /// Result: the cell states after the last step, `[batch, hidden]`.
    pub last_c: Option<&'t View>,
}

impl Operands<'_> {
    /// Computes `count` steps from step `first` for all sequences. `product` is the transposed
    /// recurrent weight, `[hidden, gates * hidden]`, if `of` has a tile; otherwise the product of
    /// the states with the weight, and `count` is 1.
    pub(super) fn run(
        &self,
        cx: &Context,
        of: Recurrence,
        steps: &Steps,
        product: &View,
        (first, count): (usize, usize),
        groups: [u32; 3],
    ) -> Result<()> {
        let began = first > 0;
        let arguments = ForwardArguments {
            steps: StepRange { words: &steps.words(first, count), count, steps },
            gates: self.gates,
            product,
            bias: self.bias,
            h: if began { self.last_h } else { self.h },
            c: if began { self.last_c } else { self.c },
            output: self.output,
            saved: self.saved,
            last_h: self.last_h,
            last_c: self.last_c,
        };
        cx.run(
            &Forward { of, biased: self.bias.is_some(), saves_for_backward: self.saved.is_some() },
            &arguments,
            groups,
        )
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Forward {
    /// The recurrence.
    pub(super) of: Recurrence,
    /// A bias is added on the hidden side.
    pub(super) biased: bool,
    /// Values for the gradient are saved.
    pub(super) saves_for_backward: bool,
}

parameters! {
    /// Some steps of a recurrence.
    pub(super) Forward as s => ForwardArguments, ForwardParameters {
        /// The steps.
        steps: StepTable,
        /// Every row's products of the input, `[rows, gates * hidden]`.
        gates: Input = s.of.dtype,
        /// The transposed recurrent weight, `[hidden, gates * hidden]`, or the states' product with
        /// it.
        product: Input = s.of.dtype,
        /// The hidden side's bias, `[gates * hidden]`.
        bias: Option<Input> = s.biased.then_some(s.of.dtype),
        /// The states before, `[batch, hidden]`.
        h: Input = s.of.dtype,
        c: Option<Input> = s.of.cell.has_cell_state().then_some(s.of.dtype),
        /// Every row's state, `[rows, hidden]`.
        output: Output = s.of.dtype,
        /// Values saved for every row.
        saved: Option<Output> = s.saves_for_backward.then_some(s.of.dtype),
        /// The states after. They may share memory with the states before.
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
        let hidden_units = of.hidden_units(b, p.steps.batch);
        let product = of.product(b, p.product);
        let states: Vec<(Var, Option<Var>)> = hidden_units
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
        let biases: Vec<Vec<Value>> = hidden_units
            .iter()
            .map(|unit| gates_of(&|gate| p.bias.map_or(zero, |bias| bias.load(unit.unit + gate * hidden))))
            .collect();
        if product.is_some() {
            b.barrier();
        }

        b.for_(0, p.steps.count, 1, |i| {
            let step = p.steps.step(i);
            // These loads are issued before the product, which hides their latency.
            let inputs: Vec<Vec<Value>> = hidden_units
                .iter()
                .map(|unit| {
                    let row = step.row(unit.sequence.min(step.active - 1));
                    gates_of(&|gate| p.gates.load(of.offset(row, gates, gate, unit.unit)))
                })
                .collect();
            let cells = || {
                for (((unit, input), bias), (h, c)) in hidden_units.iter().zip(&inputs).zip(&biases).zip(&states) {
                    b.if_(unit.valid & unit.sequence.lt(step.active), || {
                        let multiplied = gates_of(&|gate| match &product {
                            Some(product) => unit.get(product, hidden, gate),
                            None => p.product.load(of.offset(unit.sequence, gates, gate, unit.unit)),
                        });
                        let sums: Vec<Value> = multiplied.iter().zip(bias).map(|(&x, &bias)| x + bias).collect();
                        let before = State { h: h.get(), c: c.map(|c| c.get()) };
                        let (after, saved) = cell.step(input, &sums, before, |x| convert(x, dtype));
                        let row = step.row(unit.sequence);
                        p.output.store(of.offset(row, 1, 0, unit.unit), after.h);
                        if let Some(memory) = p.saved {
                            for (part, value) in (0..).zip(saved) {
                                memory.store(of.offset(row, cell.saved_values(), part, unit.unit), value);
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

        for (unit, (h, c)) in hidden_units.iter().zip(&states) {
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
