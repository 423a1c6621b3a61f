//! TensorFlow's operators. Each file is a family, and ends its table with `operators()`.
//!
//! A kernel gets its attributes when TensorFlow makes it, and a [`Call`] each time it runs: inputs
//! and results as views, host inputs as numbers. It enqueues computations of `dml_compute` and
//! returns.
//!
//! Where TensorFlow's core has a kernel for every device (`Const`, `Identity`, `Reshape`, control
//! flow, arithmetic of int32 on the host), none is registered here.

mod activations;
mod arg_extrema;
mod arithmetic;
mod average_pooling;
mod axes;
mod batch_normalization;
mod bias;
mod bits;
mod blocks;
mod color;
mod comparisons;
mod complex_numbers;
mod constants;
mod conversion;
mod convolution;
mod counting;
mod crop_and_resize;
mod ctc;
mod data_format;
mod diagonals;
mod dilation;
mod division;
mod dtypes;
mod einsum;
mod fake_quantization;
mod fills;
mod fourier;
pub mod functions;
mod fused_convolution;
mod gathering;
mod index_access;
mod inplace;
mod joining;
mod linear_algebra;
mod local_response;
mod losses;
mod max_pooling;
mod non_max_suppression;
mod nonzero;
mod one_hot;
mod optimizers;
mod padding;
mod patches;
mod permutations;
mod pooling_window;
mod products;
mod projective_transform;
mod quantize_dequantize;
mod random;
mod recurrent;
mod reductions;
mod regions;
mod reinterpretation;
mod repetition;
mod resize;
mod reversal;
mod scans;
mod scattering;
mod search;
mod segments;
mod selection;
mod slicing;
mod sparse_segments;
mod special_functions;
mod splitting;
mod stitching;
mod strided_slices;
mod top_k;
mod transcendental;
mod variables;
mod window;

use crate::c_api::Attributes;
use crate::kernel::registration::register_all;
use crate::kernel::{Call, Operator};
use crate::platform::device_type;

/// All operators.
pub fn operators() -> Vec<Operator> {
    [
        activations::operators(),
        arg_extrema::operators(),
        arithmetic::operators(),
        average_pooling::operators(),
        batch_normalization::operators(),
        bias::operators(),
        bits::operators(),
        blocks::operators(),
        color::operators(),
        comparisons::operators(),
        complex_numbers::operators(),
        conversion::operators(),
        convolution::operators(),
        counting::operators(),
        crop_and_resize::operators(),
        ctc::operators(),
        data_format::operators(),
        diagonals::operators(),
        dilation::operators(),
        division::operators(),
        einsum::operators(),
        fake_quantization::operators(),
        fills::operators(),
        fourier::operators(),
        fused_convolution::operators(),
        gathering::operators(),
        inplace::operators(),
        joining::operators(),
        linear_algebra::operators(),
        local_response::operators(),
        losses::operators(),
        max_pooling::operators(),
        non_max_suppression::operators(),
        nonzero::operators(),
        one_hot::operators(),
        optimizers::operators(),
        padding::operators(),
        patches::operators(),
        permutations::operators(),
        products::operators(),
        projective_transform::operators(),
        quantize_dequantize::operators(),
        random::operators(),
        recurrent::operators(),
        reductions::operators(),
        reinterpretation::operators(),
        repetition::operators(),
        resize::operators(),
        reversal::operators(),
        scans::operators(),
        scattering::operators(),
        search::operators(),
        segments::operators(),
        selection::operators(),
        slicing::operators(),
        sparse_segments::operators(),
        special_functions::operators(),
        splitting::operators(),
        stitching::operators(),
        strided_slices::operators(),
        top_k::operators(),
        transcendental::operators(),
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
