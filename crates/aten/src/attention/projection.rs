//! The step between the joint projection of queries, keys and values and the attention.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::pointwise::arithmetic::ADD_SCALE;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    transform(qkv, qkv_bias, num_heads) {
        "aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)",
    }
}

/// Splits `[batch, length, 3 * heads * width]` into queries, keys and values
/// `[batch, heads, length, width]`, with their biases added and queries divided by `sqrt(width)`.
fn transform(call: &mut Call, qkv: &View, bias: &View, heads: i64) -> Result<()> {
    check!(
        qkv.dim() == 3 && heads > 0 && qkv.sizes[2] % (3 * heads) == 0 && bias.sizes[..] == [qkv.sizes[2]],
        Runtime,
        "{}: expected a projection [batch, length, 3 * heads * width] and its bias, but got {:?}, {:?} and {heads} heads",
        call.name,
        qkv.sizes.as_slice(),
        bias.sizes.as_slice()
    );
    let dtype = qkv.dtype;
    check!(dtype.is_float(), Dtype, "\"transform_bias_rescale_qkv\" not implemented for '{dtype}'");
    check!(bias.dtype == dtype, Runtime, "expected scalar type {dtype} but found {}", bias.dtype);
    let width = qkv.sizes[2] / (3 * heads);
    let sizes = [qkv.sizes[0], heads, qkv.sizes[1], width];
    for part in 0..3 {
        let first = part * heads * width;
        let (s, step) = (&qkv.strides, bias.strides[0]);
        let x = qkv.as_strided(&sizes, &[s[0], width * s[2], s[1], s[2]], first * s[2]);
        let bias = bias.as_strided(&[heads, 1, width], &[width * step, 0, step], first * step);
        let scale = if part == 0 { 1.0 / (width as f64).sqrt() } else { 1.0 };
        let out = call.empty(dtype, &sizes)?;
        let inputs = [Input::Tensor(x), Input::Tensor(bias), Input::Number(Number::Double(scale), dtype)];
        kernel::run(call, &ADD_SCALE, &[&out], &inputs, dtype)?;
        call.ret(out);
    }
    Ok(())
}
