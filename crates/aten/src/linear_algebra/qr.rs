//! The operators of the decomposition `A = Q R` by Householder reflections, which
//! [`dml_compute::linear_algebra::qr`] computes, and of products with reflections.

use crate::linear_algebra::arguments;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::creation::triangle::{Half, copy_half};
use dml_compute::linear_algebra::householder;
use dml_compute::linear_algebra::matrices::{self, as_contiguous, conjugated, transposed};
use dml_compute::linear_algebra::qr::{decompose, orthogonal};
use dml_compute::view::View;

operators! {
    geqrf(self, outs).complex(Complex::Own) {
        "aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)",
        "aten::geqrf.a(Tensor self, *, Tensor(a!) a, Tensor(b!) tau) -> (Tensor(a!) a, Tensor(b!) tau)",
    }
    householder_product(input, tau, out).complex(Complex::Own) {
        "aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
        "aten::linalg_householder_product.out(Tensor input, Tensor tau, *, Tensor(a!) out) -> Tensor(a!)",
    }
    ormqr(self, input2, input3, left, transpose, out).complex(Complex::Own) {
        "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
        "aten::ormqr.out(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    linalg_qr(A, mode, outs).complex(Complex::Own) {
        "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
        "aten::linalg_qr.out(Tensor A, str mode=\"reduced\", *, Tensor(a!) Q, Tensor(b!) R) -> (Tensor(a!) Q, Tensor(b!) R)",
    }
}

fn geqrf(call: &mut Call, a: &View, outs: Outs) -> Result<()> {
    check!(a.dim() >= 2, Runtime, "torch.geqrf: input must have at least 2 dimensions.");
    arguments::check_kernels(a, "geqrf_cpu")?;
    let (qr, tau) = decompose(call, a)?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    arguments::return_result(call, given(0), qr)?;
    arguments::return_result(call, given(1), tau)
}

fn householder_product(call: &mut Call, input: &View, tau: &View, out: Out) -> Result<()> {
    check!(input.dim() >= 2, Runtime, "torch.linalg.householder_product: input must have at least 2 dimensions.");
    check!(
        input.size(-2) >= input.size(-1),
        Runtime,
        "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
    );
    check!(
        tau.dim() >= 1 && input.size(-1) >= tau.size(-1),
        Runtime,
        "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
    );
    check!(
        tau.dim() + 1 == input.dim(),
        Runtime,
        "torch.linalg.householder_product: Expected tau to have one dimension less than input, but got tau.ndim equal to {} \
         and input.ndim is equal to {}",
        tau.dim(),
        input.dim()
    );
    check!(
        tau.sizes[..tau.dim() - 1] == *matrices::batch_of(input),
        Runtime,
        "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {:?}",
        &tau.sizes[..tau.dim() - 1]
    );
    check!(
        tau.dtype == input.dtype,
        Runtime,
        "torch.linalg.householder_product: tau dtype {} does not match input dtype {}",
        tau.dtype,
        input.dtype
    );
    arguments::check_kernels_of_elements(input, "orgqr_cpu")?;
    let q = orthogonal(call, input, &as_contiguous(call, tau)?, input.size(-1))?;
    arguments::return_result(call, out.given(), q)
}

fn ormqr(call: &mut Call, input: &View, tau: &View, other: &View, left: bool, transpose: bool, out: Out) -> Result<()> {
    check!(input.dim() >= 2, Runtime, "torch.ormqr: input must have at least 2 dimensions.");
    check!(other.dim() >= 2, Runtime, "torch.ormqr: other must have at least 2 dimensions.");
    let at = if left { -2 } else { -1 };
    check!(
        other.size(at) == input.size(-2),
        Runtime,
        "torch.ormqr: other.shape[{at}] must be equal to input.shape[-2]"
    );
    check!(tau.dim() > 0, Index, "Dimension specified as -1 but tensor has no dimensions");
    check!(
        tau.size(-1) == other.size(at).min(input.size(-1)),
        Runtime,
        "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])"
    );
    check!(
        tau.dim() + 1 == input.dim(),
        Runtime,
        "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim \
         is equal to {}",
        tau.dim(),
        input.dim()
    );
    check!(
        input.dim() == other.dim(),
        Runtime,
        "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {} \
         and input.ndim is equal to {}",
        other.dim(),
        input.dim()
    );
    let batch = matrices::batch_of(input);
    for (name, given) in [("tau", &tau.sizes[..tau.dim() - 1]), ("other", matrices::batch_of(other))] {
        check!(
            *given == *batch,
            Runtime,
            "torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {given:?}"
        );
    }
    check!(
        tau.dtype == input.dtype && other.dtype == input.dtype,
        Runtime,
        "torch.ormqr: Expected input, tau and other to have the same dtype"
    );
    arguments::check_kernels(input, "ormqr_cpu")?;
    structured::check_given(out.given(), input.dtype)?;
    let c = matrices::copied(call, other, &other.sizes)?;
    let k = tau.size(-1);
    if c.numel() > 0 && k > 0 {
        let flat = matrices::flat(&c);
        // C Q is the transpose of Q^T C^T, and Q^T the adjoint of the conjugate of Q.
        let (turned, [input, tau]) =
            if left { (flat, [input.clone(), tau.clone()]) } else { (transposed(&flat), [input, tau].map(conjugated)) };
        let v = input.narrow(input.dim() - 1, 0, k);
        let v = if v.conjugate { as_contiguous(call, &v)? } else { v };
        let v = matrices::to_contiguous_matrices(call, &v, batch)?;
        householder::apply(call, &v, &as_contiguous(call, &tau)?, &turned, transpose == left)?;
    }
    arguments::return_result(call, out.given(), c)
}

fn linalg_qr(call: &mut Call, a: &View, mode: Option<&str>, outs: Outs) -> Result<()> {
    arguments::check_matrices(a, "linalg.qr", "A")?;
    arguments::check_floats(a, "linalg.qr")?;
    let mode = mode.unwrap_or("reduced");
    check!(
        matches!(mode, "reduced" | "complete" | "r"),
        Runtime,
        "qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
    );
    arguments::check_kernels(a, "geqrf_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype)?;
    structured::check_given(given(1), a.dtype)?;
    let (m, n) = (a.size(-2), a.size(-1));
    let k = if mode == "complete" { m } else { m.min(n) };
    let (qr, tau) = decompose(call, a)?;
    let r = matrices::empty(call, a.dtype, &matrices::sizes_of(matrices::batch_of(a), &[k, n]))?;
    if r.numel() > 0 {
        copy_half(call, &qr.narrow(qr.dim() - 2, 0, k), &r, 0, Half::Upper)?;
    }
    if mode == "r" {
        let none = call.empty(a.dtype, &[0])?;
        arguments::return_result(call, given(0), none)?;
    } else {
        let q = orthogonal(call, &qr, &tau, k)?;
        arguments::return_result(call, given(0), q)?;
    }
    arguments::return_result(call, given(1), r)
}
