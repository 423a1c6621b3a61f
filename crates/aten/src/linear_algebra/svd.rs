//! The singular value decomposition `A = U S V^H`.
//!
//! Of a matrix that is not wide (a wide one is transposed), its longest columns first, `A = Q R` is
//! computed, so that what follows works on square matrices only. [Jacobi's one-sided
//! method](super::one_sided_jacobi) makes the columns of `L = R^H` orthogonal, which takes fewer
//! sweeps than those of R would (Drmač, Veselić, "New fast and accurate Jacobi SVD algorithm",
//! 2008). With `L V = W`, whose columns are as long as the singular values, another QR
//! decomposition turns W into an orthogonal matrix, also where its columns are zeros. A is scaled
//! by a power of two for all of it.

use crate::linear_algebra::arguments;
use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::linear_algebra::svd::decomposed;
use dml_compute::view::View;

operators! {
    linalg_svd(A, full_matrices, compute_uv, driver, outs) {
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        "aten::_linalg_svd.U(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)",
    }
}

/// U `[.., m, k]`, singular values in descending order, `[.., k]`, and V^H `[.., k, n]` of `a`,
/// `[.., m, n]`, where k is the smaller one of the two; `full` square U and V. Without `vectors`
/// both are empty.
fn linalg_svd(call: &mut Call, a: &View, full: bool, vectors: bool, driver: Option<&str>, outs: Outs) -> Result<()> {
    arguments::check_matrices(a, "linalg.svd", "A")?;
    arguments::check_floats(a, "linalg.svd")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let dtypes = [a.dtype, a.dtype.real(), a.dtype];
    (0..3).try_for_each(|i| structured::check_given(given(i), dtypes[i]))?;
    if a.numel() > 0 {
        check!(
            driver.is_none(),
            Runtime,
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        );
        arguments::check_kernels(a, "linalg_svd_cpu")?;
    }
    for (i, made) in decomposed(call, a, full, vectors)?.into_iter().enumerate() {
        arguments::give(call, given(i), made)?;
    }
    Ok(())
}
