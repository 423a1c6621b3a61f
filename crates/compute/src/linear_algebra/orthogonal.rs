//! A step of Newton's method towards orthogonal columns.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::matrices::{self, Update, adjoint, device_copy, fill_with};
use crate::scalar::Scalar as Number;
use crate::view::View;

/// Makes the columns of `q`, `[batch, m, k]`, which are orthonormal up to rounding errors,
/// orthonormal to the precision of the dtype: Q + Q (I - Q^H Q) / 2 (Björck, Bowie, "An iterative
/// algorithm for computing the best estimate of an orthogonal matrix", 1971).
pub fn polish(cx: &Context, q: &View) -> Result<()> {
    let (batch, k) = (q.sizes[0], q.sizes[2]);
    let correction = matrices::identity(cx, q.dtype, &[batch, k, k])?;
    fill_with(cx, &matrices::diagonal(&correction), Number::Double(0.5))?;
    matrices::multiply(cx, [&adjoint(q), q], &correction, Update::Add(-0.5))?;
    let better = matrices::copied(cx, q, &q.sizes)?;
    matrices::multiply(cx, [q, &correction], &better, Update::Add(1.0))?;
    device_copy(cx, &better, q)
}
