//! Copies between complex tensors, and between complex and real ones.

use crate::movement::copies;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::tensor::overlap;
use dml_compute::complex::copy::{self, complex_as_bits};
use dml_compute::view::{Location, View};

/// Copies on one device; `src` broadcasts to `dst`, which may not be expanded. Either may be real.
pub fn checked_copy(call: &Call, src: &View, dst: &View) -> Result<()> {
    call.broadcast(&src.sizes, &dst.sizes)?;
    overlap::check_internal(dst)?;
    Ok(copy::device_copy(call, src, dst)?)
}

/// Copies with a conversion of the dtype, or of conjugate and negative bits. A side on the host
/// must have the other side's dtype: the caller prepares it.
pub fn convert(call: &mut Call, src: &View, dst: &View) -> Result<()> {
    let here = Location::Device(call.device.index() as u8);
    match (src.location == here, dst.location == here) {
        (true, true) => checked_copy(call, src, dst)?,
        (true, false) if dst.location != Location::OtherDevice && src.sizes == dst.sizes => {
            let staged = call.empty(dst.dtype, &src.sizes)?;
            let staged = View { negative: dst.negative, conjugate: dst.conjugate, ..staged };
            checked_copy(call, src, &staged)?;
            copies::copy_tensor(call, &complex_as_bits(&staged), &complex_as_bits(dst), true)?;
        }
        (false, true) if src.location == Location::Host && src.is_contiguous() && !src.conjugate && !src.negative => {
            let staged = call.empty(src.dtype, &src.sizes)?;
            copies::copy_tensor(call, &complex_as_bits(src), &complex_as_bits(&staged), true)?;
            checked_copy(call, &staged, dst)?;
        }
        _ => return Err(Error::Fallback("copy of complex numbers between these places".into())),
    }
    call.ret(dst.clone());
    Ok(())
}
