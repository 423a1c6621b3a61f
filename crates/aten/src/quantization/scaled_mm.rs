//! Products of scaled matrices of 8-bit floats.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::quantization::fake_quantize::single;
use crate::{check, operators};
use dml_compute::pointwise::kernel::Input;
use dml_compute::quantization::scaled_product::scaled_product;
use dml_compute::view::{Location, View};
use dml_kernel::DType;

operators! {
    scaled_mm(self, mat2, scale_a, scale_b, bias, out_dtype, out).float8(float8::own) {
        "aten::_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
        "aten::_scaled_mm.out(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `(a * scale_a) @ (b * scale_b) + bias`, accumulated in float32. A scale is a single number, or
/// one for each row of the first and each column of the second matrix, as on CUDA. As on the CPU,
/// results are not scaled.
fn scaled_mm(
    call: &mut Call,
    a: &View,
    b: &View,
    scale_a: &View,
    scale_b: &View,
    bias: Option<&View>,
    out_dtype: Option<i64>,
    out: Out,
) -> Result<()> {
    check!(a.dim() == 2, Runtime, "mat1 must be a matrix");
    check!(b.dim() == 2, Runtime, "mat2 must be a matrix");
    let ([m, k], [rows, n]) = ([a.sizes[0], a.sizes[1]], [b.sizes[0], b.sizes[1]]);
    check!(k == rows, Runtime, "mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})");
    let scales = [factor(call, scale_a, [m, n], 0)?, factor(call, scale_b, [m, n], 1)?];
    if let Some(bias) = bias {
        check!(bias.numel() == n, Runtime, "Bias must be size {n} but got {}", bias.numel());
    }
    let dtype = match out_dtype {
        None => out.given().map_or(a.dtype, |out| out.dtype),
        Some(code) => DType::from_code(code as u8)
            .filter(|dtype| dtype.is_float())
            .ok_or_else(|| Error::Fallback(format!("{}: this dtype has no kernels", call.name)))?,
    };
    let same = out.given().is_none_or(|out| out.dtype == dtype);
    check!(same, Runtime, "out_dtype must match output matrix type");
    for (t, what) in [(a, "mat1"), (b, "mat2")] {
        check!(t.dtype.is_float8(), Runtime, "Expected {what} to be Float8 matrix got {}", t.dtype);
    }
    let target = call.result(out.given(), dtype, &[m, n])?;
    if let Some(bias) = bias {
        call.check_place(bias)?;
        check!(bias.dim() == 1, Runtime, "{}: expected a row as the bias, got {}", call.name, bias.describe());
    }
    scaled_product(call, [a, b], scales, bias, &target)?;
    call.ret(target);
    Ok(())
}

/// A scale as a factor of the elements of `[m, n]`: one for all, or one for each index of dimension
/// `dim`.
fn factor(call: &Call, scale: &View, sizes: [i64; 2], dim: usize) -> Result<Input> {
    if scale.numel() == 1 {
        return single(call, scale, "scale");
    }
    let mut wanted = [1, 1];
    wanted[dim] = sizes[dim];
    let fits = scale.sizes.as_slice() == wanted && scale.location != Location::Host;
    check!(
        fits,
        Runtime,
        "{}: expected a scale for the whole matrix or {wanted:?} of them, got {}",
        call.name,
        scale.describe()
    );
    Ok(Input::Tensor(scale.clone()))
}
