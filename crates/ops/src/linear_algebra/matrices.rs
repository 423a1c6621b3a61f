//! Batches of matrices: their memory as decompositions want it, what they must be, and products of their parts.
//!
//! A decomposition works on a tensor of three dimensions, `[batch, rows, columns]`, of any strides; a part of the matrices is a view.

use crate::check;
use crate::complex;
use crate::creation::triangle::{Half, copy_half};
use crate::matmul::{Bias, Finish, Output, Problem, Source};
use crate::movement::copy::{self, read_numbers};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::tensor::layout::index_type;
use crate::tensor::{Dims, Tensor};
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::dense::folded;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The strides of matrices whose columns are contiguous, as LAPACK has them.
pub fn column_major(sizes: &[i64]) -> Dims {
    let mut strides = Tensor::contiguous_strides(sizes);
    let d = sizes.len();
    strides[d - 2] = 1;
    strides[d - 1] = sizes[d - 2].max(1);
    strides
}

/// A new tensor of these sizes with contiguous columns.
pub fn empty(call: &Call, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
    call.empty_strided(dtype, sizes, &column_major(sizes))
}

/// Copies elements, real or complex, on one device; `src` broadcasts to `dst`.
pub fn device_copy(call: &Call, src: &Tensor, dst: &Tensor) -> Result<()> {
    if dst.dtype.is_complex() { complex::device_copy(call, src, dst) } else { copy::device_copy(call, src, dst) }
}

/// Sets every element, real or complex, to a number.
pub fn fill_with(call: &Call, out: &Tensor, value: Number) -> Result<()> {
    if out.dtype.is_complex() { complex::fill_with(call, out, value) } else { copy::fill_with(call, out, value) }
}

/// The tensor itself if it is contiguous, else a contiguous copy, of real or complex elements.
pub fn as_contiguous(call: &Call, t: &Tensor) -> Result<Tensor> {
    if t.is_contiguous() && !t.conjugate { Ok(t.clone()) } else { complex::contiguous(call, t) }
}

/// Whether an element, of at least one, is 0. Waits for them.
pub fn has_zero(call: &Call, t: &Tensor) -> Result<bool> {
    if !t.dtype.is_complex() {
        return Ok(read_numbers::<Vec<Number>>(call, t)?.iter().any(|x| x.to_f64() == 0.0));
    }
    let parts: Vec<Number> = read_numbers(call, &complex::as_real(t))?;
    Ok(parts.chunks_exact(2).any(|parts| parts.iter().all(|x| x.to_f64() == 0.0)))
}

/// New matrices with contiguous columns, of these sizes, with the elements of `t`, which broadcasts to them.
pub fn copied(call: &Call, t: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let copy = empty(call, t.dtype, sizes)?;
    if copy.numel() > 0 {
        device_copy(call, &t.expand(sizes), &copy)?;
    }
    Ok(copy)
}

/// New identity matrices of these sizes (ones on the diagonal of those that are not square) with contiguous columns.
pub fn identity(call: &Call, dtype: DType, sizes: &[i64]) -> Result<Tensor> {
    let eye = empty(call, dtype, sizes)?;
    if eye.numel() > 0 {
        fill_with(call, &eye, Number::Int(0))?;
        fill_with(call, &diagonal(&eye), Number::Int(1))?;
    }
    Ok(eye)
}

/// `[batch, rows, columns]` of matrices whose batch is contiguous, as that of those made here.
pub fn flat(t: &Tensor) -> Tensor {
    let d = t.dim();
    let batch: i64 = t.sizes[..d - 2].iter().product();
    let (m, n) = (t.sizes[d - 2], t.sizes[d - 1]);
    t.as_strided(&[batch, m, n], &[m * n, t.strides[d - 2], t.strides[d - 1]], 0)
}

/// `[batch, rows, columns]` of any matrices, expanded to the batch's sizes: a copy where the batch's strides do not allow a view.
pub fn readable(call: &Call, t: &Tensor, batch: &[i64]) -> Result<Tensor> {
    let (m, n) = (t.size(-2), t.size(-1));
    let sizes: Dims = batch.iter().copied().chain([m, n]).collect();
    let t = t.expand(&sizes);
    let last = batch.len();
    let step = (0..last).rev().find(|&d| batch[d] != 1).map_or(0, |d| t.strides[d]);
    let mut expected = step;
    for d in (0..last).rev().filter(|&d| batch[d] != 1) {
        if t.strides[d] != expected {
            return copied(call, &t, &sizes).map(|t| flat(&t));
        }
        expected *= batch[d];
    }
    Ok(t.as_strided(&[batch.iter().product(), m, n], &[step, t.strides[last], t.strides[last + 1]], 0))
}

/// Rows and columns `rows.0..rows.1`, `columns.0..columns.1` of `[batch, rows, columns]`.
pub fn part(t: &Tensor, rows: (i64, i64), columns: (i64, i64)) -> Tensor {
    t.narrow(1, rows.0, rows.1 - rows.0).narrow(2, columns.0, columns.1 - columns.0)
}

/// Where `n` rows (more than `block`) are divided in two: at a multiple of `block`.
pub fn half(n: i64, block: u32) -> i64 {
    ((n / 2) as u64).next_multiple_of(block.into()) as i64
}

/// The matrices transposed.
pub fn transposed(t: &Tensor) -> Tensor {
    let d = t.dim();
    t.transpose(d - 2, d - 1)
}

/// Complex matrices conjugated: what reads them looks at the conjugate bit. Real ones as they are.
pub fn conjugated(t: &Tensor) -> Tensor {
    Tensor { conjugate: t.dtype.is_complex() != t.conjugate, ..t.clone() }
}

/// The matrices conjugated and transposed: what makes of `x` its `x^H`.
pub fn adjoint(t: &Tensor) -> Tensor {
    conjugated(&transposed(t))
}

/// The matrices' lower triangle with ones on the diagonal and zeros above, as new matrices, of at least one element.
pub fn unit_lower(call: &Call, t: &Tensor) -> Result<Tensor> {
    let l = empty(call, t.dtype, &t.sizes)?;
    copy_unit_lower(call, t, &l)?;
    Ok(l)
}

/// The same into `l`, of the same sizes.
pub fn copy_unit_lower(call: &Call, t: &Tensor, l: &Tensor) -> Result<()> {
    copy_half(call, t, l, -1, Half::Lower)?;
    fill_with(call, &diagonal(l), Number::Int(1))
}

/// The diagonals, `[batch, n]`, of matrices that [`flat`] takes.
pub fn diagonal(t: &Tensor) -> Tensor {
    diagonal_of(&flat(t))
}

/// The diagonals, `[batch, n]`, of `[batch, rows, columns]`.
pub fn diagonal_of(t: &Tensor) -> Tensor {
    let n = t.sizes[1].min(t.sizes[2]);
    t.as_strided(&[t.sizes[0], n], &[t.strides[0], t.strides[1] + t.strides[2]], 0)
}

/// Vectors, `[.., n]`, as matrices of one column.
pub fn column(t: &Tensor) -> Tensor {
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

/// The product of `[batch, m, k]` and `[batch, k, n]` into `[batch, m, n]`, which may share memory with them but no element. Conjugate bits of
/// the two count.
pub fn multiply(call: &Call, [a, b]: [&Tensor; 2], out: &Tensor, into: Into) -> Result<()> {
    let ([batch, m, k], n) = ([a.sizes[0], a.sizes[1], a.sizes[2]], b.sizes[2]);
    if out.numel() == 0 {
        return Ok(());
    }
    if k == 0 {
        return if into == Into::Written { fill_with(call, out, Number::Int(0)) } else { Ok(()) };
    }
    if out.dtype.is_complex() {
        return multiply_complex(call, [a, b], out, into);
    }
    let apart = |t: &Tensor| if batch == 1 { 0 } else { t.strides[0] };
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
    problem.run(call)
}

/// The same of complex matrices, as a product of real ones of twice the size, for which rows of the result have to lie as rows of reals.
fn multiply_complex(call: &Call, [a, b]: [&Tensor; 2], out: &Tensor, into: Into) -> Result<()> {
    let is_dense = |t: &Tensor, d: usize| t.sizes[d] == 1 || t.strides[d] == 1;
    if !is_dense(out, 2) {
        if is_dense(out, 1) {
            return multiply_complex(call, [&transposed(b), &transposed(a)], &transposed(out), into);
        }
        let aside = copied(call, out, &out.sizes)?;
        multiply_complex(call, [a, b], &aside, into)?;
        return device_copy(call, &aside, out);
    }
    let rows = if is_dense(a, 2) && !a.conjugate { a.clone() } else { complex::contiguous(call, a)? };
    let (k, n) = (a.sizes[2], out.sizes[2]);
    let blocks = complex::blocks(call, b, [k, n])?;
    multiply(call, [&complex::interleaved(&rows, 2 * k), &blocks], &complex::interleaved(out, 2 * n), into)
}

/// Gives a result back: `made` itself, or `out=`, which gets its elements and is cast to where that loses nothing.
pub fn give(call: &mut Call, given: Option<&Tensor>, made: Tensor) -> Result<()> {
    let Some(given) = given else {
        call.ret(made);
        return Ok(());
    };
    let out = call.result_strided(Some(given), made.dtype, &made.sizes, || made.strides.clone())?;
    if out.numel() > 0 {
        device_copy(call, &made, &out)?;
    }
    call.ret(out);
    Ok(())
}

/// Checks that a tensor is of matrices.
pub fn check_matrices(t: &Tensor, operator: &str, name: &str) -> Result<()> {
    check!(t.dim() >= 2, Runtime, "{operator}: The input tensor {name} must have at least 2 dimensions.");
    Ok(())
}

/// Checks that a tensor is of square matrices.
pub fn check_square(t: &Tensor, operator: &str, name: &str) -> Result<()> {
    check_matrices(t, operator, name)?;
    check!(
        t.size(-1) == t.size(-2),
        Runtime,
        "{operator}: {name} must be batches of square matrices, but they are {} by {} matrices",
        t.size(-2),
        t.size(-1)
    );
    Ok(())
}

/// Checks that elements are floating point numbers.
pub fn check_floats(t: &Tensor, operator: &str) -> Result<()> {
    let dtype = t.dtype;
    let fits = dtype.is_float() || dtype.is_complex();
    check!(fits, Dtype, "{operator}: Expected a floating point or complex tensor as input. Got {dtype}");
    Ok(())
}

/// The same of an operator that refuses halves before its kernel does.
pub fn check_wide_floats(t: &Tensor, operator: &str) -> Result<()> {
    check_floats(t, operator)?;
    let dtype = t.dtype;
    check!(has_kernels(dtype), Dtype, "{operator}: Low precision dtypes not supported. Got {dtype}");
    Ok(())
}

/// Checks that there are kernels for the dtype, where there are elements: what is empty has any dtype.
pub fn check_kernels_of_elements(t: &Tensor, kernel: &str) -> Result<()> {
    if t.numel() == 0 { Ok(()) } else { check_kernels(t, kernel) }
}

/// Checks that there are kernels for the dtype; `kernel` is the CPU's name of its own.
pub fn check_kernels(t: &Tensor, kernel: &str) -> Result<()> {
    check!(has_kernels(t.dtype), NotImplemented, "\"{kernel}\" not implemented for '{}'", t.dtype);
    Ok(())
}

fn has_kernels(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// Checks the operands of `AX = B`, or of `XA = B` where A is not on the left.
pub fn check_system(a: &Tensor, b: &Tensor, left: bool, operator: &str) -> Result<()> {
    check_square(a, operator, "A")?;
    check_matrices(b, operator, "B")?;
    check!(
        a.size(-2) == b.size(if left { -2 } else { -1 }),
        Runtime,
        "{operator}: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})",
        if left { "AX = B" } else { "XA = B" },
        a.size(-2),
        a.size(-1),
        b.size(-2),
        b.size(-1)
    );
    Ok(())
}

/// Checks the operands of `AX = b` of the operators that came before linalg's.
pub fn check_linear_solve(b: &Tensor, a: &Tensor, operator: &str) -> Result<()> {
    check!(
        a.dtype == b.dtype,
        Runtime,
        "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
        b.dtype,
        a.dtype
    );
    check!(
        a.size(-1) == a.size(-2),
        Runtime,
        "A must be batches of square matrices, but they are {} by {} matrices",
        a.size(-2),
        a.size(-1)
    );
    check!(
        b.dim() >= 2,
        Index,
        "Dimension out of range (expected to be in range of [-{0}, {1}], but got -2)",
        b.dim().max(1),
        b.dim().max(1) - 1
    );
    check!(
        a.size(-2) == b.size(-2),
        Runtime,
        "Incompatible matrix sizes for {operator}: each A matrix is {} by {} but each b matrix is {} by {}",
        a.size(-1),
        a.size(-1),
        b.size(-2),
        b.size(-1)
    );
    Ok(())
}

/// The batch's sizes of two operands, broadcast.
pub fn broadcast_batch(call: &Call, a: &Tensor, b: &Tensor) -> Result<Dims> {
    call.broadcast(batch_of(a), batch_of(b))
}

/// The batch's sizes.
pub fn batch_of(t: &Tensor) -> &[i64] {
    &t.sizes[..t.dim() - 2]
}

/// The batch's sizes and some behind them.
pub fn sizes_of(batch: &[i64], then: &[i64]) -> Dims {
    batch.iter().chain(then).copied().collect()
}

/// The type of offsets in all of these.
pub fn index_of(tensors: &[&Tensor]) -> ScalarType {
    index_type(tensors.iter().map(|t| reach(t)).max().unwrap_or(0))
}

/// Real numbers from the first of these to one past the highest.
pub fn reach(t: &Tensor) -> i64 {
    if t.dtype.is_complex() { 2 * t.reach() } else { t.reach() }
}

/// The real parts of complex matrices; real ones as they are.
pub fn real_part(t: &Tensor) -> Tensor {
    if t.dtype.is_complex() { complex::parts(t)[0].clone() } else { t.clone() }
}

/// Rows of a block on the diagonal of matrices of this dtype, which fits into 16 KiB of shared memory with more beside it.
pub fn block_rows(dtype: DType) -> u32 {
    if dtype == DType::C128 { 16 } else { 32 }
}

/// Rows that a kernel's invocations take, one each: the fewest of 8, 16, 32 and so on that `n` needs.
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
    type Argument<'a> = &'a Tensor;
    type Declared<'b> = StrideParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, index: &ScalarType) -> StrideParams<'b> {
        let param = |what: &str| b.param(&format!("{name}_{what}"), *index);
        StrideParams { batch: param("batch"), row: param("row"), column: param("column") }
    }

    fn pass(t: &&Tensor, index: &ScalarType, block: &mut ArgumentBlock) {
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

/// The matrix (u32) that this invocation has a row of, and whether there is one: `together` of `rows` invocations share a workgroup. Where there is
/// none it is another one's. Superfluous workgroups end.
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
