//! Copies of complex tensors, to and from reals too.

use crate::movement::copies;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::tensor::overlap;
use dml_compute::complex::copy::{self, as_or_bits};
use dml_compute::view::{Location, View};

/// Copies on one device; `src` broadcasts to `dst`, which may not be expanded. Either may be of
/// reals.
pub fn checked_copy(call: &Call, src: &View, dst: &View) -> Result<()> {
    call.broadcast(&src.sizes, &dst.sizes)?;
    overlap::check_internal(dst)?;
    Ok(copy::device_copy(call, src, dst)?)
}

/// A copy of another dtype, or with another sign of a part. One side that is on the host has the
/// other's dtype: the caller prepares it so.
pub fn convert(call: &mut Call, src: &View, dst: &View) -> Result<()> {
    let here = Location::Device(call.device.index() as u8);
    match (src.location == here, dst.location == here) {
        (true, true) => checked_copy(call, src, dst)?,
        (true, false) if dst.location != Location::Foreign && src.sizes == dst.sizes => {
            let staged = call.empty(dst.dtype, &src.sizes)?;
            let staged = View { negative: dst.negative, conjugate: dst.conjugate, ..staged };
            checked_copy(call, src, &staged)?;
            copies::copy_tensor(call, &as_or_bits(&staged), &as_or_bits(dst), true)?;
        }
        (false, true) if src.location == Location::Host && src.is_contiguous() && !src.conjugate && !src.negative => {
            let staged = call.empty(src.dtype, &src.sizes)?;
            copies::copy_tensor(call, &as_or_bits(src), &as_or_bits(&staged), true)?;
            checked_copy(call, &staged, dst)?;
        }
        _ => return Err(Error::Fallback("copy of complex numbers between these places".into())),
    }
    call.ret(dst.clone());
    Ok(())
}
