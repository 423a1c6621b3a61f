//! Recurrent networks: cuDNN's operators, which Keras' LSTM and GRU call on every GPU.
//!
//! `network` is what a node says of its network, `parameters` where each weight is in the one
//! vector of parameters, `order` the order of the sequences; `forward` and `backward` compute.

mod backward;
mod forward;
mod network;
mod order;
mod parameters;

use crate::kernel::Operator;

/// The operators of this folder.
pub fn operators() -> Vec<Operator> {
    [forward::operators(), backward::operators(), parameters::operators()].into_iter().flatten().collect()
}
