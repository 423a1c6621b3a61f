//! Batches of matrices: their memory as decompositions want it, what they must be, and products of
//! their parts.
//!
//! A decomposition works on a tensor of three dimensions, `[batch, rows, columns]`, of any strides;
//! a part of the matrices is a view.

use crate::complex;
use crate::context::Context;
use crate::creation::triangle::{Half, copy_half};
use crate::error::Result;
use crate::matmul::epilogue::{Bias, Finish, Output};
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

/// The strides of matrices whose columns are contiguous, as LAPACK has them.
pub fn column_major(sizes: &[i64]) -> Dims {
    let mut strides = View::contiguous_strides(sizes);
    let d = sizes.len();
    strides[d - 2] = 1;
    strides[d - 1] = sizes[d - 2].max(1);
    strides
}

/// A new tensor of these sizes with contiguous columns.
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

/// The tensor itself if it is contiguous, else a contiguous copy, of real or complex elements.
pub fn as_contiguous(cx: &Context, t: &View) -> Result<View> {
    if t.is_contiguous() && !t.conjugate { Ok(t.clone()) } else { complex::contiguous(cx, t) }
}

/// Whether an element, of at least one, is 0. Waits for them.
pub fn has_zero(cx: &Context, t: &View) -> Result<bool> {
    if !t.dtype.is_complex() {
        return Ok(read_numbers::<Vec<Number>>(cx, t)?.iter().any(|x| x.to_f64() == 0.0));
    }
    let parts: Vec<Number> = read_numbers(cx, &complex::as_real(t))?;
    Ok(parts.chunks_exact(2).any(|parts| parts.iter().all(|x| x.to_f64() == 0.0)))
}

/// New matrices with contiguous columns, of these sizes, with the elements of `t`, which broadcasts
/// to them.
pub fn copied(cx: &Context, t: &View, sizes: &[i64]) -> Result<View> {
    let copy = empty(cx, t.dtype, sizes)?;
    if copy.numel() > 0 {
        device_copy(cx, &t.expand(sizes), &copy)?;
    }
    Ok(copy)
}

/// New identity matrices of these sizes (ones on the diagonal of those that are not square) with
/// contiguous columns.
pub fn identity(cx: &Context, dtype: DType, sizes: &[i64]) -> Result<View> {
    let eye = empty(cx, dtype, sizes)?;
    if eye.numel() > 0 {
        fill_with(cx, &eye, Number::Int(0))?;
        fill_with(cx, &diagonal(&eye), Number::Int(1))?;
    }
    Ok(eye)
}

/// `[batch, rows, columns]` of matrices whose batch is contiguous, as that of those made here.
pub fn flat(t: &View) -> View {
    let d = t.dim();
    let batch: i64 = t.sizes[..d - 2].iter().product();
    let (m, n) = (t.sizes[d - 2], t.sizes[d - 1]);
    t.as_strided(&[batch, m, n], &[m * n, t.strides[d - 2], t.strides[d - 1]], 0)
}

/// `[batch, rows, columns]` of any matrices, expanded to the batch's sizes: a copy where the
/// batch's strides do not allow a view.
pub fn readable(cx: &Context, t: &View, batch: &[i64]) -> Result<View> {
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

/// Where `n` rows (more than `block`) are divided in two: at a multiple of `block`.
pub fn half(n: i64, block: u32) -> i64 {
    ((n / 2) as u64).next_multiple_of(block.into()) as i64
}

/// The matrices transposed.
pub fn transposed(t: &View) -> View {
    let d = t.dim();
    t.transpose(d - 2, d - 1)
}

/// Complex matrices conjugated: what reads them looks at the conjugate bit. Real ones as they are.
pub fn conjugated(t: &View) -> View {
    View { conjugate: t.dtype.is_complex() != t.conjugate, ..t.clone() }
}

/// The matrices conjugated and transposed: what makes of `x` its `x^H`.
pub fn adjoint(t: &View) -> View {
    conjugated(&transposed(t))
}

/// The matrices' lower triangle with ones on the diagonal and zeros above, as new matrices, of at
/// least one element.
pub fn unit_lower(cx: &Context, t: &View) -> Result<View> {
    let l = empty(cx, t.dtype, &t.sizes)?;
    copy_unit_lower(cx, t, &l)?;
    Ok(l)
}

/// The same into `l`, of the same sizes.
pub fn copy_unit_lower(cx: &Context, t: &View, l: &View) -> Result<()> {
    copy_half(cx, t, l, -1, Half::Lower)?;
    fill_with(cx, &diagonal(l), Number::Int(1))
}

/// The diagonals, `[batch, n]`, of matrices that [`flat`] takes.
pub fn diagonal(t: &View) -> View {
    diagonal_of(&flat(t))
}

/// The diagonals, `[batch, n]`, of `[batch, rows, columns]`.
pub fn diagonal_of(t: &View) -> View {
    let n = t.sizes[1].min(t.sizes[2]);
    t.as_strided(&[t.sizes[0], n], &[t.strides[0], t.strides[1] + t.strides[2]], 0)
}

/// Vectors, `[.., n]`, as matrices of one column.
pub fn column(t: &View) -> View {
    let strides: Dims = t.strides.iter().copied().chain([1]).collect();
    t.as_strided(&sizes_of(&t.sizes, &[1]), &strides, 0)
}

/// What a product does to its result.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Into {
    /// It is written.
    Written,
    /// It is subtracted.
    Subtracted,
    /// So many times it is added.
    Added(f64),
}

/// The product of `[batch, m, k]` and `[batch, k, n]` into `[batch, m, n]`, which may share memory
/// with them but no element. Conjugate bits of the two count.
pub fn multiply(cx: &Context, [a, b]: [&View; 2], out: &View, into: Into) -> Result<()> {
    let ([batch, m, k], n) = ([a.sizes[0], a.sizes[1], a.sizes[2]], b.sizes[2]);
    if out.numel() == 0 {
        return Ok(());
    }
    if k == 0 {
        return if into == Into::Written { fill_with(cx, out, Number::Int(0)) } else { Ok(()) };
    }
    if out.dtype.is_complex() {
        return multiply_complex(cx, [a, b], out, into);
    }
    let apart = |t: &View| if batch == 1 { 0 } else { t.strides[0] };
    let strides = [apart(out), out.strides[1], out.strides[2]];
    let bias = (into != Into::Written).then(|| Bias { strides, memory: out.into(), beta: Number::Int(1) });
    let alpha = match into {
        Into::Written => Number::Int(1),
        Into::Subtracted => Number::Int(-1),
        Into::Added(times) => Number::Double(times),
    };
    let mut problem = Problem {
        size: [batch, m, n, k],
        a: Source::strided(a, [m, k], [a.strides[1], a.strides[2]], apart(a)),
        b: Source::strided(b, [n, k], [b.strides[2], b.strides[1]], apart(b)),
        finish: Finish { out: Output { strides, memory: out.into(), split: None }, alpha, bias, activation: None },
    };
    problem.run(cx)
}

/// The same of complex matrices, as a product of real ones of twice the size, for which rows of the
/// result have to lie as rows of reals.
fn multiply_complex(cx: &Context, [a, b]: [&View; 2], out: &View, into: Into) -> Result<()> {
    let is_dense = |t: &View, d: usize| t.sizes[d] == 1 || t.strides[d] == 1;
    if !is_dense(out, 2) {
        if is_dense(out, 1) {
            return multiply_complex(cx, [&transposed(b), &transposed(a)], &transposed(out), into);
        }
        let aside = copied(cx, out, &out.sizes)?;
        multiply_complex(cx, [a, b], &aside, into)?;
        return device_copy(cx, &aside, out);
    }
    let rows = if is_dense(a, 2) && !a.conjugate { a.clone() } else { complex::contiguous(cx, a)? };
    let (k, n) = (a.sizes[2], out.sizes[2]);
    let blocks = complex::blocks(cx, b, [k, n])?;
    multiply(cx, [&complex::interleaved(&rows, 2 * k), &blocks], &complex::interleaved(out, 2 * n), into)
}

pub fn has_kernels(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// The batch's sizes.
pub fn batch_of(t: &View) -> &[i64] {
    &t.sizes[..t.dim() - 2]
}

/// The batch's sizes and some behind them.
pub fn sizes_of(batch: &[i64], then: &[i64]) -> Dims {
    batch.iter().chain(then).copied().collect()
}

/// The type of offsets in all of these.
pub fn index_of(tensors: &[&View]) -> ScalarType {
    index_type(tensors.iter().map(|t| reach(t)).max().unwrap_or(0))
}

/// Real numbers from the first of these to one past the highest.
pub fn reach(t: &View) -> i64 {
    if t.dtype.is_complex() { 2 * t.reach() } else { t.reach() }
}

/// The real parts of complex matrices; real ones as they are.
pub fn real_part(t: &View) -> View {
    if t.dtype.is_complex() { complex::parts(t)[0].clone() } else { t.clone() }
}

/// Rows of a block on the diagonal of matrices of this dtype, which fits into 16 KiB of shared
/// memory with more beside it.
pub fn block_rows(dtype: DType) -> u32 {
    if dtype == DType::C128 { 16 } else { 32 }
}

/// Rows that a kernel's invocations take, one each: the fewest of 8, 16, 32 and so on that `n`
/// needs.
pub fn rows_for(n: i64) -> u32 {
    (n as u32).next_power_of_two().max(8)
}

/// Invocations that a workgroup of matrices with few rows has at least.
pub const FEW: u32 = 32;

/// Matrices of so many rows, a power of two, that fill a workgroup.
pub fn matrices_together(rows: u32) -> u32 {
    (FEW / rows).max(1)
}

/// The workgroups that `batch` matrices take, so many in each.
pub fn groups_of(batch: i64, together: u32) -> u32 {
    (batch as u64).div_ceil(together.into()) as u32
}

/// The strides of `[batch, rows, columns]` as a kernel's parameter.
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

    /// Whether rows lie closer to one another than columns.
    pub fn rows_are_closer(&self) -> Value<'b> {
        self.row.lt(self.column)
    }
}

/// Workgroups, `tiles` for every matrix.
pub fn workgroups(batch: i64, tiles: i64) -> [u32; 3] {
    folded((batch * tiles) as u64)
}

/// The matrix (u32) that this invocation has a row of, and whether there is one: `together` of
/// `rows` invocations share a workgroup. Where there is none it is another one's. Superfluous
/// workgroups end.
pub fn own_matrix<'b>(b: &'b Builder, batch: Value<'b>, rows: u32) -> (Value<'b>, Value<'b>) {
    let together = matrices_together(rows);
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    b.if_((group * together).ge(batch), || b.return_());
    let matrix = group * together + (b.local_id(0) >> rows.ilog2());
    (matrix.min(batch - 1), matrix.lt(batch))
}

/// The matrix and the tile of it that this workgroup is for (u32); superfluous workgroups end.
pub fn own_tile<'b>(b: &'b Builder, batch: Value<'b>, tiles: Value<'b>) -> (Value<'b>, Value<'b>) {
    let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
    b.if_(group.ge(batch * tiles), || b.return_());
    let matrix = group / tiles;
    (matrix, group - matrix * tiles)
}
