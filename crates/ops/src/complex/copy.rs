//! Copies of complex tensors, to and from reals too.

use super::parts::{as_bits, parts};
use super::pointwise::parts_of;
use crate::movement::copy;
use crate::operator::call::{Call, Scalar};
use crate::operator::conversion::check_all_fit;
use crate::operator::error::{Error, Result};
use crate::pointwise::kernel::{self, Input};
use crate::tensor::{DeviceKind, Tensor, overlap};
use dml_kernel::math::complex::Complex;
use dml_kernel::{DType, ScalarType};

/// A copy of another dtype, or with another sign of a part. One side that is on the host has the other's dtype: the caller
/// prepares it so.
pub fn convert(call: &mut Call, src: &Tensor, dst: &Tensor) -> Result<()> {
    let here = DeviceKind::Dml(call.device.index() as u8);
    match (src.place == here, dst.place == here) {
        (true, true) => device_copy(call, src, dst)?,
        (true, false) if dst.place != DeviceKind::Other && src.sizes == dst.sizes => {
            let staged = call.empty(dst.dtype, &src.sizes)?;
            let staged = Tensor { negative: dst.negative, conjugate: dst.conjugate, ..staged };
            device_copy(call, src, &staged)?;
            copy::copy_tensor(call, &as_or_bits(&staged), &as_or_bits(dst), true)?;
        }
        (false, true) if src.place == DeviceKind::Cpu && src.is_contiguous() && !src.conjugate && !src.negative => {
            let staged = call.empty(src.dtype, &src.sizes)?;
            copy::copy_tensor(call, &as_or_bits(src), &as_or_bits(&staged), true)?;
            device_copy(call, &staged, dst)?;
        }
        _ => return Err(Error::Fallback("copy of complex numbers between these places".into())),
    }
    call.ret(dst.clone());
    Ok(())
}

/// Bits of complex numbers, reals as they are.
fn as_or_bits(t: &Tensor) -> Tensor {
    if t.dtype.is_complex() { as_bits(t) } else { t.clone() }
}

/// Copies on one device; `src` broadcasts to `dst`, and either may be of reals.
pub fn device_copy(call: &Call, src: &Tensor, dst: &Tensor) -> Result<()> {
    call.broadcast(&src.sizes, &dst.sizes)?;
    overlap::check_internal(dst)?;
    let (negated, conjugated) = (src.negative != dst.negative, src.conjugate != dst.conjugate);
    if src.dtype == dst.dtype && !negated && !conjugated {
        return copy::device_copy(call, &as_bits(src), &as_bits(dst));
    }
    let whole = |t: &Tensor| if t.dtype.is_complex() { parts(t).to_vec() } else { vec![t.clone()] };
    let (from, to) = (whole(src), whole(dst));
    let inputs: Vec<Input> = from.into_iter().map(Input::Tensor).collect();
    let outs: Vec<&Tensor> = to.iter().collect();
    let family = match (negated, conjugated) {
        (false, false) => "complex_cast",
        (true, false) => "complex_copy_neg",
        (false, true) => "complex_copy_conj",
        (true, true) => "complex_copy_neg_conj",
    };
    // Of a tensor of reals the sign is the only part.
    kernel::run(call, family, &outs, &inputs, to[0].dtype, |_, v| {
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
pub fn fill_with(call: &Call, out: &Tensor, value: Scalar) -> Result<()> {
    let (re, im) = parts_of(value);
    let dtype = out.dtype.real();
    check_all_fit(&[Scalar::Double(re), Scalar::Double(im)], dtype)?;
    let [out_re, out_im] = parts(&overlap::unexpanded(out));
    let inputs = [re, im].map(|x| Input::Number(Scalar::Double(x), dtype));
    kernel::run(call, "complex_fill", &[&out_re, &out_im], &inputs, dtype, |_, v| v.to_vec())
}

/// The tensor in another complex dtype, contiguous; itself if nothing changes.
pub fn cast(call: &Call, t: &Tensor, dtype: DType) -> Result<Tensor> {
    if t.dtype == dtype {
        return Ok(t.clone());
    }
    let out = call.empty(dtype, &t.sizes)?;
    device_copy(call, t, &out)?;
    Ok(out)
}
