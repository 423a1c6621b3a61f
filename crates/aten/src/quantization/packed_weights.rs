//! Products of floats with scaled weights of 8 or 4 bits.
//!
//! A few rows are multiplied by the quantised weights directly; for more rows, weights are
//! dequantised to the floats' dtype first, so that matrix units can multiply.

use crate::movement::copies::checked_copy;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::pointwise::activation::{RELU, SILU};
use dml_compute::quantization::interleaved::{self, Interleaved};
use dml_compute::quantization::nibbles::{self, Nibbles};
use dml_compute::quantization::packed_weights::{is_narrow_or_single, multiply_by_columns};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    int8(self, mat2, scales) {
        "aten::_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
    }
    pack_int4(self, innerKTiles) {
        "aten::_convert_weight_to_int4pack(Tensor self, int innerKTiles) -> Tensor",
    }
    int4(self, mat2, qGroupSize, qScaleAndZeros) {
        "aten::_weight_int4pack_mm(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
    }
    mixed(input, weight, scale, bias, activation) {
        "aten::_mixed_dtypes_linear(Tensor input, Tensor weight, Tensor scale, *, Tensor? bias=None, str? activation=None) -> Tensor",
    }
}

/// `x` is `[m, k]`, `w` `[n, k]` of int8; the sums are scaled in float32, by a number a column.
pub fn int8(call: &mut Call, x: &View, w: &View, scales: &View) -> Result<()> {
    let name = "_weight_int8pack_mm_cpu";
    check!(is_narrow_or_single(x.dtype), Runtime, "{name} : expect A to be either 32-bit or 16-bit float tensor.");
    check!(x.dim() > 0 && x.strides[x.dim() - 1] == 1, Runtime, "{name} : A must be contiguous on the last dimension.");
    check!(x.dim() == 2, Runtime, "{name} : expect A to be 2D tensor.");
    check!(w.dtype == DType::I8, Runtime, "{name} : expect B to be int8 tensor.");
    check!(w.is_contiguous(), Runtime, "{name} : expect B to be contiguous.");
    let (m, k) = (x.sizes[0], x.sizes[1]);
    check!(w.dim() == 2 && w.sizes[1] == k, Runtime, "{name} : expect B.size(1) == {k}");
    let n = w.sizes[0];
    check!(scales.dim() == 1 && scales.sizes[0] == n, Runtime, "{name} : expect scales to be 1d tensor with size {n}");
    let x = &as_contiguous(call, x)?;
    let out = call.empty(x.dtype, &[m, n])?;
    multiply_by_columns(call, x, w, scales, &out)?;
    call.ret(out);
    Ok(())
}

/// `w` is `[n, k / 2]`, two numbers a byte, the first one in the upper half. The result has the
/// sizes of CUDA's; its contents are private to [`int4`]: the bytes of `w`, and zeros for rows up
/// to a multiple of 8.
fn pack_int4(call: &mut Call, w: &View, tiles: i64) -> Result<()> {
    check!(w.dim() == 2, Runtime, "{}: expected a matrix, got {}", call.name, w.describe());
    check!(w.dtype == DType::U8, Runtime, "{}: expected a tensor of uint8, got {}", call.name, w.dtype);
    check!(w.is_contiguous(), Runtime, "{}: expected a contiguous tensor", call.name);
    check!(matches!(tiles, 2 | 4 | 8), Runtime, "innerKTiles needs to be 2, 4, or 8");
    let [n, half] = [w.sizes[0], w.sizes[1]];
    let steps = 16 * tiles;
    check!(2 * half % steps == 0, Runtime, "{}: {} columns are no multiple of {steps}", call.name, 2 * half);
    let packed = call.empty(DType::I32, &[(n + 7) / 8, 2 * half / steps, 32, tiles / 2])?;
    let padded = (n + 7) / 8 * 8;
    let bytes = View { dtype: DType::U8, ..packed.as_strided(&[padded, half], &[half, 1], 0) };
    if padded > n {
        fill_with(call, &bytes.narrow(0, n, padded - n), Number::Int(0))?;
    }
    checked_copy(call, w, &bytes.narrow(0, 0, n))?;
    call.ret(packed);
    Ok(())
}

/// `x` is `[m, k]`, `w` is the result of [`pack_int4`], `parameters` are `[k / group, n, 2]`: for
/// each group of adjacent weights along k, the scale and the number that level 8 represents.
/// Weights are rounded to the dtype of `x`.
fn int4(call: &mut Call, x: &View, w: &View, group: i64, parameters: &View) -> Result<()> {
    let name = call.name;
    check!(x.dim() == 2, Runtime, "{name}: expected a matrix, got {}", x.describe());
    check!(w.dim() == 4, Runtime, "{name}: expected weights of 4 dimensions, got {}", w.describe());
    check!(is_narrow_or_single(x.dtype), Runtime, "{name}: expected x to be f32/f16/bf16, got {}", x.dtype);
    check!(w.dtype == DType::I32, Runtime, "{name}: expected w to be int32, got {}", w.dtype);
    check!(x.is_contiguous() && w.is_contiguous(), Runtime, "{name}: expected contiguous tensors");
    check!(matches!(group, 32 | 64 | 128 | 256), Runtime, "{name}: groups of {group} are not supported");
    let [m, k] = [x.sizes[0], x.sizes[1]];
    let n = 8 * w.sizes[0];
    check!(w.numel() * 8 == n * k, Runtime, "{name}: weights {} do not match {k} columns", w.describe());
    check!(k % group == 0, Runtime, "{name}: {k} columns are no multiple of {group}");
    check!(
        parameters.sizes.as_slice() == [k / group, n, 2] && parameters.dtype == x.dtype,
        Runtime,
        "{name}: expected scales and zeros [{}, {n}, 2] of {}, got {}",
        k / group,
        x.dtype,
        parameters.describe()
    );
    let parameters = &as_contiguous(call, parameters)?;
    let out = call.empty(x.dtype, &[m, n])?;
    nibbles::multiply(call, x, Nibbles { words: w, parameters, group, size: [n, k] }, &out)?;
    call.ret(out);
    Ok(())
}

/// `input` is `[.., k]`; `weight` is `[k, n]` of uint8, or `[k, n / 2]` with two numbers a byte, in
/// the order of CUDA's kernels ([`interleaved`]); scale and bias are 1-dim. Scaled weights are
/// rounded to the input's dtype.
fn mixed(
    call: &mut Call,
    input: &View,
    weight: &View,
    scale: &View,
    bias: Option<&View>,
    activation: Option<&str>,
) -> Result<()> {
    let (name, dtype) = ("_mixed_dtypes_linear", input.dtype);
    let half = matches!(dtype, DType::F16 | DType::BF16);
    check!(half, Runtime, "{name}: The input datatype {dtype} is not supported");
    check!(weight.dtype == DType::U8, Runtime, "{name}: The weight datatype {} is not supported", weight.dtype);
    check!(scale.dtype == dtype, Runtime, "{name}: Expected scale datatype {dtype} but got {}", scale.dtype);
    let bias = bias.filter(|bias| bias.numel() > 0);
    if let Some(bias) = bias {
        check!(bias.dtype == dtype, Runtime, "{name}: Expected bias datatype {dtype} but got {}", bias.dtype);
    }
    check!(input.dim() > 0, Runtime, "{name}: Expected input argument to have dimensions");
    check!(weight.dim() == 2, Runtime, "{name}: Expected weight argument to be 2D tensor, got {} dims", weight.dim());
    check!(weight.is_contiguous(), Runtime, "{name}: Expected weight argument to be contiguous");
    check!(scale.dim() == 1, Runtime, "{name}: Expected scale argument to be 1D tensor, got {} dims", scale.dim());
    let (k, n) = (weight.sizes[0], scale.sizes[0]);
    check!(
        input.size(-1) == k,
        Runtime,
        "{name}: Expected input argument to have {k} columns, but got {}",
        input.size(-1)
    );
    check!(
        weight.sizes[1] == n || 2 * weight.sizes[1] == n,
        Runtime,
        "{name}: Expected weight argument to have either {n} or {} columns, but got {}",
        n as f64 / 2.0,
        weight.sizes[1]
    );
    if let Some(bias) = bias {
        check!(bias.dim() == 1, Runtime, "{name}: Expected bias argument to be 1D tensor, got {} dims", bias.dim());
        check!(
            bias.sizes[0] == n,
            Runtime,
            "{name}: Expected bias argument to have {n} elements, but got {}",
            bias.sizes[0]
        );
    }
    check!(
        k % 64 == 0 && n % 64 == 0,
        Runtime,
        "{name}: Number of rows/columns of the weight matrix must be divisible by 64"
    );
    let activation = match activation.unwrap_or("none") {
        "none" => None,
        "relu" => Some(&RELU),
        "silu" => Some(&SILU),
        other => return Err(Error::Runtime(format!("{name}: Activation \"{other}\" is not supported"))),
    };

    let mut sizes = input.sizes.clone();
    if let Some(last) = sizes.last_mut() {
        *last = n;
    }
    let rows = sizes[..sizes.len() - 1].iter().product();
    let flat = as_contiguous(call, input)?.as_strided(&[rows, k], &[k, 1], 0);
    let packed = Interleaved { bytes: weight, scale: &as_contiguous(call, scale)?, size: [n, k] };
    let out = call.empty(dtype, &sizes)?;
    let matrix = out.as_strided(&[rows, n], &[n, 1], 0);
    interleaved::multiply(call, &flat, packed, bias, activation, &matrix)?;
    call.ret(out);
    Ok(())
}
