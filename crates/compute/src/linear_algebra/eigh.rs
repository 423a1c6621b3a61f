//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
//!
//! Small ones are [Jacobi's](super::two_sided_jacobi). Others become
//! [tridiagonal](super::tridiagonal), whose eigenvectors are found by [divide and
//! conquer](super::divide_and_conquer), and eigenvalues alone by [bisection]. A
//! matrix is scaled by a power of two for all of it. How much there is to do depends on the sizes
//! alone: the host waits once, for whether all numbers are finite.

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
/// eigenvectors to columns of `q`, of Hermitian matrices `a`, `[batch, n, n]` of at least one
/// element, which get lost. Each has a length of at least about one, and not of much more, or is
/// zeros.
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

/// The eigenvalues alone.
pub fn values_of(cx: &Context, a: &View, values: &View) -> Result<()> {
    if a.sizes[1] <= two_sided_jacobi::rows(a.dtype).into() {
        let vectors = matrices::empty(cx, a.dtype, &a.sizes)?;
        return two_sided_jacobi::decompose(cx, a, values, &vectors);
    }
    let t = Tridiagonal::of(cx, a)?;
    copy::device_copy(cx, &bisection::values(cx, &t)?, values)
}
