//! The operators of triangular systems, which [`dml_compute::linear_algebra::triangular`] solves.

use crate::linear_algebra::arguments;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::linear_algebra::matrices;
use dml_compute::linear_algebra::triangular::{Triangle, solve};
use dml_compute::view::View;

operators! {
    solve_triangular(self, B, upper, left, unitriangular, out).complex(Complex::Own) {
        "aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
        "aten::linalg_solve_triangular.out(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False, Tensor(a!) out) -> Tensor(a!)",
    }
    triangular_solve(self, A, upper, transpose, unitriangular, outs).complex(Complex::Own) {
        "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
        "aten::triangular_solve.X(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, *, Tensor(a!) X, Tensor(b!) M) -> (Tensor(a!) solution, Tensor(b!) cloned_coefficient)",
    }
}

/// `a` is `[.., n, n]`, `b` is `[.., n, k]`, or `[.., k, n]` if `a` is on the right.
fn solve_triangular(call: &mut Call, a: &View, b: &View, upper: bool, left: bool, unit: bool, out: Out) -> Result<()> {
    const NAME: &str = "linalg.solve_triangular";
    arguments::check_system(a, b, left, NAME)?;
    check_same(a, b, NAME)?;
    structured::check_given(out.given(), b.dtype)?;
    let x = solved(call, a, b, Triangle { upper, unit }, left)?;
    arguments::return_result(call, out.given(), x)
}

fn check_same(a: &View, b: &View, name: &str) -> Result<()> {
    check!(
        a.dtype == b.dtype,
        Runtime,
        "{name}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
        a.dtype,
        b.dtype
    );
    arguments::check_kernels(a, "triangular_solve_cpu")
}

/// Solves the system in a new tensor.
fn solved(call: &Call, a: &View, b: &View, triangle: Triangle, left: bool) -> Result<View> {
    let batch = arguments::broadcast_batch(call, b, a)?;
    let x = matrices::copied(call, b, &matrices::sizes_of(&batch, &[b.size(-2), b.size(-1)]))?;
    if x.numel() > 0 {
        let (a, flat) = (matrices::to_contiguous_matrices(call, a, &batch)?, matrices::flat(&x));
        if left {
            solve(call, &a, &flat, triangle)?;
        } else {
            let turned = Triangle { upper: !triangle.upper, ..triangle };
            solve(call, &matrices::transposed(&a), &matrices::transposed(&flat), turned)?;
        }
    }
    Ok(x)
}

fn triangular_solve(
    call: &mut Call,
    b: &View,
    a: &View,
    upper: bool,
    transpose: bool,
    unit: bool,
    outs: Outs,
) -> Result<()> {
    check!(
        b.dim() >= 2,
        Runtime,
        "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has {} dimensions instead",
        b.dim()
    );
    check!(
        a.dim() >= 2,
        Runtime,
        "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has {} dimensions instead",
        a.dim()
    );
    arguments::check_linear_solve(b, a, "triangular_solve")?;
    check_same(a, b, "triangular_solve")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    (0..2).try_for_each(|i| structured::check_given(given(i), b.dtype))?;
    let batch = arguments::broadcast_batch(call, b, a)?;
    let coefficient = matrices::copied(call, a, &matrices::sizes_of(&batch, &[a.size(-2), a.size(-1)]))?;
    let turned = if transpose { matrices::transposed(a) } else { a.clone() };
    let solution = solved(call, &turned, b, Triangle { upper: upper != transpose, unit }, true)?;
    arguments::return_result(call, given(0), solution)?;
    arguments::return_result(call, given(1), coefficient)
}
