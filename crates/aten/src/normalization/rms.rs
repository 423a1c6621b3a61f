//! RMS normalisation: by the root of the mean square over the last dimensions (B. Zhang and R.
//! Sennrich, "Root mean square layer normalization", NeurIPS 2019).

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::normalization::rms::{default_eps, inverse_roots};
use dml_compute::normalization::rows::Norm;
use dml_compute::normalization::terms::NormalizationTerms;
use dml_compute::view::View;

operators! {
    rms_norm(input, normalized_shape, weight, eps) {
        "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
    }
    backward(grad_out, input, normalized_shape, rstd, weight, output_mask) {
        "aten::_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
    }
}

/// The inverse root is float32 for half-precision inputs.
fn rms_norm(call: &mut Call, input: &View, shape: &[i64], weight: Option<&View>, eps: Option<f64>) -> Result<()> {
    let rows = crate::normalization::layer::checked_rows(call, input, shape, weight, None)?;
    check!(input.dtype.is_float(), NotImplemented, "\"rms_norm\" not implemented for '{}'", input.dtype);
    let dtype = accumulator(input.dtype);
    let eps = eps.unwrap_or(default_eps(dtype));
    let (out, scale) = (call.empty(input.dtype, &input.sizes)?, call.empty(dtype, &rows.statistics)?);
    if let Some(in_registers) = rows.in_registers(Norm::Rms) {
        in_registers.forward(call, eps, &out, None, &scale)?;
    } else {
        inverse_roots(call, &rows.input, eps, &rows.flat(&scale))?;
        let weight = rows.weight.as_ref().map(|t| rows.of_columns(t));
        let terms = NormalizationTerms { scale: Some(rows.of_rows(&scale)), weight, ..NormalizationTerms::default() };
        terms.normalize(call, &rows.input, &rows.like_input(&out))?;
    }
    call.ret(out);
    call.ret(scale);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    input: &View,
    shape: &[i64],
    scale: &View,
    weight: Option<&View>,
    mask: &[u8],
) -> Result<()> {
    let rows = crate::normalization::layer::checked_rows(call, input, shape, weight, None)?;
    check!(input.dtype.is_float(), NotImplemented, "\"rms_norm_backward\" not implemented for '{}'", input.dtype);
    let scale = as_contiguous(call, scale)?;
    check!(
        grad.sizes == input.sizes && scale.numel() == rows.statistics.iter().product::<i64>(),
        Runtime,
        "{}: gradient {} and rstd {} do not belong to the input {}",
        call.name,
        grad.describe(),
        scale.describe(),
        input.describe()
    );
    let wants = |i: usize| mask.get(i).is_some_and(|&m| m != 0);
    let grad = rows.like_input(&as_contiguous(call, grad)?);
    let mut of_input = None;
    if wants(0) {
        let out = call.empty(input.dtype, &input.sizes)?;
        let flat = rows.like_input(&out);
        match rows.in_registers(Norm::Rms) {
            Some(in_registers) => in_registers.backward(call, &grad, None, &scale, &flat)?,
            None => rows.of_streamed_input(call, &grad, None, &scale, &flat)?,
        }
        of_input = Some(out);
    }
    let mut of_weight = None;
    if let Some(weight) = weight.filter(|_| wants(1)) {
        let out = call.empty(weight.dtype, &weight.sizes)?;
        rows.of_parameters(call, &grad, None, &scale, &[&out.as_strided(&[rows.n], &[1], 0)])?;
        of_weight = Some(out);
    }
    call.ret_optional(of_input);
    call.ret_optional(of_weight);
    Ok(())
}
