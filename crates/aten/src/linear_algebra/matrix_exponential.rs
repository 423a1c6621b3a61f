//! The exponential of matrices, by scaling and squaring Taylor polynomials.
//!
//! Bader, Blanes, Casas, "Computing the matrix exponential with an optimized Taylor polynomial
//! approximation", 2019: polynomials of degrees 1, 2, 4, 8, 12 and 18 with few products. As on the
//! CPU the 1-norm of each matrix decides which it is. So the host waits for the norms, as on CUDA;
//! then matrices of one degree stand one after another, those that are squared most often last.

use crate::linear_algebra::arguments;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operators;
use dml_compute::linear_algebra::functions::MATRIX_EXP_SINGLE;
use dml_compute::linear_algebra::matrix_exponential::exponentials;
use dml_compute::pointwise::kernel::{self, Input as Operand};
use dml_compute::view::View;

operators! {
    matrix_exp(self) {
        "aten::linalg_matrix_exp(Tensor self) -> Tensor",
    }
}

/// The exponentials of `[.., n, n]`, of halves computed in float32.
fn matrix_exp(call: &mut Call, a: &View) -> Result<()> {
    arguments::check_square(a, "linalg.matrix_exp", "A")?;
    arguments::check_floats(a, "linalg.matrix_exp")?;
    let out = call.empty(a.dtype, &a.sizes)?;
    if a.numel() > 0 {
        if a.size(-1) == 1 {
            kernel::run(call, &MATRIX_EXP_SINGLE, &[&out], &[Operand::Tensor(a.clone())], a.dtype)?;
        } else {
            exponentials(call, a, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}
