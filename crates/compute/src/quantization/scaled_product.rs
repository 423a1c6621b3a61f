//! Scaled matrix products of 8-bit floats.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::gemv::MAX_ROWS;
use crate::matmul::operand::Source;
use crate::matmul::problem::Problem;
use crate::matmul::product::multiply_into;
use crate::movement::copy::cast;
use crate::pointwise::kernel::{self, Input};
use crate::quantization::functions::SCALE_PRODUCT;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

/// `out = (a @ b) * scales[0] * scales[1] + bias`, summed in float32, of `a` (`[m, k]`) and `b`
/// (`[k, n]`) of 8-bit floats, with any strides. The scales and the bias broadcast to `out`
/// (`[m, n]`).
pub fn scaled_product(
    cx: &Context,
    [a, b]: [&View; 2],
    scales: [Input; 2],
    bias: Option<&View>,
    out: &View,
) -> Result<()> {
    let ([m, k], n) = ([a.sizes[0], a.sizes[1]], b.sizes[1]);
    let sums = cx.empty(DType::F32, &[m, n])?;
    // Few rows are read directly; otherwise matrix units multiply float16, which represents every
    // 8-bit float.
    let few = m.min(n) <= MAX_ROWS;
    let [a, b] = [a, b].map(|t| if few { Ok(t.clone()) } else { cast(cx, t, DType::F16) });
    let (a, b) = (a?, b?);
    multiply_into(cx, &sums, [&a, &b], Number::Int(1), None, k, |finish| {
        let left = Source::strided(&a, [m, k], [a.strides[0], a.strides[1]], 0);
        let right = Source::strided(&b, [n, k], [b.strides[1], b.strides[0]], 0);
        Ok(Problem { size: [1, m, n, k], a: left, b: right, finish })
    })?;
    let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
    inputs.push(Input::Tensor(sums));
    inputs.extend(scales);
    inputs.extend(bias.map(|t| Input::Tensor(t.clone())));
    kernel::run(cx, &SCALE_PRODUCT, &[out], &inputs, DType::F32)
}
