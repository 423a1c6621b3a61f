//! TensorFlow's operators by family, with the names of the families of `dml_compute`. A family is a
//! folder or a file, and ends its table with `operators()`; `common` is what several use.
//!
//! A kernel gets its attributes when TensorFlow makes it, and a [`Call`](crate::kernel::Call) each
//! time it runs: inputs and results as views, host inputs as numbers. It enqueues computations of
//! `dml_compute` and returns.
//!
//! Where TensorFlow's core has a kernel for every device (`Const`, `Identity`, `Reshape`, control
//! flow, arithmetic of int32 on the host), none is registered here.

pub mod common;
mod convolution;
mod creation;
mod fft;
mod images;
mod indexing;
mod linear_algebra;
mod loss;
mod matmul;
mod movement;
mod normalization;
mod pointwise;
mod pooling;
mod quantization;
mod random;
mod recurrent;
mod reduction;
mod sorting;
mod variables;

use crate::kernel::Operator;
use crate::kernel::registration::register_all;
use crate::platform::device_type;

/// All operators.
pub fn operators() -> Vec<Operator> {
    [
        convolution::operators(),
        creation::operators(),
        fft::operators(),
        images::operators(),
        indexing::operators(),
        linear_algebra::operators(),
        loss::operators(),
        matmul::operators(),
        movement::operators(),
        normalization::operators(),
        pointwise::operators(),
        pooling::operators(),
        quantization::operators(),
        random::operators(),
        recurrent::operators(),
        reduction::operators(),
        sorting::operators(),
        variables::operators(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// TensorFlow's call after [`SE_InitPlugin`](crate::platform::SE_InitPlugin).
#[unsafe(no_mangle)]
#[allow(unsafe_code)]
pub extern "C" fn TF_InitKernel() {
    if crate::c_api::functions::loaded().is_ok() {
        register_all(device_type(), operators());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_operator_is_there_once() {
        let mut seen = HashSet::new();
        let twice: Vec<_> = operators().iter().map(|o| o.name).filter(|name| !seen.insert(*name)).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
