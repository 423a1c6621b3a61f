//! Numbers of the host on the device.

use crate::error::Result;
use crate::kernel::Call;
use dml_compute::{Scalar, View, host};
use dml_kernel::DType;

/// Copies numbers to scratch memory of the device, as a vector of a real dtype.
pub fn vector(call: &Call, dtype: DType, numbers: &[Scalar]) -> Result<View> {
    let cx = call.cx();
    let row = cx.empty(dtype, &[numbers.len() as i64])?;
    let bytes = host::elements(dtype, numbers);
    if !bytes.is_empty() {
        cx.upload(row.data, &bytes)?;
    }
    Ok(row)
}
