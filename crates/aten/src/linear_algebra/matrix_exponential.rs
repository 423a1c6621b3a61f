//! The operator of the exponential of matrices, which
//! [`dml_compute::linear_algebra::matrix_exponential`] computes.

use crate::linear_algebra::arguments;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::linear_algebra::matrix_exponential::exponentials;
use dml_compute::view::View;

operators! {
    matrix_exp(self).complex(Complex::Run(complex::matrix_exp)) {
        "aten::linalg_matrix_exp(Tensor self) -> Tensor",
    }
}

/// The exponentials of `[.., n, n]`; for halves computed in float32.
fn matrix_exp(call: &mut Call, a: &View) -> Result<()> {
    arguments::check_square(a, "linalg.matrix_exp", "A")?;
    arguments::check_floats(a, "linalg.matrix_exp")?;
    let out = call.empty(a.dtype, &a.sizes)?;
    exponentials(call, a, &out)?;
    call.ret(out);
    Ok(())
}
