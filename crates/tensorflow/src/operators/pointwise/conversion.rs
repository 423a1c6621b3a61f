//! Conversions between dtypes.

use crate::c_api::Attributes;
use crate::error::Result;
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::ALL_AND_I32;
use crate::operators::common::elementwise::compute;
use crate::operators::common::functions;
use dml_compute::complex::{as_real, parts};
use dml_compute::movement::copy;
use dml_compute::{Context, View};
use dml_kernel::DType;

/// A float tensor in a shorter dtype's precision, cut off; the tensor itself if it is not of
/// floats.
fn truncated(cx: &Context, x: View, out: &View) -> Result<View> {
    let to = out.dtype.real();
    // TensorFlow cuts off only float32 for bfloat16, and rounds others.
    let rounds = to == DType::BF16 && x.dtype.real() != DType::F32;
    if !x.dtype.real().is_float() || !to.is_float() || rounds {
        return Ok(x);
    }
    let cut = cx.empty(x.dtype, &x.sizes)?;
    let real = |t: &View| if t.dtype.is_complex() { as_real(t) } else { t.clone() };
    compute(cx, functions::TRUNCATED.of(to), &real(&cut), &[real(&x)], &[])?;
    Ok(cut)
}

/// `Cast`. A complex number becomes its real part. `Truncate`: floats are rounded towards 0.
fn cast(attributes: &Attributes) -> Result<impl Fn(&Call) -> Result<()> + use<>> {
    let truncate = attributes.bool("Truncate")?;
    let is_same = attributes.dtype("SrcT")? == attributes.dtype("DstT")?;
    Ok(move |call: &Call| {
        if is_same {
            return call.pass_on(0, 0, &call.sizes(0)?);
        }
        let x = call.input(0)?;
        let out = call.output(0, &x.sizes)?;
        let cx = call.cx();
        let x = if truncate { truncated(&cx, x, &out)? } else { x };
        let x = if x.dtype.is_complex() && !out.dtype.is_complex() { parts(&x)[0].clone() } else { x };
        if x.dtype.is_complex() || out.dtype.is_complex() {
            return Ok(dml_compute::complex::device_copy(&cx, &x, &out)?);
        }
        Ok(copy::device_copy(&cx, &x, &out)?)
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    vec![Operator::new("Cast", cast).of("SrcT", ALL_AND_I32).of("DstT", ALL_AND_I32)]
}
