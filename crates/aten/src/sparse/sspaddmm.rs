//! sspaddmm, the product of a sparse and a dense matrix added to a sparse one, for strided tensors:
//! not defined.

use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operators;

operators! {
    strided(self) {
        "aten::sspaddmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Sparse tensors have another dispatch key, so any tensor here is strided, and an error as on the
/// CPU.
fn strided(_: &mut Call, _: &dml_compute::view::View) -> Result<()> {
    Err(Error::Runtime("tensor.sspaddmm(...) can only be called on sparse tensors".into()))
}
