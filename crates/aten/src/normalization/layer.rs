//! Layer normalisation: over the last dimensions.

use crate::normalization::statistics::parameter_dtype;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, group, operators};
use dml_compute::movement::copy::{as_contiguous, cast};
use dml_compute::normalization::layer::Rows;
use dml_compute::normalization::rows::Norm;
use dml_compute::normalization::statistics::moments;
use dml_compute::normalization::terms::NormalizationTerms;
use dml_compute::reduction::axes::Axes;
use dml_compute::view::{Dims, View};

operators! {
    layer_norm({Operands}, eps) {
        hot "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    }
    backward(grad_out, {Operands}, mean, rstd, output_mask) {
        hot "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    }
}

/// Checks the shapes as PyTorch does.
pub fn checked_rows(
    call: &Call,
    input: &View,
    shape: &[i64],
    weight: Option<&View>,
    bias: Option<&View>,
) -> Result<Rows> {
    check!(
        !shape.is_empty(),
        Runtime,
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
         normalized_shape = {shape:?}"
    );
    for (name, t) in [("weight", weight), ("bias", bias)] {
        let Some(t) = t else { continue };
        check!(
            t.sizes.as_slice() == shape,
            Runtime,
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and \
             normalized_shape = {shape:?}",
            t.sizes.as_slice()
        );
    }
    let rank = input.dim();
    let fits = rank >= shape.len() && &input.sizes[rank - shape.len()..] == shape;
    let wanted = || shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    check!(
        fits,
        Runtime,
        "Given normalized_shape={shape:?}, expected input with shape [*, {}], but got input of size{:?}",
        wanted(),
        input.sizes.as_slice()
    );
    let n: i64 = shape.iter().product();
    let outer = &input.sizes[..rank - shape.len()];
    let mut statistics = Dims::from_slice(outer);
    statistics.resize(rank, 1);
    let row = |t: Option<&View>| -> Result<Option<View>> {
        t.map(|t| Ok(as_contiguous(call, t)?.as_strided(&[n], &[1], 0))).transpose()
    };
    let rows: i64 = outer.iter().product();
    let input = as_contiguous(call, input)?.as_strided(&[rows, n], &[n, 1], 0);
    Ok(Rows { input, weight: row(weight)?, bias: row(bias)?, statistics, n })
}

group! {
    /// What both directions take.
    struct Operands<'a> {
        input: &'a View,
        normalized_shape: &'a [i64],
        weight: Option<&'a View>,
        bias: Option<&'a View>,
    }
}

fn layer_norm(call: &mut Call, operands: Operands, eps: f64) -> Result<()> {
    let Operands { input, normalized_shape: shape, weight, bias } = operands;
    let rows = checked_rows(call, input, shape, weight, bias)?;
    check!(input.dtype.is_float(), NotImplemented, "\"LayerNormKernelImpl\" not implemented for '{}'", input.dtype);
    let dtype = parameter_dtype(input, &[weight, bias])?;
    let out = call.empty(input.dtype, &input.sizes)?;
    let (mean, scale) = (call.empty(dtype, &rows.statistics)?, call.empty(dtype, &rows.statistics)?);
    if let Some(in_registers) = rows.in_registers(Norm::Layer) {
        in_registers.forward(call, eps, &out, Some(&mean), &scale)?;
    } else {
        let axes = Axes::of_dims(&[1], 2, false);
        moments(call, &rows.input, axes, eps, &[&rows.flat(&mean), &rows.flat(&scale)])?;
        let terms = NormalizationTerms {
            mean: Some(rows.of_rows(&mean)),
            scale: Some(rows.of_rows(&scale)),
            weight: rows.weight.as_ref().map(|t| rows.of_columns(t)),
            bias: rows.bias.as_ref().map(|t| rows.of_columns(t)),
        };
        terms.normalize(call, &rows.input, &rows.like_input(&out))?;
    }
    for t in [out, mean, scale] {
        call.ret(t);
    }
    Ok(())
}

fn backward(call: &mut Call, grad: &View, operands: Operands, mean: &View, scale: &View, mask: &[u8]) -> Result<()> {
    let Operands { input, normalized_shape: shape, weight, bias } = operands;
    let rows = checked_rows(call, input, shape, weight, bias)?;
    check!(
        input.dtype.is_float(),
        NotImplemented,
        "\"LayerNormBackwardKernelImpl\" not implemented for '{}'",
        input.dtype
    );
    let (mean, scale) = (as_contiguous(call, mean)?, as_contiguous(call, scale)?);
    let row_count: i64 = rows.statistics.iter().product();
    check!(
        grad.sizes == input.sizes && mean.numel() == row_count && scale.numel() == row_count,
        Runtime,
        "{}: gradient {} and statistics {} do not belong to the input {}",
        call.name,
        grad.describe(),
        mean.describe(),
        input.describe()
    );
    let dtype = parameter_dtype(input, &[weight, bias])?;
    let wants = |i: usize| mask.get(i).is_some_and(|&m| m != 0);
    let grad = rows.like_input(&as_contiguous(call, grad)?);
    let mut of_input = None;
    if wants(0) {
        let out = call.empty(input.dtype, &input.sizes)?;
        let flat = rows.like_input(&out);
        match rows.in_registers(Norm::Layer) {
            Some(in_registers) => in_registers.backward(call, &grad, Some(&mean), &scale, &flat)?,
            None => rows.of_streamed_input(call, &grad, Some(&mean), &scale, &flat)?,
        }
        of_input = Some(out);
    }
    let (mut of_weight, mut of_bias) = (None, None);
    if wants(1) || wants(2) {
        let sums = [call.empty(dtype, shape)?, call.empty(dtype, shape)?];
        let flat = sums.each_ref().map(|t| t.as_strided(&[rows.n], &[1], 0));
        rows.of_parameters(call, &grad, Some(&mean), &scale, &[&flat[0], &flat[1]])?;
        let [product, total] = sums;
        of_weight = wants(1).then_some(product);
        of_bias = wants(2).then(|| cast(call, &total, bias.map_or(dtype, |b| b.dtype))).transpose()?;
    }
    for t in [of_input, of_weight, of_bias] {
        call.ret_optional(t);
    }
    Ok(())
}
