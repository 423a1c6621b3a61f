//! The transform of products into the gradient of a weight: 4x4 numbers become 3x3.

use crate::context::Context;
use crate::convolution::winograd::transforms::{POINTS, TAPS, along_both, filter_gradient};
use crate::error::Result;
use crate::matmul::divisor::Divisor;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};
use std::array::from_fn;

/// Specialisation. Nothing changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec;

parameters! {
    /// A transform of products.
    pub Spec as s => Arguments, Parameters {
        /// The gradient of the weight.
        out: Output = DType::F32,
        /// Matrices of products, `[point, outer channel, inner channel]`.
        products: Input = DType::F32,
        /// Number of invocations: pairs of channels.
        threads: U32,
        /// Number of inner channels.
        inner: Divisor,
        /// Strides by outer channel, inner channel and tap.
        steps: [U32; 3],
    }
}

/// Enqueues the transform of `products` into `out`.
pub fn run(cx: &Context, products: &View, out: &View) -> Result<()> {
    let pairs = out.sizes[0] * out.sizes[1];
    let steps = [0, 1, 3].map(|d| out.strides[d] as u32);
    let arguments = Arguments { out, products, threads: pairs as u32, inner: out.sizes[1], steps };
    cx.run_threads(&Spec, &arguments, pairs as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "winograd weight"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let Parameters { out, products, threads, inner, steps: [outer_step, inner_step, tap_step] } = p;
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(threads), || {
            let tile: [[Value; POINTS]; POINTS] =
                from_fn(|row| from_fn(|column| products.load(threads * (row * POINTS + column) as u32 + i)));
            let taps: [[Value; TAPS]; TAPS] = along_both(tile, filter_gradient);
            let (outer, inner) = inner.divide(i);
            let first = outer * outer_step + inner * inner_step;
            for (tap, &x) in (0u32..).zip(taps.iter().flatten()) {
                out.store(first + tap_step * tap, x);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&Spec.build());
    }
}
