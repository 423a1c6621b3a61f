//! GRU cells whose gates are results of their own: `GRUBlockCell` and its gradient.
//!
//! The weights of input and states are one matrix, `[width + units, ..]`; the gates are reset and
//! update.

use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::require;
use dml_compute::functions;
use dml_compute::matmul::product::Product;
use dml_compute::pointwise::function::Function;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::{Context, View};
use dml_kernel::{DType, math};

functions! {
    /// The gates of their sums, and the state before times the reset gate.
    GATES = "tf_block_gru_gates"(reset, update, before) => {
        let reset = math::sigmoid(reset);
        [reset, math::sigmoid(update), before * reset]
    };
    /// The candidate of its sum, and the state.
    STATE = "tf_block_gru_state"(sum, update, before) => {
        let candidate = math::tanh(sum);
        [candidate, update * before + (1.0 - update) * candidate]
    };
    /// The gradients of the sums of the candidate and of the update gate.
    OF_CANDIDATE = "tf_block_gru_of_candidate"(grad, update, candidate, before) => [
        grad * (1.0 - update) * (1.0 - candidate * candidate),
        grad * (before - candidate) * update * (1.0 - update)
    ];
    /// The gradient of the reset gate's sum, and that of the state before except for the gates'.
    OF_RESET = "tf_block_gru_of_reset"(of_product, grad, reset, update, before) => [
        of_product * before * reset * (1.0 - reset),
        of_product * reset + grad * update
    ];
}

/// The arguments of both operators.
struct Given {
    x: View,
    before: View,
    /// Of the gates, and of the candidate: for the input, and for the states.
    gates: [View; 2],
    candidate: [View; 2],
    biases: [View; 2],
    width: i64,
    units: i64,
}

impl Given {
    fn of(call: &Call) -> Result<Self> {
        let (x, before, gates, candidate) = (call.input(0)?, call.input(1)?, call.input(2)?, call.input(3)?);
        let biases = [call.input(4)?, call.input(5)?];
        require!(
            x.dim() == 2 && before.dim() == 2 && x.sizes[0] == before.sizes[0],
            "x is {:?}, h_prev is {:?}",
            x.sizes,
            before.sizes
        );
        let (width, units) = (x.sizes[1], before.sizes[1]);
        require!(
            gates.sizes[..] == [width + units, 2 * units] && candidate.sizes[..] == [width + units, units],
            "w_ru is {:?} and w_c {:?}, of {width} inputs and {units} units",
            gates.sizes,
            candidate.sizes
        );
        require!(
            biases[0].sizes[..] == [2 * units] && biases[1].sizes[..] == [units],
            "b_ru is {:?} and b_c {:?}, of {units} units",
            biases[0].sizes,
            biases[1].sizes
        );
        let apart = |t: &View| [t.narrow(0, 0, width), t.narrow(0, width, units)];
        let (gates, candidate) = (apart(&gates), apart(&candidate));
        Ok(Self { x, before, gates, candidate, biases, width, units })
    }

    fn is_empty(&self) -> bool {
        self.before.numel() == 0
    }
}

fn compute(cx: &Context, function: &'static Function, outs: &[&View], inputs: &[&View]) -> Result<()> {
    let operands: Vec<Input> = inputs.iter().map(|&t| Input::Tensor(t.clone())).collect();
    Ok(kernel::run(cx, function, outs, &operands, inputs[0].dtype)?)
}

/// `input * weights[0] + states * weights[1] + bias`.
fn sums(cx: &Context, inputs: [&View; 2], weights: &[View; 2], bias: &View) -> Result<View> {
    let out = cx.empty(bias.dtype, &[inputs[0].sizes[0], bias.sizes[0]])?;
    Product::new(inputs[0], &weights[0]).with(bias.expand(&out.sizes)).run(cx, &out)?;
    Product::new(inputs[1], &weights[1]).with(out.clone()).run(cx, &out)?;
    Ok(out)
}

/// `GRUBlockCell`.
fn cell(call: &Call) -> Result<()> {
    let given = Given::of(call)?;
    let sizes = &given.before.sizes;
    let [reset, update, candidate, h] =
        [call.output(0, sizes)?, call.output(1, sizes)?, call.output(2, sizes)?, call.output(3, sizes)?];
    if given.is_empty() {
        return Ok(());
    }
    let (cx, units) = (call.cx(), given.units);
    let gates = sums(&cx, [&given.x, &given.before], &given.gates, &given.biases[0])?;
    let product = cx.empty(h.dtype, sizes)?;
    let parts = [gates.narrow(1, 0, units), gates.narrow(1, units, units)];
    compute(&cx, &GATES, &[&reset, &update, &product], &[&parts[0], &parts[1], &given.before])?;
    let sum = sums(&cx, [&given.x, &product], &given.candidate, &given.biases[1])?;
    compute(&cx, &STATE, &[&candidate, &h], &[&sum, &update, &given.before])
}

/// `GRUBlockCellGrad`.
fn gradient(call: &Call) -> Result<()> {
    let given = Given::of(call)?;
    let sizes = &given.before.sizes;
    let [reset, update, candidate, grad] = [call.input(6)?, call.input(7)?, call.input(8)?, call.input(9)?];
    require!(
        [&reset, &update, &candidate, &grad].iter().all(|t| t.sizes == *sizes),
        "{}: the gates and the gradient must be {sizes:?}",
        call.operator()
    );
    let (batch, units) = (sizes[0], given.units);
    let (to_x, to_before) = (call.output(0, &given.x.sizes)?, call.output(1, sizes)?);
    let (to_candidate, to_gates) = (call.output(2, sizes)?, call.output(3, &[batch, 2 * units])?);
    if given.is_empty() {
        return Ok(());
    }
    let cx = call.cx();
    let [to_reset, to_update] = [to_gates.narrow(1, 0, units), to_gates.narrow(1, units, units)];
    compute(&cx, &OF_CANDIDATE, &[&to_candidate, &to_update], &[&grad, &update, &candidate, &given.before])?;
    let of_product = cx.empty(grad.dtype, sizes)?;
    Product::new(&to_candidate, &given.candidate[1].transpose(0, 1)).run(&cx, &of_product)?;
    let rest = cx.empty(grad.dtype, sizes)?;
    compute(&cx, &OF_RESET, &[&to_reset, &rest], &[&of_product, &grad, &reset, &update, &given.before])?;
    Product::new(&to_gates, &given.gates[1].transpose(0, 1)).with(rest).run(&cx, &to_before)?;
    if given.width == 0 {
        return Ok(());
    }
    let of_candidate = cx.empty(grad.dtype, &to_x.sizes)?;
    Product::new(&to_candidate, &given.candidate[0].transpose(0, 1)).run(&cx, &of_candidate)?;
    Ok(Product::new(&to_gates, &given.gates[0].transpose(0, 1)).with(of_candidate).run(&cx, &to_x)?)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        Operator::plain("GRUBlockCell", cell).of("T", &[DType::F32]),
        Operator::plain("GRUBlockCellGrad", gradient).of("T", &[DType::F32]),
    ]
}
