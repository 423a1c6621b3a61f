//! The operator of the singular value decomposition `A = U S V^H`, which
//! [`dml_compute::linear_algebra::svd`] computes.

use crate::linear_algebra::arguments;
use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::linear_algebra::svd::decomposed;
use dml_compute::view::View;

operators! {
    linalg_svd(A, full_matrices, compute_uv, driver, outs).complex(Complex::Own) {
        "aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        "aten::_linalg_svd.U(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None, Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh) -> (Tensor(a!) U, Tensor(b!) S, Tensor(c!) Vh)",
    }
}

/// Returns U `[.., m, k]`, singular values in descending order, `[.., k]`, and V^H `[.., k, n]` of
/// `a`, `[.., m, n]`, where k is the smaller of m and n; with `full` U and V are square. Without
/// `vectors` both are empty.
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
        arguments::return_result(call, given(i), made)?;
    }
    Ok(())
}
