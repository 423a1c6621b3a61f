//! The decomposition `A = L D L^T` of symmetric matrices, or `A = L D L^H` of Hermitian ones, which
//! may be indefinite, with diagonal blocks of size one and two in D; and solving systems with it.
//!
//! Bunch, Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
//! systems", 1977; layout and pivots are LAPACK's (`sytrf` and `hetrf`, lower triangle).

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::ldl_blocks::{
    ArrangedArguments, DividedArguments, Exchanges, ExchangesArguments, PermuteFactor, SolveBlockDiagonal,
};
use crate::linear_algebra::ldl_step::{self, Pivot, PivotArguments, Update, UpdateArguments};
use crate::linear_algebra::lu::exchange_rows;
use crate::linear_algebra::matrices::{self, adjoint, transposed};
use crate::linear_algebra::triangular::{self, Triangle};
use crate::movement::copy::fill_with;
use crate::primitives::loops::check_loop_iterations;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// Decomposes `a`, `[batch, n, n]`, in place, one pivot at a time: whether a pivot has one or two
/// columns is known only on the device.
pub fn decompose(cx: &Context, a: &View, pivots: &View, info: &View, hermitian: bool) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let state = cx.empty(DType::I32, &[batch, ldl_step::STATE])?;
    fill_with(cx, &state, Number::Int(0))?;
    let index = matrices::index_of(&[a]);
    for first in 0..=n {
        let arguments = PivotArguments { a, strides: a, state: &state, pivots, info, batch: batch as u32, n: n as u32 };
        cx.run(&Pivot { dtype: a.dtype, index, hermitian }, &arguments, matrices::workgroups(batch, 1))?;
        let rest = n - first - 1;
        if rest > 0 {
            let numel = batch * rest * rest;
            let arguments =
                UpdateArguments { a, strides: a, state: &state, numel, n: n as u32, first: first as u32 + 1 };
            cx.run_threads(&Update { dtype: a.dtype, index, hermitian }, &arguments, numel as u64)?;
        }
    }
    Ok(())
}

/// Solves in place with `ld` `[batch, n, n]`, pivots `[.., n]` contiguous, and `x` `[batch, n, k]`,
/// which holds B.
pub fn solve_in_place(cx: &Context, ld: &View, pivots: &View, x: &View, hermitian: bool) -> Result<()> {
    let [batch, n, k] = [x.sizes[0], x.sizes[1], x.sizes[2]];
    check_loop_iterations(cx, 2 * n)?;
    let index = matrices::index_of(&[ld, x]);
    let [exchanges, kinds] = [cx.empty(DType::I32, &[batch, n])?, cx.empty(DType::I32, &[batch, n])?];
    let arguments = ExchangesArguments { pivots, exchanges: &exchanges, kinds: &kinds, batch, n: n as u32 };
    cx.run_threads(&Exchanges { index }, &arguments, batch as u64)?;
    let l = matrices::copied(cx, ld, &[batch, n, n])?;
    let columns = batch * n;
    let arguments =
        ArrangedArguments { l: &l, strides: &l, exchanges: &exchanges, kinds: &kinds, columns, n: n as u32 };
    cx.run_threads(&PermuteFactor { dtype: x.dtype, index }, &arguments, columns as u64)?;
    exchange_rows(cx, x, &exchanges, (0, n), false)?;
    triangular::solve(cx, &l, x, Triangle::UNIT_LOWER)?;
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
    cx.run_threads(&SolveBlockDiagonal { dtype: x.dtype, index, hermitian }, &arguments, x.numel() as u64)?;
    let turned = if hermitian { adjoint(&l) } else { transposed(&l) };
    triangular::solve(cx, &turned, x, Triangle::UNIT_UPPER)?;
    exchange_rows(cx, x, &exchanges, (0, n), true)
}
