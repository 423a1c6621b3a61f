//! The Cholesky decomposition `A = L L^H`: halves of halves, and a kernel for the blocks on the diagonal.

use super::element::{Element, OutputElements, SharedElements};
use super::matrices::{self, Into, MatrixStrides, adjoint, conjugated, fill_with, part, transposed};
use super::triangular::{self, Triangle};
use crate::creation::triangle::{Half, copy_half};
use crate::movement::copy::read_numbers;
use crate::operator::argument::{Out, Outs};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::operators;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::tensor::Tensor;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, ScalarType, math};

operators! {
    cholesky_ex(self, upper, check_errors, outs) {
        "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
        "aten::linalg_cholesky_ex.L(Tensor self, *, bool upper=False, bool check_errors=False, Tensor(a!) L, Tensor(b!) info) -> (Tensor(a!) L, Tensor(b!) info)",
    }
    cholesky(self, upper, out) {
        "aten::cholesky(Tensor self, bool upper=False) -> Tensor",
        "aten::cholesky.out(Tensor self, bool upper=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
    cholesky_solve(self, A, upper) {
        "aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    }
    cholesky_inverse(self, upper, out) {
        "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
        "aten::cholesky_inverse.out(Tensor self, bool upper=False, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `info` is 0, or the order of the first leading minor that is not positive-definite.
fn cholesky_ex(call: &mut Call, a: &Tensor, upper: bool, check_errors: bool, outs: Outs) -> Result<()> {
    matrices::check_square(a, "linalg.cholesky", "A")?;
    matrices::check_floats(a, "linalg.cholesky")?;
    matrices::check_kernels_of_elements(a, "cholesky_cpu")?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    structured::check_given(given(0), a.dtype)?;
    structured::check_given(given(1), DType::I32)?;
    let (l, info) = decomposed(call, a, upper)?;
    if check_errors {
        check_info(call, &info)?;
    }
    matrices::give(call, given(0), l)?;
    matrices::give(call, given(1), info)
}

fn cholesky(call: &mut Call, a: &Tensor, upper: bool, out: Out) -> Result<()> {
    matrices::check_square(a, "cholesky", "A")?;
    matrices::check_kernels_of_elements(a, "cholesky_cpu")?;
    let (l, info) = decomposed(call, a, upper)?;
    check_info(call, &info)?;
    matrices::give(call, out.given(), l)
}

/// Waits for a decomposition, and leaves one that failed to the CPU, which raises its error.
pub fn check_info(call: &Call, info: &Tensor) -> Result<()> {
    if info.numel() > 0 {
        let info: Vec<Number> = read_numbers(call, info)?;
        if info.iter().any(|info| info.to_i64() != 0) {
            return Err(Error::Fallback(format!("{}: a matrix that has no such decomposition", call.name)));
        }
    }
    Ok(())
}

/// The factor, zero in its other triangle, and `info`, of a new tensor each.
fn decomposed(call: &Call, a: &Tensor, upper: bool) -> Result<(Tensor, Tensor)> {
    let info = call.empty(DType::I32, matrices::batch_of(a))?;
    let l = matrices::copied(call, a, &a.sizes)?;
    if info.numel() > 0 {
        fill_with(call, &info, Number::Int(0))?;
    }
    if l.numel() > 0 {
        let flat = matrices::flat(&l);
        factor(call, &if upper { transposed(&flat) } else { flat }, &info, 0)?;
        copy_half(call, &l, &l, 0, if upper { Half::Upper } else { Half::Lower })?;
    }
    Ok((l, info))
}

/// From here on the two triangles of an update are told apart.
const UPDATE: i64 = 512;

/// Writes the factor over the lower triangle of `a`, `[batch, n, n]`, which begins at row `first` of the whole. What is above is lost.
fn factor(call: &Call, a: &Tensor, info: &Tensor, first: i64) -> Result<()> {
    let (batch, n) = (a.sizes[0], a.sizes[1]);
    let rows = matrices::block_rows(a.dtype);
    if n <= i64::from(rows) {
        let spec = Block { dtype: a.dtype, index: matrices::index_of(&[a]) };
        let (batch_32, n, first) = (batch as u32, n as u32, first as u32);
        let arguments = BlockArguments { a, info, strides: a, batch: batch_32, n, first };
        return call.run(&spec, &arguments, matrices::workgroups(batch, 1));
    }
    let half = matrices::half(n, rows);
    let (upper, lower) = ((0, half), (half, n));
    let (diagonal, below, rest) = (part(a, upper, upper), part(a, lower, upper), part(a, lower, lower));
    factor(call, &diagonal, info, first)?;
    triangular::solve(call, &conjugated(&diagonal), &transposed(&below), Triangle::LOWER)?;
    subtract_square(call, &below, &rest)?;
    factor(call, &rest, info, first + half)
}

/// `c -= x @ x^H`, at least in the lower triangle.
fn subtract_square(call: &Call, x: &Tensor, c: &Tensor) -> Result<()> {
    let (n, k) = (x.sizes[1], x.sizes[2]);
    if n <= UPDATE {
        return matrices::multiply(call, [x, &adjoint(x)], c, Into::Subtracted);
    }
    let half = matrices::half(n, matrices::block_rows(c.dtype));
    let (above, below) = (part(x, (0, half), (0, k)), part(x, (half, n), (0, k)));
    subtract_square(call, &above, &part(c, (0, half), (0, half)))?;
    matrices::multiply(call, [&below, &adjoint(&above)], &part(c, (half, n), (0, half)), Into::Subtracted)?;
    subtract_square(call, &below, &part(c, (half, n), (half, n)))
}

/// Solves `A X = self`; `a` is the factor of A.
fn cholesky_solve(call: &mut Call, b: &Tensor, a: &Tensor, upper: bool) -> Result<()> {
    matrices::check_kernels(a, "cholesky_solve_cpu")?;
    let x = matrices::copied(call, b, &b.sizes)?;
    if x.numel() > 0 {
        let (l, flat) = (matrices::readable(call, a, matrices::batch_of(b))?, matrices::flat(&x));
        let l = if upper { adjoint(&l) } else { l };
        triangular::solve(call, &l, &flat, Triangle::LOWER)?;
        triangular::solve(call, &adjoint(&l), &flat, Triangle::UPPER)?;
    }
    call.ret(x);
    Ok(())
}

/// The inverse of A, of which `a` is the factor. Waits for it, as on CUDA: one with a zero on its diagonal is left to the CPU,
/// which raises its error.
fn cholesky_inverse(call: &mut Call, a: &Tensor, upper: bool, out: Out) -> Result<()> {
    matrices::check_square(a, "cholesky_inverse", "A")?;
    matrices::check_kernels(a, "cholesky_inverse_out_cpu")?;
    let inverse = matrices::empty(call, a.dtype, &a.sizes)?;
    if inverse.numel() > 0 {
        let l = matrices::readable(call, a, matrices::batch_of(a))?;
        if matrices::has_zero(call, &matrices::diagonal_of(&l))? {
            return Err(Error::Fallback(format!("{}: of a factor that has no inverse", call.name)));
        }
        let l = if upper { adjoint(&l) } else { l };
        let root = matrices::flat(&matrices::identity(call, a.dtype, &a.sizes)?);
        triangular::solve(call, &l, &root, Triangle::LOWER)?;
        matrices::multiply(call, [&adjoint(&root), &root], &matrices::flat(&inverse), Into::Written)?;
    }
    matrices::give(call, out.given(), inverse)
}

/// A block on the diagonal in shared memory, a workgroup for each matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Block {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Block as s => BlockArguments, BlockParameters {
        a: OutputElements = s.dtype,
        /// One a matrix; where it is not 0 already, nothing is done.
        info: Output = DType::I32,
        strides: MatrixStrides = s.index,
        batch: U32,
        n: U32,
        /// The block's first row in the whole matrix.
        first: U32,
    }
}

impl KernelSpec for Block {
    fn name(&self) -> &'static str {
        "cholesky_block"
    }

    fn write<'b>(&self, b: &'b Builder, p: BlockParameters<'b>) {
        let (matrix, _) = matrices::own_tile(b, p.batch, b.u32(1));
        let local = b.local_id(0);
        let rows = matrices::block_rows(self.dtype);
        let (row, lane) = (local & (rows - 1), local >> rows.ilog2());
        let lanes = GROUP / rows;
        let columns: Vec<_> = (0..rows / lanes).map(|e| lane + e * lanes).collect();
        // Columns of the block stand one after another.
        let block = SharedElements::shared(b, self.dtype, rows * rows);
        let inside = |column| row.lt(p.n) & row.ge(column);
        for &column in &columns {
            b.if_(inside(column), || {
                block.store(column * rows + row, p.a.load(p.strides.at(matrix, row, column)));
            });
        }
        let before = p.info.load(matrix);
        let failed = b.var(before.cast(ScalarType::U32));
        b.for_(0, p.n, 1, |j| {
            b.barrier();
            let pivot = block.load(j * rows + j).real();
            b.if_(failed.get().eq(0) & !pivot.is_above_zero(), || failed.set(p.first + j + 1));
            let root = math::sqrt(pivot);
            b.barrier();
            let going = failed.get().eq(0);
            b.if_(going & lane.eq(0) & inside(j), || {
                let below = block.load(j * rows + row).over(root);
                block.store(j * rows + row, Element::select(row.eq(j), below.alike(root), below));
            });
            b.barrier();
            for &column in &columns {
                b.if_(going & column.gt(j) & inside(column), || {
                    let product = block.load(j * rows + row) * block.load(j * rows + column).conjugate();
                    block.store(column * rows + row, block.load(column * rows + row) - product);
                });
            }
        });
        b.barrier();
        for &column in &columns {
            b.if_(inside(column), || {
                p.a.store(p.strides.at(matrix, row, column), block.load(column * rows + row));
            });
        }
        b.if_(local.eq(0), || p.info.store(matrix, failed.get().cast(ScalarType::I32)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F32, DType::C64] {
            accepted(&Block { dtype, index: ScalarType::U32 }.build());
        }
        for dtype in [DType::F64, DType::C128] {
            accepted(&Block { dtype, index: ScalarType::U64 }.build());
        }
    }
}
