//! The one vector of a network's parameters: the weights of all layers, then their biases.
//!
//! A layer in one direction has its gates' weights for the input, those for the states, and as many
//! biases of each. The gates of an LSTM are input, forget, cell, output. Those of a GRU are update,
//! reset, new: so Keras writes them with a TensorFlow that is not built for CUDA. The canonical
//! operators have reset before update, as cuDNN.

use super::network::{Network, Sizes, VERSIONS};
use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::FLOATS;
use crate::require;
use dml_compute::movement::copy;
use dml_compute::recurrent::gates::Cell;
use dml_compute::{Context, Scalar, View};
use dml_kernel::DType;

/// The parameters of a network.
pub struct Parameters {
    cell: Cell,
    directions: i64,
    layers: i64,
    width: i64,
    hidden: i64,
}

/// A block of gates: its first number, and the width of its rows.
#[derive(Copy, Clone)]
struct Block {
    start: i64,
    width: i64,
}

/// The parameters of a layer in one direction, with the gates in the recurrence's order.
pub struct OfLayer {
    /// `[gates * hidden, width]`
    pub input: View,
    /// `[gates * hidden, hidden]`
    pub states: View,
    /// `[gates * hidden]`
    pub input_bias: View,
    /// `[gates * hidden]`
    pub states_bias: View,
}

impl Parameters {
    /// Of a network of these sizes.
    pub fn new(network: &Network, sizes: &Sizes) -> Self {
        let Sizes { layers, width, hidden, .. } = *sizes;
        Self { cell: network.cell, directions: network.directions, layers, width, hidden }
    }

    fn gates(&self) -> i64 {
        i64::from(self.cell.gates())
    }

    fn wide(&self) -> i64 {
        self.gates() * self.hidden
    }

    /// Layers, in each direction.
    fn count(&self) -> i64 {
        self.layers * self.directions
    }

    /// The width of a layer's input.
    pub fn width(&self, layer: i64) -> i64 {
        if layer < self.directions { self.width } else { self.directions * self.hidden }
    }

    /// The blocks of a layer: two of weights, two of biases. Those of the layer after the last one
    /// begin where the vector ends.
    fn blocks(&self, layer: i64) -> [Block; 4] {
        let weights = |layer: i64| -> i64 { (0..layer).map(|l| self.wide() * (self.width(l) + self.hidden)).sum() };
        let (start, biases) = (weights(layer), weights(self.count()) + 2 * layer * self.wide());
        let states = start + self.wide() * self.width(layer);
        [(start, self.width(layer)), (states, self.hidden), (biases, 1), (biases + self.wide(), 1)]
            .map(|(start, width)| Block { start, width })
    }

    /// Their number.
    pub fn total(&self) -> i64 {
        self.blocks(self.count())[2].start
    }

    /// Where a gate of the recurrence's order is among those of a block.
    fn place(&self, gate: i64) -> i64 {
        if self.cell == Cell::Gru && gate < 2 { 1 - gate } else { gate }
    }

    /// A gate of the recurrence's order in the vector: `[hidden, width]`.
    fn gate(&self, vector: &View, block: Block, gate: i64) -> View {
        let start = block.start + self.place(gate) * self.hidden * block.width;
        vector.as_strided(&[self.hidden, block.width], &[block.width, 1], start)
    }

    /// A gate of a tensor of them.
    fn gate_of(&self, t: &View, block: Block, gate: i64) -> View {
        t.as_strided(&[self.hidden, block.width], &[block.width, 1], gate * self.hidden * block.width)
    }

    /// A block as a tensor, `[gates * hidden, width]`; of the vector itself where the order is the
    /// same.
    fn tensor(&self, vector: &View, block: Block, scratch: &Context) -> Result<View> {
        let sizes = [self.wide(), block.width];
        if self.cell == Cell::Gru {
            return Ok(scratch.empty(vector.dtype, &sizes)?);
        }
        Ok(vector.as_strided(&sizes, &[block.width, 1], block.start))
    }

    /// The parameters of a layer.
    pub fn of_layer(&self, cx: &Context, vector: &View, layer: i64) -> Result<OfLayer> {
        let tensors = self.tensors(cx, vector, layer)?;
        if self.cell == Cell::Gru {
            self.each_gate(layer, &tensors, |block, t, gate| {
                let (from, to) = (self.gate(vector, block, gate), self.gate_of(t, block, gate));
                Ok(copy::device_copy(cx, &from, &to)?)
            })?;
        }
        Ok(tensors)
    }

    /// Tensors for the parameters of a layer: parts of the vector where the order is the same.
    pub fn tensors(&self, cx: &Context, vector: &View, layer: i64) -> Result<OfLayer> {
        let [input, states, input_bias, states_bias] = self.blocks(layer);
        let row = |t: View| t.as_strided(&[t.sizes[0]], &[1], 0);
        Ok(OfLayer {
            input: self.tensor(vector, input, cx)?,
            states: self.tensor(vector, states, cx)?,
            input_bias: row(self.tensor(vector, input_bias, cx)?),
            states_bias: row(self.tensor(vector, states_bias, cx)?),
        })
    }

    /// Writes what is in a layer's [`tensors`](Self::tensors) to the vector.
    pub fn write(&self, cx: &Context, tensors: &OfLayer, vector: &View, layer: i64) -> Result<()> {
        if self.cell != Cell::Gru {
            return Ok(());
        }
        self.each_gate(layer, tensors, |block, t, gate| {
            let (from, to) = (self.gate_of(t, block, gate), self.gate(vector, block, gate));
            Ok(copy::device_copy(cx, &from, &to)?)
        })
    }

    fn each_gate(
        &self,
        layer: i64,
        of: &OfLayer,
        mut action: impl FnMut(Block, &View, i64) -> Result<()>,
    ) -> Result<()> {
        let tensors = [&of.input, &of.states, &of.input_bias, &of.states_bias];
        for (block, t) in self.blocks(layer).into_iter().zip(tensors) {
            for gate in 0..self.gates() {
                action(block, t, gate)?;
            }
        }
        Ok(())
    }

    /// The canonical tensors in their order: where each is in the vector. All weights, then all
    /// biases.
    fn canonical(&self, vector: &View) -> [Vec<View>; 2] {
        let of = |first: usize| {
            let mut found = Vec::new();
            for layer in 0..self.count() {
                for block in &self.blocks(layer)[first..first + 2] {
                    found.extend((0..self.gates()).map(|gate| self.gate(vector, *block, gate)));
                }
            }
            found
        };
        [of(0), of(2)]
    }
}

/// The parameters that three inputs in host memory describe.
fn described(call: &Call, network: &Network) -> Result<Parameters> {
    let [layers, hidden, width] = [0, 1, 2].map(|input| call.host_number(input).map(|number| number.to_i64()));
    let (layers, hidden, width) = (layers?, hidden?, width?);
    require!(
        layers > 0 && hidden > 0 && width > 0 && layers < 1 << 16 && hidden < 1 << 20 && width < 1 << 24,
        "{}: {layers} layers of {hidden} units, with an input of {width}",
        call.operator()
    );
    let sizes = Sizes { layers, time: 1, batch: 1, width, hidden };
    network.check(&sizes)?;
    Ok(Parameters::new(network, &sizes))
}

/// `CudnnRNNParamsSize`.
fn size(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let network = Network::new(attributes, VERSIONS[0])?;
    Ok(move |call: &Call| {
        let total = described(call, &network)?.total();
        require!(total <= i64::from(i32::MAX), "{}: {total} parameters are too many", call.operator());
        call.host_output(0, &[1], &[Scalar::Int(total)])
    })
}

/// `CudnnRNNCanonicalToParams`.
fn to_parameters(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let network = Network::new(attributes, VERSIONS[0])?;
    Ok(move |call: &Call| {
        let parameters = described(call, &network)?;
        let vector = call.output(0, &[parameters.total()])?;
        let parts = parameters.canonical(&vector).concat();
        require!(
            call.inputs() == 3 + parts.len(),
            "{}: expected {} weights and biases, but got {}",
            call.operator(),
            parts.len(),
            call.inputs() - 3
        );
        for (i, part) in parts.iter().enumerate() {
            let given = call.input(3 + i)?;
            require!(
                given.numel() == part.numel(),
                "{}: weight or bias {i} has {} numbers, not {}",
                call.operator(),
                given.numel(),
                part.numel()
            );
            copy::device_copy(&call.cx(), &given.as_strided(&part.sizes, &part.strides, 0), part)?;
        }
        Ok(())
    })
}

/// `CudnnRNNParamsToCanonical`.
fn to_canonical(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let network = Network::new(attributes, VERSIONS[0])?;
    Ok(move |call: &Call| {
        let parameters = described(call, &network)?;
        let vector = call.input(3)?;
        require!(
            vector.numel() == parameters.total(),
            "{}: expected {} parameters, but got {:?}",
            call.operator(),
            parameters.total(),
            vector.sizes
        );
        let [weights, biases] = parameters.canonical(&vector);
        require!(
            call.outputs() == weights.len() + biases.len(),
            "{}: expected {} weights and biases as results, not {}",
            call.operator(),
            weights.len() + biases.len(),
            call.outputs()
        );
        let count = weights.len();
        for (i, part) in weights.into_iter().chain(biases).enumerate() {
            let out = if i < count { call.output(i, &part.sizes)? } else { call.output(i, &part.sizes[..1])? };
            copy::device_copy(&call.cx(), &part, &out.as_strided(&part.sizes, &part.strides, 0))?;
        }
        Ok(())
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    const HOST: &[&str] = &["num_layers", "num_units", "input_size"];
    vec![
        Operator::new("CudnnRNNParamsSize", size).of("T", FLOATS).of("S", &[DType::I32]).on_host(&[
            "num_layers",
            "num_units",
            "input_size",
            "params_size",
        ]),
        Operator::new("CudnnRNNCanonicalToParams", to_parameters).of("T", FLOATS).on_host(HOST),
        Operator::new("CudnnRNNCanonicalToParamsV2", to_parameters).of("T", FLOATS).on_host(HOST),
        Operator::new("CudnnRNNParamsToCanonical", to_canonical).of("T", FLOATS).on_host(HOST),
        Operator::new("CudnnRNNParamsToCanonicalV2", to_canonical).of("T", FLOATS).on_host(HOST),
    ]
}
