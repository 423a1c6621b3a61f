//! Least squares: by QR for matrices of full rank (driver `gels`, the default, as on CUDA), by
//! singular values for others.

use crate::linear_algebra::arguments;
use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::linear_algebra::least_squares::Problem;
use dml_compute::linear_algebra::matrices;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    lstsq(self, b, rcond, driver, outs).complex(Complex::Own) {
        "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
        "aten::linalg_lstsq.out(Tensor self, Tensor b, float? rcond=None, *, str? driver=None, Tensor(a!) solution, Tensor(b!) residuals, Tensor(c!) rank, Tensor(d!) singular_values) -> (Tensor(a!) solution, Tensor(b!) residuals, Tensor(c!) rank, Tensor(d!) singular_values)",
    }
}

/// Returns the X, `[.., n, k]`, that minimises the norm of `a X - b`, and if there are several the
/// one with the smallest norm. Further results are empty if the driver does not compute them:
/// residuals, which are the sums of squares of `a X - b`, `[.., k]`, for more rows than columns and
/// full rank; the rank, int64; singular values.
fn lstsq(call: &mut Call, a: &View, b: &View, rcond: Option<f64>, driver: Option<&str>, outs: Outs) -> Result<()> {
    const NAME: &str = "torch.linalg.lstsq";
    check!(a.dim() >= 2, Runtime, "{NAME}: input must have at least 2 dimensions.");
    check!(b.dim() >= 1, Runtime, "{NAME}: other must have at least 1 dimension.");
    check!(
        a.dtype == b.dtype,
        Runtime,
        "{NAME}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}",
        a.dtype,
        b.dtype
    );
    check!(
        b.dim() == a.dim() || b.dim() + 1 == a.dim(),
        Runtime,
        "{NAME}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
    );
    let vector = b.dim() < a.dim();
    let rows = if vector { -1 } else { -2 };
    check!(a.size(-2) == b.size(rows), Runtime, "{NAME}: input.size(-2) should match other.size({rows})");
    check!(
        !vector || b.dim() == 1 || b.sizes[..] == a.sizes[..a.dim() - 1],
        Runtime,
        "{NAME}: other of size {:?} is no batch of vectors for input of size {:?}",
        b.sizes.as_slice(),
        a.sizes.as_slice()
    );
    let chosen = driver.map(str::to_ascii_lowercase);
    check!(
        matches!(chosen.as_deref(), None | Some("gels" | "gelsy" | "gelsd" | "gelss")),
        Runtime,
        "{NAME}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
    );
    check!(
        matches!(a.dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128),
        Dtype,
        "This function doesn't handle types other than float and double"
    );
    let b = if vector { matrices::column(b) } else { b.clone() };
    let batch = arguments::broadcast_batch(call, a, &b)?;
    let (m, n, k) = (a.size(-2), a.size(-1), b.size(-1));
    let x = matrices::empty(call, a.dtype, &matrices::sizes_of(&batch, &[m.max(n), k]))?;
    let problem = Problem { a, b: &b, batch, x };

    let none = || call.empty(a.dtype.real(), &[0]);
    let (residuals, rank, values) = match chosen.as_deref() {
        None | Some("gels") if problem.solve_of_full_rank(call)? => {
            (problem.residual_sums_of_squares(call)?, call.empty(DType::I64, &[0])?, none()?)
        }
        Some("gels") => return Err(Error::Fallback(format!("{}: a matrix that has not full rank", call.name))),
        None => {
            problem.solve_of_any_rank(call, rcond)?;
            (None, call.empty(DType::I64, &[0])?, none()?)
        }
        Some(driver) => {
            let (rank, values) = problem.solve_of_any_rank(call, rcond)?;
            let residuals = if driver == "gelsy" { None } else { problem.residuals(call, &rank)? };
            (residuals, rank, if driver == "gelsy" { none()? } else { values })
        }
    };
    let x = &problem.x;
    let mut solution = x.narrow(x.dim() - 2, 0, n);
    if vector {
        let last = solution.dim() - 1;
        solution = solution.as_strided(&solution.sizes[..last], &solution.strides[..last], 0);
    }
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let solution = if given(0).is_some() { solution } else { call.host.view(x, &solution)? };
    let residuals = residuals.map_or_else(none, Ok)?;
    let made = [solution, residuals, rank, values];
    for (i, made) in made.into_iter().enumerate() {
        arguments::return_result(call, given(i), made)?;
    }
    Ok(())
}
