//! The operators of the decomposition `A = L D L^T` of symmetric matrices, or `A = L D L^H` of
//! Hermitian ones, which [`dml_compute::linear_algebra::ldl`] computes.

use crate::linear_algebra::arguments;
use crate::linear_algebra::cholesky::check_info;
use crate::movement::copies::checked_copy;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::complex::parts::parts;
use dml_compute::creation::triangle::{Half, copy_half};
use dml_compute::linear_algebra::ldl::{decompose, solve_in_place};
use dml_compute::linear_algebra::matrices;
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    factor(self, hermitian, check_errors, outs).complex(Complex::Own) {
        "aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
        "aten::linalg_ldl_factor_ex.out(Tensor self, *, bool hermitian=False, bool check_errors=False, Tensor(a!) LD, Tensor(b!) pivots, Tensor(c!) info) -> (Tensor(a!) LD, Tensor(b!) pivots, Tensor(c!) info)",
    }
    solve(LD, pivots, B, hermitian, out).complex(Complex::Own) {
        "aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
        "aten::linalg_ldl_solve.out(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Returns L below the diagonal and D, from the lower triangle of `a`; pivots; and 0 or the index
/// of the first zero on D's diagonal. For real matrices symmetric and Hermitian are the same.
fn factor(call: &mut Call, a: &View, hermitian: bool, check_errors: bool, outs: Outs) -> Result<()> {
    const NAME: &str = "torch.linalg.ldl_factor_ex";
    arguments::check_square(a, NAME, "A")?;
    arguments::check_floats(a, NAME)?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    for (i, dtype) in [a.dtype, DType::I32, DType::I32].into_iter().enumerate() {
        structured::check_given(given(i), dtype)?;
    }
    arguments::check_kernels_of_elements(a, "ldl_factor_kernel_cpu")?;
    let batch = matrices::batch_of(a);
    let ld = matrices::empty(call, a.dtype, &a.sizes)?;
    let pivots = call.empty(DType::I32, &a.sizes[..a.dim() - 1])?;
    let info = call.empty(DType::I32, batch)?;
    if info.numel() > 0 {
        fill_with(call, &info, Number::Int(0))?;
    }
    if ld.numel() > 0 {
        copy_half(call, a, &ld, 0, Half::Lower)?;
        let (flat, hermitian) = (matrices::flat(&ld), hermitian && a.dtype.is_complex());
        if hermitian {
            let [_, imaginary] = parts(&matrices::diagonal_of(&flat));
            fill_with(call, &imaginary, Number::Int(0))?;
        }
        decompose(call, &flat, &pivots, &info, hermitian)?;
        if check_errors {
            check_info(call, &info)?;
        }
    }
    for (i, made) in [ld, pivots, info].into_iter().enumerate() {
        arguments::return_result(call, given(i), made)?;
    }
    Ok(())
}

/// Solves `A X = b`.
fn solve(call: &mut Call, ld: &View, pivots: &View, b: &View, hermitian: bool, out: Out) -> Result<()> {
    const NAME: &str = "torch.linalg.ldl_solve";
    arguments::check_square(ld, NAME, "A")?;
    arguments::check_floats(ld, NAME)?;
    arguments::check_linear_solve(b, ld, NAME)?;
    check!(
        ld.sizes[..ld.dim() - 1] == pivots.sizes[..],
        Runtime,
        "{NAME}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?} instead",
        pivots.sizes.as_slice()
    );
    check!(pivots.dtype.is_integer(), Runtime, "{NAME}: Expected pivots to be integers. Got {}", pivots.dtype);
    structured::check_given(out.given(), b.dtype)?;
    let batch = arguments::broadcast_batch(call, b, ld)?;
    if ld.numel() > 0 {
        arguments::check_kernels(ld, "ldl_solve_kernel_cpu")?;
    }
    let x = matrices::copied(call, b, &matrices::sizes_of(&batch, &[b.size(-2), b.size(-1)]))?;
    if x.numel() > 0 && ld.numel() > 0 {
        let all = matrices::sizes_of(&batch, &[pivots.size(-1)]);
        let whole = call.empty(DType::I32, &all)?;
        checked_copy(call, &pivots.expand(&all), &whole)?;
        solve_in_place(
            call,
            &matrices::to_contiguous_matrices(call, ld, &batch)?,
            &as_contiguous(call, &whole)?,
            &matrices::flat(&x),
            hermitian && x.dtype.is_complex(),
        )?;
    }
    arguments::return_result(call, out.given(), x)
}
