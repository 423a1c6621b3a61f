//! The exponential of complex matrices, as the exponential of real ones of twice the size in which
//! `x + iy` is `[[x, -y], [y, x]]`.

use crate::linear_algebra::arguments;
use crate::movement::copies::checked_copy;
use crate::operator::Operator;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use dml_compute::complex::parts::{from_parts, parts};
use dml_compute::linear_algebra::matrices;
use dml_compute::linear_algebra::matrix_exponential::exponentials;
use dml_compute::view::View;
use dml_kernel::DType;

/// The exponentials of matrices.
pub fn matrix_exp(call: &mut Call, overload: &Operator) -> Result<()> {
    let a = overload.argument(call, "self")?;
    arguments::check_square(a, "linalg.matrix_exp", "A")?;
    if !matches!(a.dtype, DType::C64 | DType::C128) {
        return Err(Error::Fallback(format!("{} of {}", call.name, a.dtype)));
    }
    let out = call.empty(a.dtype, &a.sizes)?;
    if a.numel() > 0 {
        let n = a.size(-1);
        let sizes = matrices::sizes_of(matrices::batch_of(a), &[2 * n, 2 * n]);
        let [whole, result] = [call.empty(a.dtype.real(), &sizes)?, call.empty(a.dtype.real(), &sizes)?];
        let block =
            |t: &View, row: i64, column: i64| t.narrow(t.dim() - 2, row * n, n).narrow(t.dim() - 1, column * n, n);
        let [re, im] = parts(a);
        checked_copy(call, &re, &block(&whole, 0, 0))?;
        checked_copy(call, &re, &block(&whole, 1, 1))?;
        checked_copy(call, &im, &block(&whole, 1, 0))?;
        checked_copy(call, &View { negative: true, ..im }, &block(&whole, 0, 1))?;
        exponentials(call, &whole, &result)?;
        from_parts(call, &block(&result, 0, 0), &block(&result, 1, 0), &out)?;
    }
    call.ret(out);
    Ok(())
}
