//! The gradients of a network.

use super::forward::{Inputs, layer_input, unrolled};
use super::network::{Network, Sizes, VERSIONS, Version};
use super::order::Order;
use super::parameters::Parameters;
use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FLOATS;
use crate::operators::common::elementwise::compute;
use crate::require;
use dml_compute::matmul::product::Product;
use dml_compute::movement::copy;
use dml_compute::pointwise::arithmetic;
use dml_compute::recurrent::backward::Operands;
use dml_compute::recurrent::recurrence::Layer;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_into;
use dml_compute::{Scalar, View};

/// The gradients of a call's results, and what the forward call kept.
struct Given {
    output: View,
    h: View,
    c: Option<View>,
    reserve: View,
}

impl Given {
    fn of(call: &Call, network: &Network, version: Version, inputs: &Inputs) -> Result<Self> {
        let sizes = &inputs.sizes;
        // The results themselves are before their gradients.
        let first = 4 + usize::from(version.has_lengths) + 3;
        let [output, h, c] = [call.input(first)?, call.input(first + 1)?, call.input(first + 2)?];
        let reserve = call.input(first + 3)?;
        let (output, h) = (network.major(&output), network.major(&h));
        let c = inputs.c.is_some().then(|| network.major(&c));
        let kept = network.kept(sizes);
        let wide = network.directions * sizes.hidden;
        require!(
            output.sizes[..] == [sizes.time, sizes.batch, wide]
                && h.sizes == inputs.h.sizes
                && c.as_ref().is_none_or(|c| c.sizes == h.sizes)
                && reserve.numel() == kept,
            "{}: the gradients and the reserve space are not those of this network: {:?} {:?} {:?}",
            call.operator(),
            output.sizes,
            h.sizes,
            reserve.sizes
        );
        Ok(Self { output, h, c, reserve })
    }
}

/// The operator.
fn run(call: &Call, network: &Network, version: Version) -> Result<()> {
    let inputs = Inputs::of(call, network, version)?;
    let sizes = inputs.sizes;
    network.check(&sizes)?;
    let drops = network.drops(&sizes);
    let given = Given::of(call, network, version, &inputs)?;
    let (cx, directions) = (call.cx(), network.directions);
    let states = network.own([sizes.layers * directions, sizes.batch, sizes.hidden]);
    let grad_input = call.output(0, &network.own([sizes.time, sizes.batch, sizes.width]))?;
    let grad_h = call.output(1, &states)?;
    let has_c = network.cell.has_cell_state();
    let grad_c = call.output(2, if has_c { &states } else { &[] })?;
    let vector = call.output(3, &inputs.vector.sizes)?;
    if !has_c {
        copy::fill_with(&cx, &grad_c, Scalar::Int(0))?;
    }
    if sizes.batch == 0 {
        return Ok(copy::fill_with(&cx, &vector, Scalar::Int(0))?);
    }
    let (grad_input, grad_h) = (network.major(&grad_input), network.major(&grad_h));
    let grad_c = has_c.then(|| network.major(&grad_c));
    let order = Order::new(&cx, sizes, inputs.lengths.as_deref())?;
    let parameters = Parameters::new(network, &sizes);
    let Sizes { hidden, batch, .. } = sizes;
    let (rows, dtype) = (sizes.rows(), inputs.input.dtype);
    let row = |t: View, width: i64| t.as_strided(&[rows, width], &[width, 1], 0);
    let first = row(order.sorted(&cx, &inputs.input, 1)?, sizes.width);
    // The gradient of the states of the layer that is next, in all directions.
    let mut grad_states = row(order.sorted(&cx, &given.output, 1)?, directions * hidden);
    for layer in (0..sizes.layers).rev() {
        let input = layer_input(&cx, network, &sizes, &first, &given.reserve, (layer, drops))?;
        let below = cx.empty(dtype, &input.sizes)?;
        for direction in 0..directions {
            let number = layer * directions + direction;
            let of = parameters.of_layer(&cx, &inputs.vector, number)?;
            let one = |t: &View| t.as_strided(&t.sizes[1..], &t.strides[1..], number * t.strides[0]);
            let sorted = |t: &View| order.sorted(&cx, &one(t), 0);
            let [output, saved] = sizes.kept_by(&given.reserve, network.cell, number);
            let empty = |sizes: &[i64]| cx.empty(dtype, sizes);
            let wide = of.input.sizes[0];
            let [grad_gates, before] = [empty(&[rows, wide])?, empty(&[rows, hidden])?];
            let grad_hidden = network.cell.has_sides().then(|| empty(&[rows, wide])).transpose()?;
            order.clear(&cx, &[&grad_gates, &before])?;
            if let Some(grad_hidden) = &grad_hidden {
                order.clear(&cx, &[grad_hidden])?;
            }
            let [before_h, last_h] = [sorted(&inputs.h)?, sorted(&given.h)?];
            let before_c = inputs.c.as_ref().map(&sorted).transpose()?;
            let last_c = given.c.as_ref().map(&sorted).transpose()?;
            let first_h = empty(&[batch, hidden])?;
            let first_c = has_c.then(|| empty(&[batch, hidden])).transpose()?;
            let grad_output = copy::as_contiguous(&cx, &grad_states.narrow(1, direction * hidden, hidden))?;
            let operands = Operands {
                saved: (network.cell.saved_values() > 0).then_some(&saved),
                output: &output,
                grad_output: &grad_output,
                h: &before_h,
                c: before_c.as_ref(),
                grad_h: &last_h,
                grad_c: last_c.as_ref(),
                grad_gates: &grad_gates,
                grad_hidden: grad_hidden.as_ref(),
                before: &before,
                first_h: &first_h,
                first_c: first_c.as_ref(),
            };
            let steps = order.steps(direction == 1)?;
            Layer { cell: network.cell, steps, weight: &of.states }.gradients(&cx, &operands)?;
            order.restore(&cx, &first_h, 0, &one(&grad_h))?;
            if let (Some(first_c), Some(grad_c)) = (&first_c, &grad_c) {
                order.restore(&cx, first_c, 0, &one(grad_c))?;
            }

            let of_hidden = grad_hidden.as_ref().unwrap_or(&grad_gates);
            let grads = parameters.tensors(&cx, &vector, number)?;
            Product::new(&grad_gates.transpose(0, 1), &input).run(&cx, &grads.input)?;
            Product::new(&of_hidden.transpose(0, 1), &before).run(&cx, &grads.states)?;
            let over_rows = || Axes::of_dims(&[0], 2, false);
            sum_into(&cx, &grad_gates, &grads.input_bias, over_rows())?;
            sum_into(&cx, of_hidden, &grads.states_bias, over_rows())?;
            parameters.write(&cx, &grads, &vector, number)?;
            let product = Product::new(&grad_gates, &of.input);
            let product = if direction == 0 { product } else { product.with(below.clone()) };
            product.run(&cx, &below)?;
        }
        if drops && layer > 0 {
            let factors = network.factors(&sizes, &given.reserve, layer);
            compute(&cx, &arithmetic::MUL, &below, &[below.clone(), factors], &[])?;
        }
        grad_states = below;
    }
    order.restore(&cx, &unrolled(&sizes, &grad_states), 1, &grad_input)
}

fn operator(name: &'static str, version: Version) -> Operator {
    let operator = Operator::new(name, move |attributes: &Attributes| {
        let network = Network::new(attributes, version)?;
        Ok(move |call: &Call| run(call, &network, version))
    });
    operator.of("T", FLOATS)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        operator("CudnnRNNBackprop", VERSIONS[0]),
        operator("CudnnRNNBackpropV2", VERSIONS[1]).on_host(&["host_reserved"]),
        operator("CudnnRNNBackpropV3", VERSIONS[2]).on_host(&["sequence_lengths", "host_reserved"]),
    ]
}
