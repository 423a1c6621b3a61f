//! A step of Newton's method towards orthogonal columns.

use super::matrices::{self, Into, adjoint, device_copy, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::tensor::Tensor;

/// Makes the columns of `q`, `[batch, m, k]`, which are orthonormal but for what rounding left, as orthonormal as they can be written:
/// Q + Q (I - Q^H Q) / 2 (Björck, Bowie, "An iterative algorithm for computing the best estimate of an orthogonal matrix", 1971).
pub fn polish(call: &Call, q: &Tensor) -> Result<()> {
    let (batch, k) = (q.sizes[0], q.sizes[2]);
    let correction = matrices::identity(call, q.dtype, &[batch, k, k])?;
    fill_with(call, &matrices::diagonal(&correction), Number::Double(0.5))?;
    matrices::multiply(call, [&adjoint(q), q], &correction, Into::Added(-0.5))?;
    let better = matrices::copied(call, q, &q.sizes)?;
    matrices::multiply(call, [q, &correction], &better, Into::Added(1.0))?;
    device_copy(call, &better, q)
}
