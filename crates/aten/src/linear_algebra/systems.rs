//! The operators that use LU decompositions: systems of equations, inverses, determinants.

use crate::linear_algebra::arguments;
use crate::linear_algebra::cholesky::check_info;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::linear_algebra::lu::{self, Decomposed};
use dml_compute::linear_algebra::matrices;
use dml_compute::linear_algebra::permutation::DiagonalOperation;
use dml_compute::linear_algebra::systems::{determinant, unpack};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    lu_factor_ex(A, pivot, check_errors, outs).complex(Complex::Own) {
        "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
        "aten::linalg_lu_factor_ex.out(Tensor A, *, bool pivot=True, bool check_errors=False, Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) info) -> (Tensor(a!) LU, Tensor(b!) pivots, Tensor(c!) info)",
    }
    linalg_lu(A, pivot, outs).complex(Complex::Own) {
        "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
        "aten::linalg_lu.out(Tensor A, *, bool pivot=True, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> (Tensor(a!) P, Tensor(b!) L, Tensor(c!) U)",
    }
    lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots, outs).complex(Complex::Own) {
        "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
        "aten::lu_unpack.out(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True, *, Tensor(a!) P, Tensor(b!) L, Tensor(c!) U) -> (Tensor(a!) P, Tensor(b!) L, Tensor(c!) U)",
    }
    lu_solve(LU, pivots, B, left, adjoint, out).complex(Complex::Own) {
        "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
        "aten::linalg_lu_solve.out(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False, Tensor(a!) out) -> Tensor(a!)",
    }
    solve_ex(A, B, left, check_errors, outs).complex(Complex::Own) {
        "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
        "aten::_linalg_solve_ex.result(Tensor A, Tensor B, *, bool left=True, bool check_errors=False, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info)",
    }
    inv_ex(A, check_errors, outs).complex(Complex::Own) {
        "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
        "aten::linalg_inv_ex.inverse(Tensor A, *, bool check_errors=False, Tensor(a!) inverse, Tensor(b!) info) -> (Tensor(a!) inverse, Tensor(b!) info)",
    }
    det(A, outs).complex(Complex::Own) {
        "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
        "aten::_linalg_det.result(Tensor A, *, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots) -> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots)",
    }
    slogdet(A, outs).complex(Complex::Own) {
        "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
        "aten::_linalg_slogdet.sign(Tensor A, *, Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots) -> (Tensor(a!) sign, Tensor(b!) logabsdet, Tensor(c!) LU, Tensor(d!) pivots)",
    }
}

/// Returns results of an operator that does not cast them, in `out=` if there are such tensors.
fn return_results<const N: usize>(call: &mut Call, outs: &Outs, made: [View; N]) -> Result<()> {
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    for (i, t) in made.iter().enumerate() {
        structured::check_given(given(i), t.dtype)?;
    }
    for (i, t) in made.into_iter().enumerate() {
        arguments::return_result(call, given(i), t)?;
    }
    Ok(())
}

fn check_dimensions(t: &View, operator: &str) -> Result<()> {
    check!(
        t.dim() >= 2,
        Runtime,
        "{operator}: Expected tensor with 2 or more dimensions. Got size: {:?} instead",
        t.sizes.as_slice()
    );
    Ok(())
}

fn lu_factor_ex(call: &mut Call, a: &View, pivot: bool, check_errors: bool, outs: Outs) -> Result<()> {
    check_dimensions(a, "torch.lu_factor")?;
    arguments::check_kernels_of_elements(a, "lu_cpu")?;
    let Decomposed { lu, pivots, info } = lu::decompose(call, a, pivot)?;
    if check_errors {
        check_info(call, &info)?;
    }
    return_results(call, &outs, [lu, pivots, info])
}

fn linalg_lu(call: &mut Call, a: &View, pivot: bool, outs: Outs) -> Result<()> {
    check_dimensions(a, "linalg.lu")?;
    arguments::check_kernels_of_elements(a, "lu_cpu")?;
    let Decomposed { lu, pivots, .. } = lu::decompose(call, a, pivot)?;
    let unpacked = unpack(call, &lu, &pivots, true, pivot)?;
    return_results(call, &outs, unpacked)
}

fn lu_unpack(
    call: &mut Call,
    lu: &View,
    pivots: &View,
    unpack_data: bool,
    unpack_pivots: bool,
    outs: Outs,
) -> Result<()> {
    check_dimensions(lu, "torch.lu_unpack")?;
    if unpack_pivots {
        check!(
            pivots.dtype == DType::I32,
            Runtime,
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this \
             function is intended to be used with the output produced by torch.linalg.lu_factor"
        );
        let k = lu.size(-1).min(lu.size(-2));
        check!(
            pivots.sizes == matrices::sizes_of(matrices::batch_of(lu), &[k]),
            Runtime,
            "torch.lu_unpack: LU_pivots of size {:?} is not of LU_data of size {:?}",
            pivots.sizes.as_slice(),
            lu.sizes.as_slice()
        );
    }
    let unpacked = unpack(call, lu, pivots, unpack_data, unpack_pivots)?;
    return_results(call, &outs, unpacked)
}

fn lu_solve(call: &mut Call, lu: &View, pivots: &View, b: &View, left: bool, adjoint: bool, out: Out) -> Result<()> {
    const NAME: &str = "linalg.lu_solve";
    arguments::check_floats(lu, "torch.linalg.lu_solve")?;
    check!(
        lu.dtype == b.dtype,
        Runtime,
        "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead",
        lu.dtype,
        b.dtype
    );
    check!(
        pivots.dtype == DType::I32,
        Runtime,
        "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"
    );
    arguments::check_square(lu, "torch.linalg.lu_solve", "LU")?;
    arguments::check_system(lu, b, left, NAME)?;
    check!(
        lu.size(-1) == pivots.size(-1),
        Runtime,
        "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"
    );
    check!(
        lu.sizes[..lu.dim() - 1] == pivots.sizes[..],
        Runtime,
        "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?} instead",
        pivots.sizes.as_slice()
    );
    if b.numel() > 0 {
        arguments::check_kernels(lu, "linalg.lu_solve_cpu")?;
    }
    structured::check_given(out.given(), b.dtype)?;
    let x = solved(call, lu, pivots, b, left, adjoint)?;
    arguments::return_result(call, out.given(), x)
}

/// Solves `A X = B`, or `X A = B`, or the same with A's adjoint, in a new tensor: of contiguous
/// columns, or rows, as LAPACK's.
fn solved(call: &Call, lu: &View, pivots: &View, b: &View, left: bool, adjoint: bool) -> Result<View> {
    let batch = arguments::broadcast_batch(call, b, lu)?;
    let sizes = matrices::sizes_of(&batch, &[b.size(-2), b.size(-1)]);
    let x = if left { matrices::empty(call, b.dtype, &sizes)? } else { call.empty(b.dtype, &sizes)? };
    if x.numel() > 0 {
        matrices::device_copy(call, &b.expand(&sizes), &x)?;
        let all = matrices::sizes_of(&batch, &[pivots.size(-1)]);
        let pivots = as_contiguous(call, &pivots.expand(&all))?;
        let (lu, flat) = (matrices::to_contiguous_matrices(call, lu, &batch)?, matrices::flat(&x));
        let lu = if adjoint { matrices::conjugated(&lu) } else { lu };
        let turned = if left { flat } else { matrices::transposed(&flat) };
        lu::solve(call, &lu, &pivots, &turned, adjoint == left)?;
    }
    Ok(x)
}

fn solve_ex(call: &mut Call, a: &View, b: &View, left: bool, check_errors: bool, outs: Outs) -> Result<()> {
    const NAME: &str = "linalg.solve";
    arguments::check_floats(a, NAME)?;
    check!(
        a.dtype == b.dtype,
        Runtime,
        "linalg.solve: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
        a.dtype,
        b.dtype
    );
    arguments::check_square(a, NAME, "A")?;
    let vector = b.dim() == 1 || (b.dim() + 1 == a.dim() && b.sizes[..] == a.sizes[..a.dim() - 1]);
    check!(
        left || !vector,
        Runtime,
        "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case \
         linalg.solve is equivalent to B / A.squeeze(-1)"
    );
    let b = if vector { matrices::column(b) } else { b.clone() };
    arguments::check_system(a, &b, left, NAME)?;
    arguments::check_kernels_of_elements(a, "lu_cpu")?;
    let Decomposed { lu, pivots, info } = lu::decompose(call, a, true)?;
    if check_errors {
        check_info(call, &info)?;
    }
    let mut x = solved(call, &lu, &pivots, &b, left, false)?;
    if vector {
        let sizes = &x.sizes[..x.dim() - 1];
        x = call.host.view(&x, &x.as_strided(sizes, &View::contiguous_strides(sizes), 0))?;
    }
    return_results(call, &outs, [x, lu, pivots, info])
}

fn inv_ex(call: &mut Call, a: &View, check_errors: bool, outs: Outs) -> Result<()> {
    arguments::check_square(a, "linalg.inv", "A")?;
    arguments::check_wide_floats(a, "linalg.inv")?;
    let Decomposed { lu, pivots, info } = lu::decompose(call, a, true)?;
    if check_errors {
        check_info(call, &info)?;
    }
    let inverse = matrices::identity(call, a.dtype, &a.sizes)?;
    if inverse.numel() > 0 {
        lu::solve(call, &matrices::flat(&lu), &pivots, &matrices::flat(&inverse), false)?;
    }
    return_results(call, &outs, [inverse, info])
}

fn det(call: &mut Call, a: &View, outs: Outs) -> Result<()> {
    arguments::check_square(a, "linalg.det", "A")?;
    arguments::check_floats(a, "linalg.det")?;
    arguments::check_kernels_of_elements(a, "lu_cpu")?;
    let [out, _, lu, pivots] = determinant(call, a, DiagonalOperation::Determinant)?;
    return_results(call, &outs, [out, lu, pivots])
}

fn slogdet(call: &mut Call, a: &View, outs: Outs) -> Result<()> {
    arguments::check_square(a, "linalg.slogdet", "A")?;
    arguments::check_wide_floats(a, "linalg.slogdet")?;
    let results = determinant(call, a, DiagonalOperation::Logarithm)?;
    return_results(call, &outs, results)
}
