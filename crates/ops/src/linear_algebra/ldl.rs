//! The decomposition `A = L D L^T` of symmetric matrices, or `A = L D L^H` of Hermitian ones, that need not be definite, with blocks of one and two in D, and systems with it.
//!
//! Bunch, Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", 1977; layout and pivots are LAPACK's
//! (`sytrf` and `hetrf`, lower triangle).

use super::cholesky::check_info;
use super::ldl_blocks::{Arranged, ArrangedArguments, Divided, DividedArguments, Exchanges, ExchangesArguments};
use super::ldl_step::{self, Pivot, PivotArguments, Update, UpdateArguments};
use super::lu::exchange_rows;
use super::matrices::{self, adjoint, transposed};
use super::triangular::{self, Triangle};
use crate::complex;
use crate::creation::triangle::{Half, copy_half};
use crate::movement::copy::{as_contiguous, device_copy, fill_with};
use crate::operator::argument::{Out, Outs};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::loops::check_turns;
use crate::tensor::Tensor;
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    factor(self, hermitian, check_errors, outs) {
        "aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
        "aten::linalg_ldl_factor_ex.out(Tensor self, *, bool hermitian=False, bool check_errors=False, Tensor(a!) LD, Tensor(b!) pivots, Tensor(c!) info) -> (Tensor(a!) LD, Tensor(b!) pivots, Tensor(c!) info)",
    }
    solve(LD, pivots, B, hermitian, out) {
        "aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
        "aten::linalg_ldl_solve.out(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// L below the diagonal and D, of the lower triangle of `a`; pivots; and 0 or which element of D's diagonal is the first zero. Of real matrices
/// symmetric and hermitian are the same.
fn factor(call: &mut Call, a: &Tensor, hermitian: bool, check_errors: bool, outs: Outs) -> Result<()> {
    const NAME: &str = "torch.linalg.ldl_factor_ex";
    matrices::check_square(a, NAME, "A")?;
    matrices::check_floats(a, NAME)?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    for (i, dtype) in [a.dtype, DType::I32, DType::I32].into_iter().enumerate() {
        structured::check_given(given(i), dtype)?;
    }
    matrices::check_kernels_of_elements(a, "ldl_factor_kernel_cpu")?;
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
            let [_, imaginary] = complex::parts(&matrices::diagonal_of(&flat));
            fill_with(call, &imaginary, Number::Int(0))?;
        }
        decompose(call, &flat, &pivots, &info, hermitian)?;
        if check_errors {
            check_info(call, &info)?;
        }
    }
    for (i, made) in [ld, pivots, info].into_iter().enumerate() {
        matrices::give(call, given(i), made)?;
    }
    Ok(())
}

/// Decomposes `a`, `[batch, n, n]`, in place, a pivot after another: how many columns they have only the device knows.
fn decompose(call: &Call, a: &Tensor, pivots: &Tensor, info: &Tensor, hermitian: bool) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let state = call.empty(DType::I32, &[batch, ldl_step::STATE])?;
    fill_with(call, &state, Number::Int(0))?;
    let index = matrices::index_of(&[a]);
    for first in 0..=n {
        let arguments = PivotArguments { a, strides: a, state: &state, pivots, info, batch: batch as u32, n: n as u32 };
        call.run(&Pivot { dtype: a.dtype, index, hermitian }, &arguments, matrices::workgroups(batch, 1))?;
        let rest = n - first - 1;
        if rest > 0 {
            let numel = batch * rest * rest;
            let arguments =
                UpdateArguments { a, strides: a, state: &state, numel, n: n as u32, first: first as u32 + 1 };
            call.run_threads(&Update { dtype: a.dtype, index, hermitian }, &arguments, numel as u64)?;
        }
    }
    Ok(())
}

/// The X of `A X = b`.
fn solve(call: &mut Call, ld: &Tensor, pivots: &Tensor, b: &Tensor, hermitian: bool, out: Out) -> Result<()> {
    const NAME: &str = "torch.linalg.ldl_solve";
    matrices::check_square(ld, NAME, "A")?;
    matrices::check_floats(ld, NAME)?;
    matrices::check_linear_solve(b, ld, NAME)?;
    check!(
        ld.sizes[..ld.dim() - 1] == pivots.sizes[..],
        Runtime,
        "{NAME}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?} instead",
        pivots.sizes.as_slice()
    );
    check!(pivots.dtype.is_integer(), Runtime, "{NAME}: Expected pivots to be integers. Got {}", pivots.dtype);
    structured::check_given(out.given(), b.dtype)?;
    let batch = matrices::broadcast_batch(call, b, ld)?;
    if ld.numel() > 0 {
        matrices::check_kernels(ld, "ldl_solve_kernel_cpu")?;
    }
    let x = matrices::copied(call, b, &matrices::sizes_of(&batch, &[b.size(-2), b.size(-1)]))?;
    if x.numel() > 0 && ld.numel() > 0 {
        let all = matrices::sizes_of(&batch, &[pivots.size(-1)]);
        let whole = call.empty(DType::I32, &all)?;
        device_copy(call, &pivots.expand(&all), &whole)?;
        solve_in_place(
            call,
            &matrices::readable(call, ld, &batch)?,
            &as_contiguous(call, &whole)?,
            &matrices::flat(&x),
            hermitian && x.dtype.is_complex(),
        )?;
    }
    matrices::give(call, out.given(), x)
}

/// The same with `ld` `[batch, n, n]`, pivots `[.., n]` contiguous and `x` `[batch, n, k]`, which is B before.
fn solve_in_place(call: &Call, ld: &Tensor, pivots: &Tensor, x: &Tensor, hermitian: bool) -> Result<()> {
    let [batch, n, k] = [x.sizes[0], x.sizes[1], x.sizes[2]];
    check_turns(call, 2 * n)?;
    let index = matrices::index_of(&[ld, x]);
    let [exchanges, kinds] = [call.empty(DType::I32, &[batch, n])?, call.empty(DType::I32, &[batch, n])?];
    let arguments = ExchangesArguments { pivots, exchanges: &exchanges, kinds: &kinds, batch, n: n as u32 };
    call.run_threads(&Exchanges { index }, &arguments, batch as u64)?;
    let l = matrices::copied(call, ld, &[batch, n, n])?;
    let columns = batch * n;
    let arguments =
        ArrangedArguments { l: &l, strides: &l, exchanges: &exchanges, kinds: &kinds, columns, n: n as u32 };
    call.run_threads(&Arranged { dtype: x.dtype, index }, &arguments, columns as u64)?;
    exchange_rows(call, x, &exchanges, (0, n), false)?;
    triangular::solve(call, &l, x, Triangle::UNIT_LOWER)?;
    let arguments = DividedArguments {
        d: ld,
        d_strides: ld,
        kinds: &kinds,
        x,
        x_strides: x,
        numel: x.numel(),
        n: n as u32,
        k: k as u32,
    };
    call.run_threads(&Divided { dtype: x.dtype, index, hermitian }, &arguments, x.numel() as u64)?;
    let turned = if hermitian { adjoint(&l) } else { transposed(&l) };
    triangular::solve(call, &turned, x, Triangle::UNIT_UPPER)?;
    exchange_rows(call, x, &exchanges, (0, n), true)
}
