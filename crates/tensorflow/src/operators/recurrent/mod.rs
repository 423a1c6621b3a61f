//! Recurrent networks: cuDNN's operators, which Keras' LSTM and GRU call on every GPU.
//!
//! `network` is what a node says of its network, `parameters` where each weight is in the one
//! vector of parameters, `order` the order of the sequences; `forward` and `backward` compute.
//! `block_lstm` and `block_gru` are TensorFlow's own cells, of graphs of version 1.

mod backward;
mod block_gru;
mod block_lstm;
mod forward;
mod network;
mod order;
mod parameters;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [
        block_gru::operators(),
        block_lstm::operators(),
        backward::operators(),
        forward::operators(),
        parameters::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
