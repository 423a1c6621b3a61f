//! The states of a network.

use super::network::{Network, Sizes, VERSIONS, Version};
use super::order::Order;
use super::parameters::Parameters;
use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FLOATS;
use crate::operators::common::elementwise::compute;
use crate::operators::common::functions;
use crate::operators::random::Generator;
use crate::require;
use dml_compute::matmul::product::Product;
use dml_compute::movement::copy;
use dml_compute::pointwise::arithmetic;
use dml_compute::recurrent::forward::Operands;
use dml_compute::recurrent::recurrence::Layer;
use dml_compute::{Context, Scalar, View};
use dml_kernel::DType;

/// The inputs of a network, checked.
pub struct Inputs {
    /// The sizes.
    pub sizes: Sizes,
    /// `[time, batch, width]`, of any strides.
    pub input: View,
    /// `[layers * directions, batch, hidden]`, of any strides.
    pub h: View,
    /// As `h`.
    pub c: Option<View>,
    /// The parameters.
    pub vector: View,
    /// The lengths of the sequences.
    pub lengths: Option<Vec<i64>>,
}

impl Inputs {
    /// The inputs of a call.
    pub fn of(call: &Call, network: &Network, version: Version) -> Result<Self> {
        let [input, h, c, vector] = [call.input(0)?, call.input(1)?, call.input(2)?, call.input(3)?];
        let sizes = Sizes::of(call, network, [&input, &h])?;
        let has_c = network.cell.has_cell_state();
        require!(
            !has_c || c.sizes == h.sizes,
            "input_h and input_c must have the same shape: {:?} {:?}",
            h.sizes,
            c.sizes
        );
        let expected = Parameters::new(network, &sizes).total();
        require!(
            vector.numel() == expected,
            "{}: expected {expected} parameters, but params is {:?}",
            call.operator(),
            vector.sizes
        );
        let lengths = if version.has_lengths { Some(call.host_ints(4)?.to_vec()) } else { None };
        Ok(Self {
            sizes,
            input: network.major(&input),
            h: network.major(&h),
            c: has_c.then(|| network.major(&c)),
            vector,
            lengths,
        })
    }
}

/// The input of a layer: that of the network, or the states of the layer below in all directions,
/// times the factors of dropout if the network drops.
pub fn layer_input(
    cx: &Context,
    network: &Network,
    sizes: &Sizes,
    first: &View,
    reserve: &View,
    (layer, drops): (i64, bool),
) -> Result<View> {
    if layer == 0 {
        return Ok(first.clone());
    }
    let below = |direction: i64| {
        let [states, _] = sizes.kept_by(reserve, network.cell, (layer - 1) * network.directions + direction);
        states
    };
    if network.directions == 1 && !drops {
        return Ok(below(0));
    }
    let joined = cx.empty(reserve.dtype, &[sizes.rows(), network.directions * sizes.hidden])?;
    for direction in 0..network.directions {
        let to = joined.narrow(1, direction * sizes.hidden, sizes.hidden);
        copy::device_copy(cx, &below(direction), &to)?;
    }
    if drops {
        let factors = network.factors(sizes, reserve, layer);
        compute(cx, &arithmetic::MUL, &joined, &[joined.clone(), factors], &[])?;
    }
    Ok(joined)
}

/// Draws the factors of dropout between all layers: 0, or what keeps the expected value.
fn draw_factors(cx: &Context, network: &Network, sizes: &Sizes, generator: &Generator, reserve: &View) -> Result<()> {
    let keep = 1.0 - f64::from(network.dropout);
    let factor = if keep > 0.0 { 1.0 / keep } else { 0.0 };
    for layer in 1..sizes.layers {
        let factors = network.factors(sizes, reserve, layer);
        let noise = cx.empty(DType::F32, &factors.sizes)?;
        generator.uniform(cx, &noise)?;
        let numbers = [Scalar::Double(keep), Scalar::Double(factor)];
        compute(cx, &functions::DROPOUT_FACTOR, &factors, &[noise], &numbers)?;
    }
    Ok(())
}

/// Rows as steps of sequences.
pub fn unrolled(sizes: &Sizes, rows: &View) -> View {
    let width = rows.sizes[1];
    let apart = rows.strides[0];
    rows.as_strided(&[sizes.time, sizes.batch, width], &[sizes.batch * apart, apart, 1], 0)
}

/// The operator.
fn run(call: &Call, network: &Network, version: Version, training: Option<&Generator>) -> Result<()> {
    let given = Inputs::of(call, network, version)?;
    let sizes = given.sizes;
    network.check(&sizes)?;
    let trains = training.is_some();
    let (cx, directions) = (call.cx(), network.directions);
    let states = network.own([sizes.layers * directions, sizes.batch, sizes.hidden]);
    let output = call.output(0, &network.own([sizes.time, sizes.batch, directions * sizes.hidden]))?;
    let last_h = call.output(1, &states)?;
    let has_c = network.cell.has_cell_state();
    let last_c = call.output(2, if has_c { &states } else { &[] })?;
    let kept = network.kept(&sizes);
    let reserve = call.output(3, &[if trains { kept } else { 0 }])?;
    if version.has_host_reserved {
        call.host_output(4, &[0], &[])?;
    }
    if !has_c {
        copy::fill_with(&cx, &last_c, Scalar::Int(0))?;
    }
    if sizes.batch == 0 {
        return Ok(());
    }
    let reserve = if trains { reserve } else { cx.empty(output.dtype, &[kept])? };
    let drops = network.drops(&sizes);
    if let Some(generator) = training.filter(|_| drops) {
        draw_factors(&cx, network, &sizes, generator, &reserve)?;
    }
    let (output, last_h) = (network.major(&output), network.major(&last_h));
    let last_c = has_c.then(|| network.major(&last_c));
    let order = Order::new(&cx, sizes, given.lengths.as_deref())?;
    let parameters = Parameters::new(network, &sizes);
    let sorted = order.sorted(&cx, &given.input, 1)?;
    let first = sorted.as_strided(&[sizes.rows(), sizes.width], &[sizes.width, 1], 0);
    let hidden = sizes.hidden;
    for layer in 0..sizes.layers {
        let input = layer_input(&cx, network, &sizes, &first, &reserve, (layer, trains && drops))?;
        for direction in 0..directions {
            let number = layer * directions + direction;
            let of = parameters.of_layer(&cx, &given.vector, number)?;
            let gates = cx.empty(input.dtype, &[sizes.rows(), of.input.sizes[0]])?;
            let bias = of.input_bias.expand(&gates.sizes);
            Product::new(&input, &of.input.transpose(0, 1)).with(bias).run(&cx, &gates)?;
            let one = |t: &View| t.as_strided(&t.sizes[1..], &t.strides[1..], number * t.strides[0]);
            let before_h = order.sorted(&cx, &one(&given.h), 0)?;
            let before_c = given.c.as_ref().map(|c| order.sorted(&cx, &one(c), 0)).transpose()?;
            let [rows, saved] = sizes.kept_by(&reserve, network.cell, number);
            order.clear(&cx, &[&rows])?;
            let after_h = cx.empty(input.dtype, &[sizes.batch, hidden])?;
            let after_c = has_c.then(|| cx.empty(input.dtype, &[sizes.batch, hidden])).transpose()?;
            let operands = Operands {
                gates: &gates,
                bias: Some(&of.states_bias),
                h: &before_h,
                c: before_c.as_ref(),
                output: &rows,
                saved: (network.cell.saved_values() > 0).then_some(&saved),
                last_h: &after_h,
                last_c: after_c.as_ref(),
            };
            let steps = order.steps(direction == 1)?;
            Layer { cell: network.cell, steps, weight: &of.states }.run(&cx, &operands)?;
            order.restore(&cx, &after_h, 0, &one(&last_h))?;
            if let (Some(after), Some(last)) = (&after_c, &last_c) {
                order.restore(&cx, after, 0, &one(last))?;
            }
            if layer + 1 == sizes.layers {
                order.restore(&cx, &unrolled(&sizes, &rows), 1, &output.narrow(2, direction * hidden, hidden))?;
            }
        }
    }
    Ok(())
}

fn operator(name: &'static str, version: Version) -> Operator {
    let operator = Operator::new(name, move |attributes: &Attributes| {
        let network = Network::new(attributes, version)?;
        let training = attributes.bool("is_training")?.then(|| Generator::of(attributes)).transpose()?;
        Ok(move |call: &Call| run(call, &network, version, training.as_ref()))
    });
    operator.of("T", FLOATS)
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![
        operator("CudnnRNN", VERSIONS[0]),
        operator("CudnnRNNV2", VERSIONS[1]).on_host(&["host_reserved"]),
        operator("CudnnRNNV3", VERSIONS[2]).on_host(&["sequence_lengths", "host_reserved"]),
    ]
}
