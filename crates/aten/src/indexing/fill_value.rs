//! The value of a fill by mask or by indices, given as a tensor: it has to be in the range of the
//! result's dtype.

use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use dml_compute::indexing::fill_value::check_tensor;
use dml_compute::pointwise::kernel::Input;
use dml_kernel::DType;

/// Checks that a value is in the range of `dtype`. The value of a device tensor is not known on the
/// host: a kernel checks it if its dtype has numbers out of range.
pub fn check_value(call: &Call, value: &Input, dtype: DType) -> Result<()> {
    match value {
        Input::Number(number, _) => check_fits(*number, dtype),
        Input::Tensor(value) => Ok(check_tensor(call, value, dtype)?),
    }
}
