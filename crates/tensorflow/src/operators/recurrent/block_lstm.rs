//! LSTM cells whose gates are results of their own: `LSTMBlockCell` for a step, `BlockLSTM` for
//! all.
//!
//! The weights of input and states are one matrix, `[width + units, 4 * units]`. Peepholes let the
//! gates see the cell's state.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::regions::{fill, reshaped};
use crate::require;
use dml_compute::functions;
use dml_compute::matmul::product::Product;
use dml_compute::movement::copy::device_copy;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_into;
use dml_compute::{Context, Scalar, View};
use dml_kernel::math::comparison::{maximum, minimum};
use dml_kernel::{DType, Value, math};

/// `x` held within `-limit` and `limit`, if that is above 0.
fn held<'b>(x: Value<'b>, limit: Value<'b>) -> Value<'b> {
    limit.gt(0.0).select(minimum(maximum(x, -limit), limit), x)
}

/// A step, of the sums of its gates in the order input, cell, forget, output. Results: the gates of
/// input, the cell's state, the gates of forgetting and of output, the cell's input, the state's
/// hyperbolic tangent, the output.
fn step<'b>(
    [i, c, f, o, before]: [Value<'b>; 5],
    [of_i, of_f, of_o]: [Value<'b>; 3],
    [forget_bias, limit]: [Value<'b>; 2],
) -> [Value<'b>; 7] {
    let i = math::sigmoid(i + of_i * before);
    let f = math::sigmoid(f + forget_bias + of_f * before);
    let c = math::tanh(c);
    let state = held(c * i + before * f, limit);
    let o = math::sigmoid(o + of_o * state);
    let bounded = math::tanh(state);
    [i, state, f, o, c, bounded, o * bounded]
}

/// The gradients of a step: of the sums of its gates, of the state before, and of the peepholes.
fn step_gradient<'b>(
    [i, state, f, o, c, bounded, before]: [Value<'b>; 7],
    [grad_state, grad_output]: [Value<'b>; 2],
    [of_i, of_f, of_o]: [Value<'b>; 3],
) -> [Value<'b>; 8] {
    let to_o = o * (1.0 - o) * grad_output * bounded;
    let to_state = (1.0 - bounded * bounded) * grad_output * o + grad_state + to_o * of_o;
    let to_c = (1.0 - c * c) * to_state * i;
    let to_f = f * (1.0 - f) * to_state * before;
    let to_i = i * (1.0 - i) * to_state * c;
    let to_before = to_state * f + to_i * of_i + to_f * of_f;
    [to_i, to_c, to_f, to_o, to_before, to_i * before, to_f * before, to_o * state]
}

functions! {
    /// See [`step`].
    STEP = "tf_block_lstm"(i, c, f, o, before, of_i, of_f, of_o, forget_bias, limit) => {
        step([i, c, f, o, before], [of_i, of_f, of_o], [forget_bias, limit])
    };
    /// See [`step_gradient`].
    STEP_GRADIENT = "tf_block_lstm_gradient"(
        i, state, f, o, c, bounded, before, grad_state, grad_output, of_i, of_f, of_o
    ) => step_gradient([i, state, f, o, c, bounded, before], [grad_state, grad_output], [of_i, of_f, of_o]);
}

/// The places of the gates input, cell, forget and output in the matrix of weights.
#[derive(Copy, Clone)]
struct Layout([i64; 4]);

/// Input, cell, forget, output.
const ICFO: Layout = Layout([0, 1, 2, 3]);

/// Input, forget, cell, output.
const IFCO: Layout = Layout([0, 2, 1, 3]);

impl Layout {
    /// The gates in `[rows, 4 * units]`.
    fn gates(self, t: &View, units: i64) -> [View; 4] {
        self.0.map(|place| t.narrow(1, place * units, units))
    }
}

/// What a node says.
#[derive(Copy, Clone)]
struct Cell {
    layout: Layout,
    forget_bias: f32,
    limit: f32,
    has_peepholes: bool,
}

impl Cell {
    fn new(attributes: &Attributes, layout: Layout) -> Result<Self> {
        let float = |name| if attributes.has(name)? { attributes.float(name) } else { Ok(0.0) };
        Ok(Self {
            layout,
            forget_bias: float("forget_bias")?,
            limit: float("cell_clip")?,
            has_peepholes: attributes.bool("use_peephole")?,
        })
    }
}

/// The arguments of the operators, from an input on: `x`, the states before, the weights, the
/// peepholes and the biases.
struct Given {
    /// `[steps, batch, width]`
    x: View,
    /// `[batch, units]`, as `h`.
    state: View,
    h: View,
    weights: View,
    peepholes: Vec<View>,
    bias: View,
    width: i64,
    units: i64,
    batch: i64,
}

impl Given {
    fn of(call: &Call, first: usize) -> Result<Self> {
        let input = |i: usize| call.input(first + i);
        let (x, state, h, weights, bias) = (input(0)?, input(1)?, input(2)?, input(3)?, input(7)?);
        require!(matches!(x.dim(), 2 | 3) && state.dim() == 2, "x is {:?}, cs_prev is {:?}", x.sizes, state.sizes);
        let x = if x.dim() == 2 { reshaped(&x, &[1, x.sizes[0], x.sizes[1]]) } else { x };
        let (batch, units, width) = (state.sizes[0], state.sizes[1], x.sizes[2]);
        require!(
            x.sizes[1] == batch && h.sizes == state.sizes,
            "x.dims(0) != cs_prev.dims(0): {} vs. {batch}, h_prev is {:?}",
            x.sizes[1],
            h.sizes
        );
        require!(
            weights.sizes[..] == [width + units, 4 * units] && bias.sizes[..] == [4 * units],
            "w is {:?} and b {:?}, of {width} inputs and {units} units",
            weights.sizes,
            bias.sizes
        );
        let peepholes = (4..7).map(input).collect::<Result<Vec<_>>>()?;
        Ok(Self { x, state, h, weights, peepholes, bias, width, units, batch })
    }

    /// The weights of the input, and those of the states.
    fn parts(&self) -> [View; 2] {
        [self.weights.narrow(0, 0, self.width), self.weights.narrow(0, self.width, self.units)]
    }

    /// The peepholes as operands; without any they are 0.
    fn peephole_operands(&self, cell: Cell) -> Result<Vec<Input>> {
        if !cell.has_peepholes {
            return Ok(vec![self.number(0.0); 3]);
        }
        for t in &self.peepholes {
            require!(t.sizes[..] == [self.units], "a peephole is {:?}, of {} units", t.sizes, self.units);
        }
        Ok(self.peepholes.iter().map(|t| Input::Tensor(t.expand(&self.state.sizes))).collect())
    }

    fn number(&self, number: f32) -> Input {
        Input::Number(Scalar::Double(number.into()), self.x.dtype)
    }
}

/// The first rows of a tensor, whose rows are its last dimension.
fn rows_of(t: &View, rows: i64) -> View {
    let width = t.sizes[t.dim() - 1];
    t.as_strided(&[rows, width], &[width, 1], 0)
}

fn tensors(views: &[View]) -> impl Iterator<Item = Input> + '_ {
    views.iter().cloned().map(Input::Tensor)
}

/// The steps of a call: those that input 0 says, if there are several; `first` is the input of `x`.
fn steps(call: &Call, first: usize, given: &Given) -> Result<i64> {
    if first == 0 {
        return Ok(1);
    }
    let (most, all) = (call.host_number(0)?.to_i64(), given.x.sizes[0]);
    require!((0..=all).contains(&most), "seq_len_max must be between 0 and {all}, but is {most}");
    Ok(most)
}

/// The operators of gates.
fn forward(call: &Call, cell: Cell, first: usize) -> Result<()> {
    let given = Given::of(call, first)?;
    let (cx, units, batch) = (call.cx(), given.units, given.batch);
    let sizes = if first == 0 { vec![batch, units] } else { vec![given.x.sizes[0], batch, units] };
    let outputs = (0..7).map(|i| call.output(i, &sizes)).collect::<Result<Vec<_>>>()?;
    let steps = steps(call, first, &given)?;
    if steps < given.x.sizes[0] {
        outputs.iter().try_for_each(|out| fill(call, out, Scalar::Int(0)))?;
    }
    if steps * batch * units == 0 {
        return Ok(());
    }
    let sums = cx.empty(given.x.dtype, &[steps * batch, 4 * units])?;
    let [of_input, of_states] = given.parts();
    let input = rows_of(&given.x, steps * batch);
    Product::new(&input, &of_input).with(given.bias.expand(&sums.sizes)).run(&cx, &sums)?;
    let peepholes = given.peephole_operands(cell)?;
    let at = |t: &View, step: i64| rows_of(t, given.x.sizes[0] * batch).narrow(0, step * batch, batch);
    let (mut state, mut h) = (given.state.clone(), given.h.clone());
    for step in 0..steps {
        let own = sums.narrow(0, step * batch, batch);
        Product::new(&h, &of_states).with(own.clone()).run(&cx, &own)?;
        let results: Vec<View> = outputs.iter().map(|out| at(out, step)).collect();
        let numbers = [given.number(cell.forget_bias), given.number(cell.limit)];
        let operands: Vec<Input> = tensors(&cell.layout.gates(&own, units))
            .chain([Input::Tensor(state)])
            .chain(peepholes.iter().cloned())
            .chain(numbers)
            .collect();
        kernel::run(&cx, &STEP, &results.iter().collect::<Vec<_>>(), &operands, given.x.dtype)?;
        (state, h) = (results[1].clone(), results[6].clone());
    }
    Ok(())
}

/// What the steps backwards write: the gradients of the sums of all gates, and what the peepholes'
/// gradients are sums of.
struct Backward {
    sums: View,
    peepholes: [View; 3],
}

impl Backward {
    fn new(cx: &Context, given: &Given, rows: i64) -> Result<Self> {
        let empty = |width: i64| cx.empty(given.x.dtype, &[rows, width]);
        let units = given.units;
        Ok(Self { sums: empty(4 * units)?, peepholes: [empty(units)?, empty(units)?, empty(units)?] })
    }

    /// A step: `kept` are the gates of input, the state, the gates of forgetting and of output, the
    /// cell's input, the bounded state, and the state before; `gradients` of the state and of the
    /// output.
    fn step(
        &self,
        cx: &Context,
        (cell, given): (Cell, &Given),
        (kept, gradients): ([View; 7], [View; 2]),
        (row, to_before): (i64, &View),
    ) -> Result<()> {
        let own = |t: &View| t.narrow(0, row, given.batch);
        let mut results = cell.layout.gates(&own(&self.sums), given.units).to_vec();
        results.push(to_before.clone());
        results.extend(self.peepholes.iter().map(own));
        let operands: Vec<Input> =
            tensors(&kept).chain(tensors(&gradients)).chain(given.peephole_operands(cell)?).collect();
        Ok(kernel::run(cx, &STEP_GRADIENT, &results.iter().collect::<Vec<_>>(), &operands, given.x.dtype)?)
    }

    /// Writes the gradients of the peepholes, which are 0 without any.
    fn write_peepholes(&self, call: &Call, cell: Cell, outputs: &[View]) -> Result<()> {
        for (terms, out) in self.peepholes.iter().zip(outputs) {
            if cell.has_peepholes {
                sum_into(&call.cx(), terms, out, Axes::of_dims(&[0], 2, false))?;
            } else {
                fill(call, out, Scalar::Int(0))?;
            }
        }
        Ok(())
    }
}

/// `LSTMBlockCellGrad`.
fn cell_gradient(call: &Call, cell: Cell) -> Result<()> {
    let given = Given::of(call, 0)?;
    let (batch, units) = (given.batch, given.units);
    let kept = (8..14).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    let gradients = [call.input(14)?, call.input(15)?];
    require!(
        kept.iter().chain(&gradients).all(|t| t.sizes == given.state.sizes),
        "{}: the gates and the gradients must be {:?}",
        call.operator(),
        given.state.sizes
    );
    let to_before = call.output(0, &[batch, units])?;
    let sums = call.output(1, &[batch, 4 * units])?;
    let outputs = (2..5).map(|i| call.output(i, &[units])).collect::<Result<Vec<_>>>()?;
    if batch * units == 0 {
        return outputs.iter().try_for_each(|out| fill(call, out, Scalar::Int(0)));
    }
    let cx = call.cx();
    let backward = Backward { sums, ..Backward::new(&cx, &given, batch)? };
    let [i, state, f, o, c, bounded] = [0, 1, 2, 3, 4, 5].map(|k: usize| kept[k].clone());
    let kept = [i, state, f, o, c, bounded, given.state.clone()];
    backward.step(&cx, (cell, &given), (kept, gradients), (0, &to_before))?;
    backward.write_peepholes(call, cell, &outputs)
}

/// `BlockLSTMGrad`.
fn gradient(call: &Call, cell: Cell) -> Result<()> {
    let given = Given::of(call, 1)?;
    let (cx, batch, units) = (call.cx(), given.batch, given.units);
    let kept = (9..18).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    let sizes = [given.x.sizes[0], batch, units];
    require!(
        kept.iter().all(|t| t.sizes[..] == sizes),
        "{}: the gates and the gradients must be {sizes:?}",
        call.operator()
    );
    let steps = steps(call, 1, &given)?;
    let (to_x, to_state) = (call.output(0, &given.x.sizes)?, call.output(1, &given.state.sizes)?);
    let (to_h, to_weights) = (call.output(2, &given.h.sizes)?, call.output(3, &given.weights.sizes)?);
    let to_peepholes = (4..7).map(|i| call.output(i, &[units])).collect::<Result<Vec<_>>>()?;
    let to_bias = call.output(7, &given.bias.sizes)?;
    for out in [&to_x, &to_state, &to_h, &to_weights, &to_bias].into_iter().chain(&to_peepholes) {
        fill(call, out, Scalar::Int(0))?;
    }
    let rows = steps * batch;
    if rows * units == 0 {
        return Ok(());
    }
    let backward = Backward::new(&cx, &given, rows)?;
    let [of_input, of_states] = given.parts();
    let at = |t: &View, step: i64| rows_of(t, given.x.sizes[0] * batch).narrow(0, step * batch, batch);
    // The outputs before each step.
    let before = cx.empty(given.x.dtype, &[rows, units])?;
    device_copy(&cx, &given.h, &before.narrow(0, 0, batch))?;
    if steps > 1 {
        let rest = rows - batch;
        device_copy(&cx, &rows_of(&kept[6], rest), &before.narrow(0, batch, rest))?;
    }
    for step in (0..steps).rev() {
        let mut own: Vec<View> = kept[..6].iter().map(|t| at(t, step)).collect();
        own.push(if step == 0 { given.state.clone() } else { at(&kept[1], step - 1) });
        let [i, state, f, o, c, bounded, state_before] = [0, 1, 2, 3, 4, 5, 6].map(|k: usize| own[k].clone());
        let gradients = [(&kept[7], &to_state), (&kept[8], &to_h)].map(|(t, later)| (at(t, step), later.clone()));
        let mut totals = Vec::new();
        for (t, later) in gradients {
            let total = cx.empty(t.dtype, &t.sizes)?;
            let operands = [Input::Tensor(t), Input::Tensor(later)];
            kernel::run(&cx, &dml_compute::pointwise::arithmetic::ADD, &[&total], &operands, total.dtype)?;
            totals.push(total);
        }
        let totals = [totals[0].clone(), totals[1].clone()];
        let of_step = ([i, state, f, o, c, bounded, state_before], totals);
        backward.step(&cx, (cell, &given), of_step, (step * batch, &to_state))?;
        let sums = backward.sums.narrow(0, step * batch, batch);
        Product::new(&sums, &of_states.transpose(0, 1)).run(&cx, &to_h)?;
    }
    let sums = &backward.sums;
    Product::new(sums, &of_input.transpose(0, 1)).run(&cx, &rows_of(&to_x, rows))?;
    let input = rows_of(&given.x, rows);
    Product::new(&input.transpose(0, 1), sums).run(&cx, &to_weights.narrow(0, 0, given.width))?;
    Product::new(&before.transpose(0, 1), sums).run(&cx, &to_weights.narrow(0, given.width, units))?;
    sum_into(&cx, sums, &to_bias, Axes::of_dims(&[0], 2, false))?;
    backward.write_peepholes(call, cell, &to_peepholes)
}

/// An operator of a cell, in a layout of its gates.
fn operator(
    name: &'static str,
    layout: Layout,
    run: impl Fn(&Call, Cell) -> Result<()> + Copy + Send + Sync + 'static,
) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let cell = Cell::new(attributes, layout)?;
        Ok(move |call: &Call| run(call, cell))
    })
    .of("T", &[DType::F32, DType::F16])
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let several = |operator: Operator| operator.on_host(&["seq_len_max"]);
    vec![
        operator("LSTMBlockCell", ICFO, |call: &Call, cell: Cell| forward(call, cell, 0)),
        operator("LSTMBlockCellGrad", ICFO, cell_gradient),
        several(operator("BlockLSTM", ICFO, |call: &Call, cell: Cell| forward(call, cell, 1))),
        several(operator("BlockLSTMV2", IFCO, |call: &Call, cell: Cell| forward(call, cell, 1))),
        several(operator("BlockLSTMGrad", ICFO, gradient)),
        several(operator("BlockLSTMGradV2", IFCO, gradient)),
    ]
}
