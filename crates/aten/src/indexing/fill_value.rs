//! The value that fills under a mask or at indices, given as a tensor: it must fit the dtype that
//! it is converted to.

use crate::operator::call::Call;
use crate::operator::conversion::check_fits;
use crate::operator::error::Result;
use dml_compute::indexing::fill_value::check_tensor;
use dml_compute::pointwise::kernel::Input;
use dml_kernel::DType;

/// Checks that `dtype` can hold a value. Of a tensor on the device, whose value is not known yet, a
/// kernel reports it where there are numbers of its dtype that do not fit.
pub fn check_value(call: &Call, value: &Input, dtype: DType) -> Result<()> {
    match value {
        Input::Number(number, _) => check_fits(*number, dtype),
        Input::Tensor(value) => Ok(check_tensor(call, value, dtype)?),
    }
}
