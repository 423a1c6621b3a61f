//! Linear layers whose input is rounded by its own range: those of `torch.ao.nn.quantized.dynamic`.

use crate::matmul::product::multiply;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::quantization::observer::{Options, State, observe};
use crate::quantization::packed_weights::int8;
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, cast, fill_with};
use dml_compute::pointwise::activation::RELU;
use dml_compute::pointwise::arithmetic::ADD;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::pointwise::ternary::ADDCMUL;
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::sum_new;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};
use dml_kernel::DType;

operators! {
    linear_dynamic(self, weight, scales, shifts, bias, relu, reduce_range) {
        "torch_dml::linear_dynamic(Tensor self, Tensor weight, Tensor? scales, Tensor? shifts, Tensor? bias, bool relu, bool reduce_range) -> Tensor",
    }
}

/// `x` (`[.., k]`) times a weight (`[n, k]`) of int8 with `scales` (`[n]`) and, unless all zero
/// points are 0, `shifts` (`[n]`): scales times zero points. A weight without scales is of float16,
/// and then `x` is not rounded. `reduce_range` rounds it to 7 bits in place of 8. All but the
/// weight is float32.
fn linear_dynamic(
    call: &mut Call,
    x: &View,
    weight: &View,
    scales: Option<&View>,
    shifts: Option<&View>,
    bias: Option<&View>,
    relu: bool,
    reduce_range: bool,
) -> Result<()> {
    let [n, k] = [call.size_of(weight, 0)?, call.size_of(weight, 1)?];
    check!(x.dtype == DType::F32, Runtime, "expected scalar type Float but found {}", x.dtype);
    check!(x.dim() >= 2, Runtime, "The dimension of input tensor should be larger than or equal to 2");
    check!(
        x.size(-1) == k,
        Runtime,
        "a dynamic linear layer of {k} inputs was given a tensor of {:?}",
        x.sizes.as_slice()
    );
    let leading = &x.sizes[..x.dim() - 1];
    let m = leading.iter().product();
    let rows = as_contiguous(call, x)?.as_strided(&[m, k], &[k, 1], 0);
    let y = match scales {
        None => multiply(call, &rows, &cast(call, weight, DType::F32)?.transpose(0, 1), &[m, n])?,
        Some(_) if rows.numel() == 0 => filled(call, &[m, n], DType::F32, Number::Int(0))?,
        Some(scales) => {
            let rounded = rounded(call, &rows, if reduce_range { 127 } else { 255 })?;
            let y = call.result_of(|call| int8(call, &rounded, weight, scales))?;
            if let Some(shifts) = shifts {
                let sums = sum_new(call, &rounded, Axes::of_dims(&[1], 2, true))?;
                let minus_one = Input::Number(Number::Int(-1), DType::F32);
                let inputs = [Input::Tensor(y.clone()), Input::Tensor(sums), Input::Tensor(shifts.clone()), minus_one];
                kernel::run(call, &ADDCMUL, &[&y], &inputs, DType::F32)?;
            }
            y
        }
    };
    if let Some(bias) = bias {
        kernel::run(call, &ADD, &[&y], &[Input::Tensor(y.clone()), Input::Tensor(bias.clone())], DType::F32)?;
    }
    if relu {
        kernel::run(call, &RELU, &[&y], &[Input::Tensor(y.clone())], DType::F32)?;
    }
    let sizes: Dims = leading.iter().copied().chain([n]).collect();
    let shaped = y.as_strided(&sizes, &View::contiguous_strides(&sizes), 0);
    let y = if x.dim() == 2 { y } else { call.host.view(&y, &shaped)? };
    call.ret(y);
    Ok(())
}

/// The numbers that `x` is rounded to, with levels from 0 to `highest` over its range.
fn rounded(call: &Call, x: &View, highest: i64) -> Result<View> {
    let one = |dtype, value| filled(call, &[1], dtype, value);
    let on = one(DType::I64, Number::Int(1))?;
    let least = one(DType::F32, Number::Double(f64::INFINITY))?;
    let largest = one(DType::F32, Number::Double(f64::NEG_INFINITY))?;
    let (scale, zero) = (call.empty(DType::F32, &[1])?, call.empty(DType::I32, &[1])?);
    let state = State {
        observer_on: &on,
        fake_quant_on: &on,
        running_min: &least,
        running_max: &largest,
        scale: &scale,
        zero_point: &zero,
    };
    let options = Options {
        averaging_const: 1.0,
        quant_min: 0,
        quant_max: highest,
        ch_axis: -1,
        per_row_fake_quant: false,
        symmetric_quant: false,
    };
    call.result_of(|call| observe(call, x, state, options))
}

fn filled(call: &Call, sizes: &[i64], dtype: DType, value: Number) -> Result<View> {
    let t = call.empty(dtype, sizes)?;
    fill_with(call, &t, value)?;
    Ok(t)
}
