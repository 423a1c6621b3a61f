//! Copies of complex tensors, to and from reals too.

use crate::complex::parts::{as_bits, parts};
use crate::complex::pointwise::parts_of;
use crate::context::Context;
use crate::error::Result;
use crate::movement::copy;
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar;
use crate::view::{View, overlap};
use dml_kernel::math::complex::Complex;
use dml_kernel::{DType, ScalarType};

/// Bits of complex numbers, reals as they are.
pub fn as_or_bits(t: &View) -> View {
    if t.dtype.is_complex() { as_bits(t) } else { t.clone() }
}

/// Copies on one device; `src` broadcasts to `dst`, and either may be of reals.
pub fn device_copy(cx: &Context, src: &View, dst: &View) -> Result<()> {
    let (negated, conjugated) = (src.negative != dst.negative, src.conjugate != dst.conjugate);
    if src.dtype == dst.dtype && !negated && !conjugated {
        return copy::device_copy(cx, &as_bits(src), &as_bits(dst));
    }
    let whole = |t: &View| if t.dtype.is_complex() { parts(t).to_vec() } else { vec![t.clone()] };
    let (from, to) = (whole(src), whole(dst));
    let inputs: Vec<Input> = from.into_iter().map(Input::Tensor).collect();
    let outs: Vec<&View> = to.iter().collect();
    let family = match (negated, conjugated) {
        (false, false) => "complex_cast",
        (true, false) => "complex_copy_neg",
        (false, true) => "complex_copy_conj",
        (true, true) => "complex_copy_neg_conj",
    };
    // Of a tensor of reals the sign is the only part.
    kernel::run(cx, family, &outs, &inputs, to[0].dtype, |_, v| {
        if v[0].scalar() == ScalarType::Bool {
            return vec![v[1..].iter().fold(v[0], |any, &part| any | part)];
        }
        let z = v.get(1).map_or_else(|| Complex::real(v[0]), |&im| Complex::new(v[0], im));
        let z = if conjugated { z.conjugate() } else { z };
        let z = if negated && v[0].scalar().is_float() { z.negated() } else { z };
        if outs.len() == 2 { z.parts() } else { vec![z.re] }
    })
}

/// Sets every element to a number.
pub fn fill_with(cx: &Context, out: &View, value: Scalar) -> Result<()> {
    let (re, im) = parts_of(value);
    let dtype = out.dtype.real();
    let [out_re, out_im] = parts(&overlap::unexpanded(out));
    let inputs = [re, im].map(|x| Input::Number(Scalar::Double(x), dtype));
    kernel::run(cx, "complex_fill", &[&out_re, &out_im], &inputs, dtype, |_, v| v.to_vec())
}

/// The tensor in another complex dtype, contiguous; itself if nothing changes.
pub fn cast(cx: &Context, t: &View, dtype: DType) -> Result<View> {
    if t.dtype == dtype {
        return Ok(t.clone());
    }
    let out = cx.empty(dtype, &t.sizes)?;
    device_copy(cx, t, &out)?;
    Ok(out)
}
