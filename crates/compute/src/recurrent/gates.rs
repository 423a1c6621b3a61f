//! What happens to the gates of a recurrent cell after their matrix products, and the gradient of
//! it.
//!
//! Gates of a row stand side by side: input, forget, cell, output of an LSTM (Hochreiter and
//! Schmidhuber, "Long short-term memory", 1997), reset, update, new of a GRU (Cho et al., "Learning
//! phrase representations using RNN encoder-decoder", 2014), and one alone of Elman's network
//! ("Finding structure in time", 1990).

use crate::error::Result;
use dml_kernel::{Value, math};

/// A kind of cell.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Long short-term memory.
    Lstm,
    /// Gated recurrent unit.
    Gru,
    /// Elman's, with a hyperbolic tangent.
    Tanh,
    /// Elman's, with a rectifier.
    Relu,
}

/// The state of one unit: of an LSTM also the cell's.
#[derive(Copy, Clone)]
pub struct State<'b> {
    /// The hidden state, which is the result.
    pub h: Value<'b>,
    /// The cell's state of an LSTM.
    pub c: Option<Value<'b>>,
}

/// Gradients by a unit's gates and by its state before, as far as that acts directly and not
/// through the gates' product.
pub struct Gradients<'b> {
    /// By the sums that make the gates, on the input's side.
    pub gates: Vec<Value<'b>>,
    /// The same on the hidden side.
    pub hidden: Vec<Value<'b>>,
    /// By the state before.
    pub before: State<'b>,
}

impl Cell {
    /// The cell of this name, as operators get it.
    pub fn of(name: Option<&str>) -> Result<Cell> {
        let cell = match name {
            Some("lstm") => Some(Cell::Lstm),
            Some("gru") => Some(Cell::Gru),
            Some("tanh") => Some(Cell::Tanh),
            Some("relu") => Some(Cell::Relu),
            _ => None,
        };
        check!(cell.is_some(), Invalid, "unknown recurrent cell: {name:?}");
        Ok(cell.unwrap_or(Cell::Lstm))
    }

    /// Gates of a unit.
    pub fn gates(self) -> u32 {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }

    /// Numbers that [`step`](Self::step) keeps of a unit.
    pub fn kept(self) -> u32 {
        match self {
            Cell::Lstm => 5,
            Cell::Gru => 4,
            Cell::Tanh | Cell::Relu => 0,
        }
    }

    /// Whether there is a state beside the hidden one.
    pub fn has_cell_state(self) -> bool {
        self == Cell::Lstm
    }

    /// Whether the gradients by the gates differ between the input's side and the hidden one.
    pub fn has_sides(self) -> bool {
        self == Cell::Gru
    }

    /// The next state of a unit, and the numbers that its gradient needs, from both sides' products
    /// with their biases. `round` makes of a number what the states' dtype holds of it.
    pub fn step<'b>(
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
            // A NaN stays.
            Cell::Relu => {
                let x = sum(0);
                (State { h: round(x.is_below_zero().select(x.like(0.0), x)), c: None }, vec![])
            }
        }
    }

    /// The gradients of a step, of the gradients by its results; `kept` is what it kept, and `h`
    /// its result.
    pub fn gradient<'b>(self, grad: State<'b>, kept: &[Value<'b>], h: Value<'b>, before: State<'b>) -> Gradients<'b> {
        let zero = h.like(0.0);
        match self {
            Cell::Lstm => {
                let [i, f, g, o] = [0, 1, 2, 3].map(|gate| kept[gate]);
                let t = math::tanh(kept[4]);
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
                let [r, z, n, hidden] = [0, 1, 2, 3].map(|part| kept[part]);
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

/// The gradient at the argument of a sigmoid, of the gradient at its value `y`.
fn of_sigmoid<'b>(grad: Value<'b>, y: Value<'b>) -> Value<'b> {
    grad * (1.0 - y) * y
}
