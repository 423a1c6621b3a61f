//! Batches of matrices: memory layouts of decompositions, requirements, and products of parts.
//!
//! A decomposition works on a tensor of three dimensions, `[batch, rows, columns]`, of any strides;
//! a part of the matrices is a view.

use crate::complex;
use crate::context::Context;
use crate::creation::triangle::{Half, copy_half};
use crate::error::Result;
use crate::matmul::epilogue::{Bias, EpilogueOperands, Output, ResultTensor};
use crate::matmul::operand::Source;
use crate::matmul::problem::Problem;
use crate::movement::copy::{self, read_numbers};
use crate::scalar::Scalar as Number;
use crate::view::layout::index_type;
use crate::view::{Dims, View};
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::dense::folded;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Strides of column-major matrices, as in LAPACK.
pub fn column_major(sizes: &[i64]) -> Dims {
    let mut strides = View::contiguous_strides(sizes);
    let d = sizes.len();
    strides[d - 2] = 1;
    strides[d - 1] = sizes[d - 2].max(1);
    strides
}

/// Returns a new column-major tensor of these sizes.
pub fn empty(cx: &Context, dtype: DType, sizes: &[i64]) -> Result<View> {
    cx.empty_strided(dtype, sizes, &column_major(sizes))
}

/// Copies elements, real or complex, on one device; `src` broadcasts to `dst`.
pub fn device_copy(cx: &Context, src: &View, dst: &View) -> Result<()> {
    if dst.dtype.is_complex() { complex::device_copy(cx, src, dst) } else { copy::device_copy(cx, src, dst) }
}

/// Sets every element, real or complex, to a number.
pub fn fill_with(cx: &Context, out: &View, value: Number) -> Result<()> {
    if out.dtype.is_complex() { complex::fill_with(cx, out, value) } else { copy::fill_with(cx, out, value) }
}

/// Returns the tensor itself if it is contiguous, otherwise a contiguous copy, of real or complex
/// elements.
pub fn as_contiguous(cx: &Context, t: &View) -> Result<View> {
    if t.is_contiguous() && !t.conjugate { Ok(t.clone()) } else { complex::contiguous(cx, t) }
}

/// Whether any element, of at least one, is 0. Waits for the result.
pub fn has_zero(cx: &Context, t: &View) -> Result<bool> {
    if !t.dtype.is_complex() {
        return Ok(read_numbers::<Vec<Number>>(cx, t)?.iter().any(|x| x.to_f64() == 0.0));
    }
    let parts: Vec<Number> = read_numbers(cx, &complex::as_real(t))?;
    Ok(parts.chunks_exact(2).any(|parts| parts.iter().all(|x| x.to_f64() == 0.0)))
}

/// Returns new column-major matrices of these sizes with the elements of `t`, which broadcasts to
/// them.
pub fn copied(cx: &Context, t: &View, sizes: &[i64]) -> Result<View> {
    let copy = empty(cx, t.dtype, sizes)?;
    if copy.numel() > 0 {
        device_copy(cx, &t.expand(sizes), &copy)?;
    }
    Ok(copy)
}

/// Returns new column-major identity matrices of these sizes (ones on the diagonal if they are not
/// square).
pub fn identity(cx: &Context, dtype: DType, sizes: &[i64]) -> Result<View> {
    let eye = empty(cx, dtype, sizes)?;
    if eye.numel() > 0 {
        fill_with(cx, &eye, Number::Int(0))?;
        fill_with(cx, &diagonal(&eye), Number::Int(1))?;
    }
    Ok(eye)
}

/// `[batch, rows, columns]` of matrices with a contiguous batch, as all matrices created here have.
pub fn flat(t: &View) -> View {
    let d = t.dim();
    let batch: i64 = t.sizes[..d - 2].iter().product();
    let (m, n) = (t.sizes[d - 2], t.sizes[d - 1]);
    t.as_strided(&[batch, m, n], &[m * n, t.strides[d - 2], t.strides[d - 1]], 0)
}

/// `[batch, rows, columns]` of any matrices, expanded to the batch's sizes: a copy if the batch's
/// strides do not allow a view.
pub fn to_contiguous_matrices(cx: &Context, t: &View, batch: &[i64]) -> Result<View> {
    let (m, n) = (t.size(-2), t.size(-1));
    let sizes: Dims = batch.iter().copied().chain([m, n]).collect();
    let t = t.expand(&sizes);
    let last = batch.len();
    let step = (0..last).rev().find(|&d| batch[d] != 1).map_or(0, |d| t.strides[d]);
    let mut expected = step;
    for d in (0..last).rev().filter(|&d| batch[d] != 1) {
        if t.strides[d] != expected {
            return copied(cx, &t, &sizes).map(|t| flat(&t));
        }
        expected *= batch[d];
    }
    Ok(t.as_strided(&[batch.iter().product(), m, n], &[step, t.strides[last], t.strides[last + 1]], 0))
}

/// Rows and columns `rows.0..rows.1`, `columns.0..columns.1` of `[batch, rows, columns]`.
pub fn part(t: &View, rows: (i64, i64), columns: (i64, i64)) -> View {
    t.narrow(1, rows.0, rows.1 - rows.0).narrow(2, columns.0, columns.1 - columns.0)
}

/// The row, a multiple of `block`, at which `n` rows (more than `block`) are divided in two.
pub fn half(n: i64, block: u32) -> i64 {
    ((n / 2) as u64).next_multiple_of(block.into()) as i64
}

/// The matrices transposed.
pub fn transposed(t: &View) -> View {
    let d = t.dim();
    t.transpose(d - 2, d - 1)
}

/// Complex matrices conjugated, by the conjugate bit; real ones unchanged.
pub fn conjugated(t: &View) -> View {
    View { conjugate: t.dtype.is_complex() != t.conjugate, ..t.clone() }
}

/// The matrices conjugated and transposed: `x^H`.
pub fn adjoint(t: &View) -> View {
    conjugated(&transposed(t))
}

/// Returns the matrices' lower triangle with ones on the diagonal and zeros above, as new matrices,
/// of at least one element.
pub fn unit_lower(cx: &Context, t: &View) -> Result<View> {
    let l = empty(cx, t.dtype, &t.sizes)?;
    copy_unit_lower(cx, t, &l)?;
    Ok(l)
}

/// The same, written to `l`, of the same sizes.
pub fn copy_unit_lower(cx: &Context, t: &View, l: &View) -> Result<()> {
    copy_half(cx, t, l, -1, Half::Lower)?;
    fill_with(cx, &diagonal(l), Number::Int(1))
}

/// The diagonals, `[batch, n]`, of matrices as for [`flat`].
pub fn diagonal(t: &View) -> View {
    diagonal_of(&flat(t))
}

/// The diagonals, `[batch, n]`, of `[batch, rows, columns]`.
pub fn diagonal_of(t: &View) -> View {
    let n = t.sizes[1].min(t.sizes[2]);
    t.as_strided(&[t.sizes[0], n], &[t.strides[0], t.strides[1] + t.strides[2]], 0)
}

/// Vectors, `[.., n]`, as matrices with one column.
pub fn column(t: &View) -> View {
    let strides: Dims = t.strides.iter().copied().chain([1]).collect();
    t.as_strided(&sizes_of(&t.sizes, &[1]), &strides, 0)
}

/// The way in which a product updates its result.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Update {
    /// The result is overwritten.
    Overwrite,
    /// The product is subtracted from the result.
    Subtract,
    /// The product times this factor is added to the result.
    Add(f64),
}

/// Computes the product of `[batch, m, k]` and `[batch, k, n]` into `[batch, m, n]`, which may
/// share memory with the operands but no element. Conjugate bits of the operands are respected.
pub fn multiply(cx: &Context, [a, b]: [&View; 2], out: &View, update: Update) -> Result<()> {
    let ([batch, m, k], n) = ([a.sizes[0], a.sizes[1], a.sizes[2]], b.sizes[2]);
    if out.numel() == 0 {
        return Ok(());
    }
    if k == 0 {
        return if update == Update::Overwrite { fill_with(cx, out, Number::Int(0)) } else { Ok(()) };
    }
    if out.dtype.is_complex() {
        return multiply_complex(cx, [a, b], out, update);
    }
    let apart = |t: &View| if batch == 1 { 0 } else { t.strides[0] };
    let strides = [apart(out), out.strides[1], out.strides[2]];
    let bias = (update != Update::Overwrite)
        .then(|| Bias { tensor: ResultTensor::new(out.into(), strides), beta: Number::Int(1) });
    let alpha = match update {
        Update::Overwrite => Number::Int(1),
        Update::Subtract => Number::Int(-1),
        Update::Add(times) => Number::Double(times),
    };
    let mut problem = Problem {
        size: [batch, m, n, k],
        a: Source::strided(a, [m, k], [a.strides[1], a.strides[2]], apart(a)),
        b: Source::strided(b, [n, k], [b.strides[2], b.strides[1]], apart(b)),
        finish: EpilogueOperands { out: Output { strides, memory: out.into(), split: None }, alpha, bias, then: None },
    };
    problem.run(cx)
}

/// The same for complex matrices, as a product of real ones of twice the size; rows of the result
/// must be contiguous as reals.
fn multiply_complex(cx: &Context, [a, b]: [&View; 2], out: &View, update: Update) -> Result<()> {
    let is_dense = |t: &View, d: usize| t.sizes[d] == 1 || t.strides[d] == 1;
    if !is_dense(out, 2) {
        if is_dense(out, 1) {
            return multiply_complex(cx, [&transposed(b), &transposed(a)], &transposed(out), update);
        }
        let aside = copied(cx, out, &out.sizes)?;
        multiply_complex(cx, [a, b], &aside, update)?;
        return device_copy(cx, &aside, out);
    }
    let rows = if is_dense(a, 2) && !a.conjugate { a.clone() } else { complex::contiguous(cx, a)? };
    let (k, n) = (a.sizes[2], out.sizes[2]);
    let blocks = complex::blocks(cx, b, [k, n])?;
    multiply(cx, [&complex::interleaved(&rows, 2 * k), &blocks], &complex::interleaved(out, 2 * n), update)
}

/// Whether the kernels of this folder support this dtype.
pub fn has_kernels(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// The batch's sizes.
pub fn batch_of(t: &View) -> &[i64] {
    &t.sizes[..t.dim() - 2]
}

/// The batch's sizes, followed by `then`.
pub fn sizes_of(batch: &[i64], then: &[i64]) -> Dims {
    batch.iter().chain(then).copied().collect()
}

/// Integer type of offsets in all of these.
pub fn index_of(tensors: &[&View]) -> ScalarType {
    index_type(tensors.iter().map(|t| reach(t)).max().unwrap_or(0))
}

/// Number of real numbers from the first to the end.
pub fn reach(t: &View) -> i64 {
    if t.dtype.is_complex() { 2 * t.reach() } else { t.reach() }
}

/// The real parts of complex matrices; real ones unchanged.
pub fn real_part(t: &View) -> View {
    if t.dtype.is_complex() { complex::parts(t)[0].clone() } else { t.clone() }
}

/// Rows of a diagonal block of matrices of this dtype, which fits into 16 KiB of shared memory
/// together with other arrays.
pub fn block_rows(dtype: DType) -> u32 {
    if dtype == DType::C128 { 16 } else { 32 }
}

/// Rows of a kernel with one invocation for each: the smallest of 8, 16, 32 and so on that is at
/// least `n`.
pub fn rows_for(n: i64) -> u32 {
    (n as u32).next_power_of_two().max(8)
}

/// Minimum number of invocations of a workgroup for matrices with few rows.
pub const MIN_WORKGROUP: u32 = 32;

/// Number of matrices of `rows` rows, a power of two, that fill a workgroup.
pub fn matrices_per_workgroup(rows: u32) -> u32 {
    (MIN_WORKGROUP / rows).max(1)
}

/// Number of workgroups for `batch` matrices with `each` in a workgroup.
pub fn workgroups_for(batch: i64, each: u32) -> u32 {
    (batch as u64).div_ceil(each.into()) as u32
}

/// Kernel parameter: the strides of `[batch, rows, columns]`.
pub struct MatrixStrides;

/// Strides in a kernel.
#[derive(Copy, Clone)]
pub struct StrideParams<'b> {
    batch: Value<'b>,
    row: Value<'b>,
    column: Value<'b>,
}

impl Parameter for MatrixStrides {
    type Type = ScalarType;
    type Argument<'a> = &'a View;
    type Declared<'b> = StrideParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, index: &ScalarType) -> StrideParams<'b> {
        let param = |what: &str| b.param(&format!("{name}_{what}"), *index);
        StrideParams { batch: param("batch"), row: param("row"), column: param("column") }
    }

    fn pass(t: &&View, index: &ScalarType, block: &mut ArgumentBlock) {
        for stride in &t.strides {
            Index::pass(stride, index, block);
        }
    }
}

impl<'b> StrideParams<'b> {
    /// The offset of an element; `batch`, `row` and `column` are u32.
    pub fn at(&self, batch: Value<'b>, row: Value<'b>, column: Value<'b>) -> Value<'b> {
        let index = self.batch.scalar();
        batch.cast(index) * self.batch + row.cast(index) * self.row + column.cast(index) * self.column
    }

    /// Whether the row stride is smaller than the column stride.
    pub fn rows_are_closer(&self) -> Value<'b> {
        self.row.lt(self.column)
    }
}

/// Workgroups of a launch with `tiles` for every matrix.
pub fn workgroups(batch: i64, tiles: i64) -> [u32; 3] {
    folded((batch * tiles) as u64)
}

/// The matrix (u32) of which this invocation has a row, and whether it exists: as many matrices of
/// `rows` rows as fit share a workgroup. If it does not exist, the index of another matrix is
/// returned. Superfluous workgroups end.
pub fn invocation_matrix<'b>(b: &'b Builder, batch: Value<'b>, rows: u32) -> (Value<'b>, Value<'b>) {
    let together = matrices_per_workgroup(rows);
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    b.if_((group * together).ge(batch), || b.return_());
    let matrix = group * together + (b.local_id(0) >> rows.ilog2());
    (matrix.min(batch - 1), matrix.lt(batch))
}

/// The matrix and its tile for this workgroup (u32); superfluous workgroups end.
pub fn workgroup_tile<'b>(b: &'b Builder, batch: Value<'b>, tiles: Value<'b>) -> (Value<'b>, Value<'b>) {
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    b.if_(group.ge(batch * tiles), || b.return_());
    let matrix = group / tiles;
    (matrix, group - matrix * tiles)
}
