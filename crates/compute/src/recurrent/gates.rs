//! The elementwise part of a recurrent cell's step, after the matrix products of its gates, and its
//! gradient.
//!
//! The gates of a row are adjacent: input, forget, cell, output for an LSTM (Hochreiter and
//! Schmidhuber, "Long short-term memory", 1997), reset, update, new for a GRU (Cho et al.,
//! "Learning phrase representations using RNN encoder-decoder", 2014), and a single one for Elman's
//! network ("Finding structure in time", 1990).

use dml_kernel::{Value, math};

/// A kind of cell.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Long short-term memory.
    Lstm,
    /// Gated recurrent unit.
    Gru,
    /// Elman's network with a hyperbolic tangent.
    Tanh,
    /// Elman's network with a rectifier.
    Relu,
}

/// The state of one unit.
#[derive(Copy, Clone)]
pub(super) struct State<'b> {
    /// The hidden state, which is the output.
    pub h: Value<'b>,
    /// The cell state of an LSTM.
    pub c: Option<Value<'b>>,
}

/// Gradients with respect to a unit's gates and to its previous state; the latter without the part
/// that goes through the gates' matrix product.
pub(super) struct Gradients<'b> {
    /// With respect to the pre-activations of the gates, on the input's side.
    pub gates: Vec<Value<'b>>,
    /// With respect to the pre-activations of the gates, on the hidden side.
    pub hidden: Vec<Value<'b>>,
    /// With respect to the previous state.
    pub before: State<'b>,
}

impl Cell {
    /// Gates of a unit.
    pub fn gates(self) -> u32 {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }

    /// Numbers that [`step`](Self::step) saves for the gradient of a unit.
    pub fn saved_values(self) -> u32 {
        match self {
            Cell::Lstm => 5,
            Cell::Gru => 4,
            Cell::Tanh | Cell::Relu => 0,
        }
    }

    /// Whether there is a cell state besides the hidden state.
    pub fn has_cell_state(self) -> bool {
        self == Cell::Lstm
    }

    /// Whether the gradients with respect to the gates differ between the input's side and the
    /// hidden side.
    pub fn has_sides(self) -> bool {
        self == Cell::Gru
    }

    /// The next state of a unit, and the numbers to save for its gradient, from both sides'
    /// products with their biases. `round` rounds a number to the states' dtype.
    pub(super) fn step<'b>(
        self,
        input: &[Value<'b>],
        hidden: &[Value<'b>],
        before: State<'b>,
        round: impl Fn(Value<'b>) -> Value<'b>,
    ) -> (State<'b>, Vec<Value<'b>>) {
        let sum = |gate: usize| input[gate] + hidden[gate];
        match self {
            Cell::Lstm => {
                let [i, f, o] = [0, 1, 3].map(|gate| math::sigmoid(sum(gate)));
                let g = math::tanh(sum(2));
                let c = f * before.c.unwrap_or_else(|| i.like(0.0)) + i * g;
                let c = round(c);
                (State { h: round(o * math::tanh(c)), c: Some(c) }, vec![i, f, g, o, c])
            }
            Cell::Gru => {
                let [r, z] = [0, 1].map(|gate| math::sigmoid(sum(gate)));
                let n = math::tanh(input[2] + r * hidden[2]);
                (State { h: round(n + z * (before.h - n)), c: None }, vec![r, z, n, hidden[2]])
            }
            Cell::Tanh => (State { h: round(math::tanh(sum(0))), c: None }, vec![]),
            // Keeps NaN.
            Cell::Relu => {
                let x = sum(0);
                (State { h: round(x.is_below_zero().select(x.like(0.0), x)), c: None }, vec![])
            }
        }
    }

    /// The gradients of a step from the gradients with respect to its results; `saved` are the
    /// values that the step saved, and `h` is its result.
    pub(super) fn gradient<'b>(
        self,
        grad: State<'b>,
        saved: &[Value<'b>],
        h: Value<'b>,
        before: State<'b>,
    ) -> Gradients<'b> {
        let zero = h.like(0.0);
        match self {
            Cell::Lstm => {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| saved[gate]);
                let t = math::tanh(saved[4]);
                let c = grad.h * o * (1.0 - t * t) + grad.c.unwrap_or(zero);
                let gates = vec![
                    of_sigmoid(c * g, i),
                    of_sigmoid(c * before.c.unwrap_or(zero), f),
                    c * i * (1.0 - g * g),
                    of_sigmoid(grad.h * t, o),
                ];
                Gradients { hidden: gates.clone(), gates, before: State { h: zero, c: Some(c * f) } }
            }
            Cell::Gru => {
                let [r, z, n, hidden] = [0, 1, 2, 3].map(|part| saved[part]);
                let update = of_sigmoid(grad.h * (before.h - n), z);
                let new = grad.h * (1.0 - z) * (1.0 - n * n);
                let reset = of_sigmoid(new * hidden, r);
                Gradients {
                    gates: vec![reset, update, new],
                    hidden: vec![reset, update, new * r],
                    before: State { h: grad.h * z, c: None },
                }
            }
            Cell::Tanh | Cell::Relu => {
                let tanh = self == Cell::Tanh;
                let gate = if tanh { grad.h * ((1.0 - h) * (1.0 + h)) } else { h.is_zero().select(zero, grad.h) };
                Gradients { gates: vec![gate], hidden: vec![gate], before: State { h: zero, c: None } }
            }
        }
    }
}

/// The gradient with respect to the argument of a sigmoid, from the gradient with respect to its
/// value `y`.
fn of_sigmoid<'b>(grad: Value<'b>, y: Value<'b>) -> Value<'b> {
    grad * (1.0 - y) * y
}
