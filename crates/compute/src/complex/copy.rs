//! Copies of complex tensors, also to and from real tensors.

use crate::complex::functions;
use crate::complex::parts::{as_bits, parts};
use crate::complex::pointwise::parts_of_number;
use crate::context::Context;
use crate::error::Result;
use crate::movement::copy;
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar;
use crate::view::{View, overlap};
use dml_kernel::DType;

/// A complex tensor as its bits (see [`as_bits`]); a real tensor as it is.
pub fn complex_as_bits(t: &View) -> View {
    if t.dtype.is_complex() { as_bits(t) } else { t.clone() }
}

/// Copies on one device. `src` broadcasts to `dst`; either may be real.
pub fn device_copy(cx: &Context, src: &View, dst: &View) -> Result<()> {
    let (negated, conjugated) = (src.negative != dst.negative, src.conjugate != dst.conjugate);
    if src.dtype == dst.dtype && !negated && !conjugated {
        return copy::device_copy(cx, &as_bits(src), &as_bits(dst));
    }
    let whole = |t: &View| if t.dtype.is_complex() { parts(t).to_vec() } else { vec![t.clone()] };
    let (from, to) = (whole(src), whole(dst));
    let inputs: Vec<Input> = from.into_iter().map(Input::Tensor).collect();
    let outs: Vec<&View> = to.iter().collect();
    // For a real tensor only the sign matters.
    let function = match (negated, conjugated) {
        (false, false) => &functions::CAST,
        (true, false) => &functions::COPY_NEG,
        (false, true) => &functions::COPY_CONJ,
        (true, true) => &functions::COPY_NEG_CONJ,
    };
    kernel::run(cx, function, &outs, &inputs, to[0].dtype)
}

/// Sets every element to a number.
pub fn fill_with(cx: &Context, out: &View, value: Scalar) -> Result<()> {
    let (re, im) = parts_of_number(value);
    let dtype = out.dtype.real();
    let [out_re, out_im] = parts(&overlap::unexpanded(out));
    let inputs = [re, im].map(|x| Input::Number(Scalar::Double(x), dtype));
    kernel::run(cx, &functions::FILL, &[&out_re, &out_im], &inputs, dtype)
}

/// The tensor in another complex dtype, contiguous; the tensor itself if nothing changes.
pub fn cast(cx: &Context, t: &View, dtype: DType) -> Result<View> {
    if t.dtype == dtype {
        return Ok(t.clone());
    }
    let out = cx.empty(dtype, &t.sizes)?;
    device_copy(cx, t, &out)?;
    Ok(out)
}
