//! Least squares: through QR for matrices of full rank (driver `gels`, the default, as on CUDA), through singular values for others.

use super::column_norms;
use super::householder;
use super::matrices::{self, Into, adjoint, device_copy, fill_with, part};
use super::qr;
use super::svd;
use super::triangular::{self, Triangle};
use crate::complex;
use crate::movement::copy::read_numbers;
use crate::operator::argument::Outs;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::pointwise::kernel::{self, Input as Operand};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::tensor::{Dims, Tensor};
use crate::{check, operators};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    lstsq(self, b, rcond, driver, outs) {
        "aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
        "aten::linalg_lstsq.out(Tensor self, Tensor b, float? rcond=None, *, str? driver=None, Tensor(a!) solution, Tensor(b!) residuals, Tensor(c!) rank, Tensor(d!) singular_values) -> (Tensor(a!) solution, Tensor(b!) residuals, Tensor(c!) rank, Tensor(d!) singular_values)",
    }
}

/// A problem `[.., m, n]`, `[.., m, k]`, whose batches broadcast to `batch`, and room for its solution.
struct Problem<'a> {
    a: &'a Tensor,
    b: &'a Tensor,
    batch: Dims,
    /// `[batch, max(m, n), k]`; the solution is the first n rows.
    x: Tensor,
}

/// The X, `[.., n, k]`, that makes `a X - b` smallest, and of those the smallest X. What a driver does not compute is empty: residuals, sums of squares
/// of `a X - b` `[.., k]`, of more rows than columns with full rank; the rank, int64; singular values.
fn lstsq(call: &mut Call, a: &Tensor, b: &Tensor, rcond: Option<f64>, driver: Option<&str>, outs: Outs) -> Result<()> {
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
    let batch = matrices::broadcast_batch(call, a, &b)?;
    let (m, n, k) = (a.size(-2), a.size(-1), b.size(-1));
    let x = matrices::empty(call, a.dtype, &matrices::sizes_of(&batch, &[m.max(n), k]))?;
    let problem = Problem { a, b: &b, batch, x };

    let none = call.empty(a.dtype.real(), &[0])?;
    let (residuals, rank, values) = match chosen.as_deref() {
        None | Some("gels") if problem.solve_of_full_rank(call)? => {
            (problem.lengths_below(call)?, call.empty(DType::I64, &[0])?, none.clone())
        }
        Some("gels") => return Err(Error::Fallback(format!("{}: a matrix that has not full rank", call.name))),
        None => {
            problem.solve_of_any_rank(call, rcond)?;
            (None, call.empty(DType::I64, &[0])?, none.clone())
        }
        Some(driver) => {
            let (rank, values) = problem.solve_of_any_rank(call, rcond)?;
            let residuals = if driver == "gelsy" { None } else { problem.residuals(call, &rank)? };
            (residuals, rank, if driver == "gelsy" { none.clone() } else { values })
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
    let made = [solution, residuals.unwrap_or(none), rank, values];
    for (i, made) in made.into_iter().enumerate() {
        matrices::give(call, given(i), made)?;
    }
    Ok(())
}

impl Problem<'_> {
    fn shape(&self) -> (i64, i64, i64) {
        (self.a.size(-2), self.a.size(-1), self.b.size(-1))
    }

    /// The matrices for every problem.
    fn matrices(&self) -> Tensor {
        self.a.expand(&matrices::sizes_of(&self.batch, &[self.a.size(-2), self.a.size(-1)]))
    }

    /// Writes the right sides to the room's first rows, and zeros below.
    fn write_right_sides(&self, call: &Call) -> Result<()> {
        let (m, n, k) = self.shape();
        let rows = |from, count| self.x.narrow(self.x.dim() - 2, from, count);
        device_copy(call, &self.b.expand(&matrices::sizes_of(&self.batch, &[m, k])), &rows(0, m))?;
        if m < n { fill_with(call, &rows(m, n - m), Number::Int(0)) } else { Ok(()) }
    }

    /// Solves with Q and R of the matrices, or of their transposes where they are wide; says whether they have full rank. Below the solution is then
    /// what the residuals are the lengths of.
    fn solve_of_full_rank(&self, call: &Call) -> Result<bool> {
        let (m, n, k) = self.shape();
        let a = self.matrices();
        if self.x.numel() == 0 {
            return Ok(true);
        }
        if a.numel() == 0 {
            // As LAPACK does, so that there are no residuals either.
            fill_with(call, &self.x, Number::Int(0))?;
            return Ok(true);
        }
        self.write_right_sides(call)?;
        let tall = m >= n;
        let (qr, tau) = qr::decompose(call, &if tall { a } else { adjoint(&a) })?;
        let (qr, x) = (matrices::flat(&qr), matrices::flat(&self.x));
        let least = m.min(n);
        let r = part(&qr, (0, least), (0, least));
        if matrices::has_zero(call, &matrices::diagonal_of(&r))? {
            return Ok(false);
        }
        let top = part(&x, (0, least), (0, k));
        if tall {
            householder::apply(call, &qr, &tau, &x, true)?;
            triangular::solve(call, &r, &top, Triangle::UPPER)?;
        } else {
            triangular::solve(call, &adjoint(&r), &top, Triangle::LOWER)?;
            householder::apply(call, &qr, &tau, &x, false)?;
        }
        Ok(true)
    }

    /// Solves with the singular values that are larger than `rcond` times the largest. Gives how many, and the values.
    fn solve_of_any_rank(&self, call: &Call, rcond: Option<f64>) -> Result<(Tensor, Tensor)> {
        let (m, n, k) = self.shape();
        let batch = matrices::batch_of(self.a);
        let epsilon = if self.a.dtype.real() == DType::F32 { f32::EPSILON.into() } else { f64::EPSILON };
        let rcond = rcond.unwrap_or(epsilon * m.max(n) as f64);
        let rcond = if rcond < 0.0 { epsilon / 2.0 } else { rcond };
        let [u, values, vh] = svd::decomposed(call, self.a, false, true)?;
        let least = m.min(n);
        let rank = call.empty(DType::I64, batch)?;
        if values.numel() == 0 {
            if rank.numel() > 0 {
                fill_with(call, &rank, Number::Int(0))?;
            }
            if self.x.numel() > 0 {
                fill_with(call, &self.x, Number::Int(0))?;
            }
            return Ok((rank, values));
        }
        let reciprocals = call.empty(values.dtype, &values.sizes)?;
        let spec = Cut { dtype: values.dtype, index: matrices::index_of(&[&values]) };
        let arguments = CutArguments {
            values: &values,
            reciprocals: &reciprocals,
            rank: &rank,
            rcond: Number::Double(rcond),
            numel: values.numel(),
            n: least as u32,
        };
        call.run_threads(&spec, &arguments, values.numel() as u64)?;
        if self.x.numel() == 0 {
            return Ok((rank, values));
        }
        let inner = matrices::empty(call, self.a.dtype, &matrices::sizes_of(&self.batch, &[least, k]))?;
        let b = matrices::readable(call, self.b, &self.batch)?;
        let [u, vh] = [matrices::readable(call, &u, &self.batch)?, matrices::readable(call, &vh, &self.batch)?];
        matrices::multiply(call, [&adjoint(&u), &b], &matrices::flat(&inner), Into::Written)?;
        let reciprocals = matrices::column(&reciprocals).expand(&inner.sizes);
        let parts = if inner.dtype.is_complex() { complex::parts(&inner).to_vec() } else { vec![inner.clone()] };
        for part in parts {
            let inputs = [Operand::Tensor(part.clone()), Operand::Tensor(reciprocals.clone())];
            kernel::run(call, "least_squares_scaled", &[&part], &inputs, part.dtype, |_, v| vec![v[0] * v[1]])?;
        }
        let x = part(&matrices::flat(&self.x), (0, n), (0, k));
        matrices::multiply(call, [&adjoint(&vh), &matrices::flat(&inner)], &x, Into::Written)?;
        Ok((rank, values))
    }

    /// The residuals of solutions with the singular values, where all matrices have full rank.
    fn residuals(&self, call: &Call, rank: &Tensor) -> Result<Option<Tensor>> {
        let (m, n, k) = self.shape();
        if m <= n {
            return Ok(None);
        }
        let ranks: Vec<Number> = read_numbers(call, rank)?;
        if ranks.iter().any(|rank| rank.to_i64() != n) {
            return Ok(None);
        }
        let left = matrices::copied(call, self.b, &matrices::sizes_of(&self.batch, &[m, k]))?;
        if left.numel() > 0 {
            let a = matrices::readable(call, self.a, &self.batch)?;
            let x = part(&matrices::flat(&self.x), (0, n), (0, k));
            matrices::multiply(call, [&a, &x], &matrices::flat(&left), Into::Subtracted)?;
        }
        self.squares(call, &left).map(Some)
    }

    /// The same of solutions with Q and R.
    fn lengths_below(&self, call: &Call) -> Result<Option<Tensor>> {
        let (m, n, _) = self.shape();
        if m <= n {
            return Ok(None);
        }
        self.squares(call, &self.x.narrow(self.x.dim() - 2, n, m - n)).map(Some)
    }

    /// Sums of squares of the columns of `[batch, rows, k]`, whose batch is that of the solution's room or contiguous.
    fn squares(&self, call: &Call, t: &Tensor) -> Result<Tensor> {
        let sums = call.empty(t.dtype.real(), &matrices::sizes_of(&self.batch, &[t.size(-1)]))?;
        if sums.numel() > 0 {
            let norms = column_norms::norms(call, &matrices::readable(call, t, &self.batch)?)?;
            let norms = norms.as_strided(&sums.sizes, &sums.strides, 0);
            kernel::run(call, "least_squares_squared", &[&sums], &[Operand::Tensor(norms)], sums.dtype, |_, v| {
                vec![v[0] * v[0]]
            })?;
        }
        Ok(sums)
    }
}

/// Reciprocals of singular values, zeros of those that count as zeros, and how many do not. An invocation takes a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cut {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Cut as s => CutArguments, CutParameters {
        /// `[batch, n]`, in descending order.
        values: Input = s.dtype,
        reciprocals: Output = s.dtype,
        rank: Output = DType::I64,
        rcond: InDType = s.dtype,
        numel: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for Cut {
    fn name(&self) -> &'static str {
        "cut_singular_values"
    }

    fn write<'b>(&self, b: &'b Builder, p: CutParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let n = p.n.cast(self.index);
            let (matrix, first) = (i / n, i / n * n);
            let least = p.rcond * p.values.load(first);
            let value = p.values.load(i);
            let counts = value.gt(least);
            let divisor = counts.select(value, value.like(1.0));
            p.reciprocals.store(i, counts.select(value.like(1.0) / divisor, value.like(0.0)));
            // The last one that counts knows how many there are, or the first one that there are none.
            let place = (i - first).cast(ScalarType::I64);
            let last = (i + 1).eq(first + n) | !p.values.load((i + 1).min(first + n - 1)).gt(least);
            b.if_(counts & last, || p.rank.store(matrix, place + 1));
            b.if_(!counts & i.eq(first), || p.rank.store(matrix, 0));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&Cut { dtype: DType::F32, index: ScalarType::U32 }.build());
        accepted(&Cut { dtype: DType::F64, index: ScalarType::U64 }.build());
    }
}
