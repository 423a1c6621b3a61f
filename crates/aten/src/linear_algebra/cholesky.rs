//! The operators of the Cholesky decomposition `A = L L^H`, which
//! [`dml_compute::linear_algebra::cholesky`] computes.

use crate::linear_algebra::arguments;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::operators;
use dml_compute::linear_algebra::cholesky::decomposed;
use dml_compute::linear_algebra::matrices::{self, Update, adjoint};
use dml_compute::linear_algebra::triangular::{self, Triangle};
use dml_compute::movement::copy::read_numbers;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    cholesky_ex(self, upper, check_errors, outs).complex(Complex::Own) {
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        "aten::linalg_cholesky_ex.L(Tensor self, *, bool upper=False, bool check_errors=False, Tensor(a!) L, Tensor(b!) info) -> (Tensor(a!) L, Tensor(b!) info)",
    }
    cholesky(self, upper, out).complex(Complex::Own) {
        "aten::cholesky(Tensor self, bool upper=False) -> Tensor",
        "aten::cholesky.out(Tensor self, bool upper=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    cholesky_solve(self, A, upper).complex(Complex::Own) {
        "aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    }
    cholesky_inverse(self, upper, out).complex(Complex::Own) {
        "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
        "aten::cholesky_inverse.out(Tensor self, bool upper=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `info` is 0, or the order of the first leading minor that is not positive-definite.
fn cholesky_ex(call: &mut Call, a: &View, upper: bool, check_errors: bool, outs: Outs) -> Result<()> {
    arguments::check_square(a, "linalg.cholesky", "A")?;
    arguments::check_floats(a, "linalg.cholesky")?;
    arguments::check_kernels_of_elements(a, "cholesky_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype)?;
    structured::check_given(given(1), DType::I32)?;
    let (l, info) = decomposed(call, a, upper)?;
    if check_errors {
        check_info(call, &info)?;
    }
    arguments::return_result(call, given(0), l)?;
    arguments::return_result(call, given(1), info)
}

fn cholesky(call: &mut Call, a: &View, upper: bool, out: Out) -> Result<()> {
    arguments::check_square(a, "cholesky", "A")?;
    arguments::check_kernels_of_elements(a, "cholesky_cpu")?;
    let (l, info) = decomposed(call, a, upper)?;
    check_info(call, &info)?;
    arguments::return_result(call, out.given(), l)
}

/// Waits for a decomposition. One that failed falls back to the CPU, which raises its error.
pub fn check_info(call: &Call, info: &View) -> Result<()> {
    if info.numel() > 0 {
        let info: Vec<Number> = read_numbers(call, info)?;
        if info.iter().any(|info| info.to_i64() != 0) {
            return Err(Error::Fallback(format!("{}: a matrix that has no such decomposition", call.name)));
        }
    }
    Ok(())
}

/// Solves `A X = self`; `a` is the Cholesky factor of A.
fn cholesky_solve(call: &mut Call, b: &View, a: &View, upper: bool) -> Result<()> {
    arguments::check_kernels(a, "cholesky_solve_cpu")?;
    let x = matrices::copied(call, b, &b.sizes)?;
    if x.numel() > 0 {
        let (l, flat) = (matrices::to_contiguous_matrices(call, a, matrices::batch_of(b))?, matrices::flat(&x));
        let l = if upper { adjoint(&l) } else { l };
        triangular::solve(call, &l, &flat, Triangle::LOWER)?;
        triangular::solve(call, &adjoint(&l), &flat, Triangle::UPPER)?;
    }
    call.ret(x);
    Ok(())
}

/// The inverse of A, of which `a` is the Cholesky factor. Waits for it, as on CUDA: a factor with a
/// zero on its diagonal falls back to the CPU, which raises its error.
fn cholesky_inverse(call: &mut Call, a: &View, upper: bool, out: Out) -> Result<()> {
    arguments::check_square(a, "cholesky_inverse", "A")?;
    arguments::check_kernels(a, "cholesky_inverse_out_cpu")?;
    let inverse = matrices::empty(call, a.dtype, &a.sizes)?;
    if inverse.numel() > 0 {
        let l = matrices::to_contiguous_matrices(call, a, matrices::batch_of(a))?;
        if matrices::has_zero(call, &matrices::diagonal_of(&l))? {
            return Err(Error::Fallback(format!("{}: of a factor that has no inverse", call.name)));
        }
        let l = if upper { adjoint(&l) } else { l };
        let root = matrices::flat(&matrices::identity(call, a.dtype, &a.sizes)?);
        triangular::solve(call, &l, &root, Triangle::LOWER)?;
        matrices::multiply(call, [&adjoint(&root), &root], &matrices::flat(&inverse), Update::Overwrite)?;
    }
    arguments::return_result(call, out.given(), inverse)
}
