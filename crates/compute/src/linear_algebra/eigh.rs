//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
//!
//! Small matrices are decomposed by [Jacobi's method](super::two_sided_jacobi). Others are reduced
//! to [tridiagonal](super::tridiagonal) matrices; their eigenvectors are computed by [divide and
//! conquer](super::divide_and_conquer), eigenvalues alone by [bisection]. Each matrix is scaled by
//! a power of two. The amount of work depends on the sizes alone: the host waits once, to learn
//! whether all numbers are finite.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::matrices::{self, device_copy, fill_with};
use crate::linear_algebra::orthogonal::polish;
use crate::linear_algebra::tridiagonal::Tridiagonal;
use crate::linear_algebra::{bisection, divide_and_conquer, two_sided_jacobi};
use crate::movement::copy;
use crate::scalar::Scalar as Number;
use crate::view::View;

/// Writes eigenvalues in ascending order to `values`, real `[batch, n]` contiguous, and
/// eigenvectors to the columns of `q`. `a` is Hermitian matrices, `[batch, n, n]` with at least one
/// element, and is destroyed. Each eigenvector has a norm of at least about one and not much more,
/// or is zero.
pub fn vectors_of(cx: &Context, a: &View, values: &View, q: &View) -> Result<()> {
    if a.sizes[1] <= two_sided_jacobi::rows(a.dtype).into() {
        return two_sided_jacobi::decompose(cx, a, values, q);
    }
    let t = Tridiagonal::of(cx, a)?;
    let (found, vectors) = divide_and_conquer::decompose(cx, &t)?;
    copy::device_copy(cx, &found, values)?;
    if q.dtype.is_complex() {
        fill_with(cx, q, Number::Int(0))?;
    }
    device_copy(cx, &vectors, &matrices::real_part(q))?;
    t.apply(cx, q)?;
    polish(cx, q)
}

/// Writes eigenvalues alone, as [`vectors_of`] does.
pub fn values_of(cx: &Context, a: &View, values: &View) -> Result<()> {
    if a.sizes[1] <= two_sided_jacobi::rows(a.dtype).into() {
        let vectors = matrices::empty(cx, a.dtype, &a.sizes)?;
        return two_sided_jacobi::decompose(cx, a, values, &vectors);
    }
    let t = Tridiagonal::of(cx, a)?;
    copy::device_copy(cx, &bisection::values(cx, &t)?, values)
}
