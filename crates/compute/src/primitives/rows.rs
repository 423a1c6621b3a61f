//! Rows of a contiguous tensor (all elements along one dimension), each shared by some invocations
//! of a workgroup: how elements are distributed to invocations, and reductions of a row.

use crate::dtype::accumulator;
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value};

/// How rows are distributed to invocations.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Integer type of indices.
    pub index: ScalarType,
    /// Invocations that share a row; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share a row (whose elements are adjacent); otherwise they have
    /// adjacent rows.
    pub lanes_first: bool,
}

/// The number of rows, and their layout.
#[derive(Copy, Clone, Debug)]
pub struct Extent {
    /// Number of rows.
    pub rows: i64,
    /// Elements of a row.
    pub n: i64,
    /// Stride of a row.
    pub inner: i64,
}

impl Extent {
    /// The rows along dimension `dim` of a contiguous tensor with these sizes, none of which is 0.
    pub fn along(sizes: &[i64], dim: usize) -> Extent {
        let n = sizes.get(dim).copied().unwrap_or(1);
        let inner = sizes.iter().skip(dim + 1).product();
        Extent { rows: sizes.iter().product::<i64>() / n, n, inner }
    }
}

/// Kernel parameter: an [`Extent`].
pub struct RowExtent;

/// An [`Extent`] in a kernel.
#[derive(Copy, Clone)]
pub struct ExtentParams<'b> {
    /// Number of rows.
    pub rows: Value<'b>,
    /// Elements of a row.
    pub n: Value<'b>,
    /// Stride of a row.
    pub inner: Value<'b>,
}

impl Parameter for RowExtent {
    /// The integer type of the three numbers.
    type Type = ScalarType;
    type Argument<'a> = Extent;
    type Declared<'b> = ExtentParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, index: &ScalarType) -> ExtentParams<'b> {
        ExtentParams { rows: b.param("rows", *index), n: b.param("n", *index), inner: b.param("inner", *index) }
    }

    fn pass(extent: &Extent, index: &ScalarType, block: &mut ArgumentBlock) {
        for size in [extent.rows, extent.n, extent.inner] {
            Index::pass(&size, index, block);
        }
    }
}

/// An invocation's row, and its index among the invocations that share it.
#[derive(Clone)]
pub struct RowPosition<'b> {
    /// Index of the invocation in the workgroup (u32).
    pub local: Value<'b>,
    /// Its index among the invocations of its row (u32).
    pub lane: Value<'b>,
    /// Index in the workgroup of the row's first invocation (u32).
    pub leader: Value<'b>,
    /// Distance in the workgroup between the row's invocations.
    pub lane_stride: u32,
    /// Index of the row.
    pub row: Value<'b>,
    /// Offset of the row's first element.
    pub first: Value<'b>,
    /// Whether the row exists. An excess invocation reads the last row, and must not write.
    pub valid: Value<'b>,
}

impl Rows {
    /// Workgroups for these rows.
    pub fn groups(&self, extent: &Extent) -> [u32; 3] {
        dense::folded((extent.rows as u64).div_ceil(u64::from(GROUP / self.lanes)))
    }

    /// The position of this invocation, for `rows` rows of `n` elements with stride `inner`.
    pub fn row_position<'b>(&self, b: &'b Builder, rows: Value<'b>, n: Value<'b>, inner: Value<'b>) -> RowPosition<'b> {
        let (lanes, columns) = (self.lanes, GROUP / self.lanes);
        let local = b.local_id(0);
        let (lane, column, leader, lane_stride) = if self.lanes_first {
            let lane = local & (lanes - 1);
            (lane, local >> lanes.ilog2(), local - lane, 1)
        } else {
            let column = local & (columns - 1);
            (local >> columns.ilog2(), column, column, columns)
        };
        let index = self.index;
        let group = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        let wanted = group * columns + column.cast(index);
        let row = wanted.min(rows - 1);
        let outer = row / inner;
        let first = outer * n * inner + (row - outer * inner);
        RowPosition { local, lane, leader, lane_stride, row, first, valid: wanted.lt(rows) }
    }
}

/// Maximum number of elements that an invocation holds in registers.
const MAX_REGISTER_ELEMENTS: u32 = 16;

impl Rows {
    /// The distribution of rows of `n` adjacent elements, and how many elements an invocation then
    /// holds in registers (0 if rows are too long).
    fn contiguous_in_registers(index: ScalarType, n: i64) -> (Rows, u32) {
        let lanes = (needed(n, i64::from(MAX_REGISTER_ELEMENTS)) as u32).next_power_of_two().min(GROUP);
        (Rows { index, lanes, lanes_first: true }, register_elements(n, lanes))
    }

    /// The same with few elements for each invocation, and more invocations for each row.
    pub fn of_contiguous(index: ScalarType, n: i64) -> (Rows, u32) {
        let lanes = (needed(n, 4) as u32).next_power_of_two().min(GROUP);
        (Rows { index, lanes, lanes_first: true }, register_elements(n, lanes))
    }

    /// The same for `rows` adjacent rows whose elements are not adjacent.
    pub fn of_columns(index: ScalarType, n: i64, rows: i64) -> (Rows, u32) {
        let columns = (rows.min(i64::from(COLUMNS)) as u32).next_power_of_two();
        let lanes = (needed(n, 8) as u32).next_power_of_two().min(GROUP / columns);
        (Rows { index, lanes, lanes_first: false }, register_elements(n, lanes))
    }
}

/// Values that an invocation combines in one step of a row's reduction.
const REDUCTION_WIDTH: u32 = 16;

/// Adjacent rows in a workgroup, if the elements of a row are not adjacent in memory.
const COLUMNS: u32 = 32;

/// Rows of this length or more are never held in registers.
const MIN_STREAMED_LENGTH: i64 = 1 << 20;

fn needed(n: i64, each: i64) -> i64 {
    (n.clamp(1, MIN_STREAMED_LENGTH) + each - 1) / each
}

fn register_elements(n: i64, lanes: u32) -> u32 {
    let register_elements = (n.min(MIN_STREAMED_LENGTH) as u32).div_ceil(lanes).next_power_of_two();
    if register_elements <= MAX_REGISTER_ELEMENTS && n < MIN_STREAMED_LENGTH { register_elements } else { 0 }
}

/// How the elements of rows are distributed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowDistribution {
    /// The invocations of a row.
    pub rows: Rows,
    /// Elements that an invocation holds in registers; 0 if rows are too long for that.
    pub register_elements: u32,
    /// Number of adjacent elements of an invocation, before the next invocation has its first: it
    /// depends on the rows' length and dtype alone, and so do the results of sums.
    pub chunk: u32,
    /// The adjacent elements are loaded and stored in one access.
    pub vectorized: bool,
    /// Every invocation of a row holds the same number of elements.
    pub full: bool,
}

impl RowDistribution {
    /// Rows of `n` adjacent elements of a dtype. `accessed` is the address and element size of
    /// every tensor that is accessed by these rows.
    pub fn contiguous(index: ScalarType, n: i64, dtype: DType, accessed: &[(u64, u64)]) -> RowDistribution {
        let (rows, register_elements) = Rows::contiguous_in_registers(index, n);
        let most = 16 / dtype.bytes() as i64;
        let chunk = (1 << n.trailing_zeros().min(most.ilog2())) as u32;
        let aligned = |&(address, bytes): &(u64, u64)| address.is_multiple_of(u64::from(chunk) * bytes);
        let (vectorized, full) =
            (chunk > 1 && accessed.iter().all(aligned), n == i64::from(register_elements * rows.lanes));
        RowDistribution { rows, register_elements, chunk, vectorized, full }
    }

    /// `rows` adjacent rows of `n` elements that are not adjacent.
    pub fn columns(index: ScalarType, n: i64, rows: i64) -> RowDistribution {
        let (rows, register_elements) = Rows::of_columns(index, n, rows);
        RowDistribution {
            rows,
            register_elements,
            chunk: 1,
            vectorized: false,
            full: n == i64::from(register_elements * rows.lanes),
        }
    }
}

/// An invocation's part of a row: elements `lane`, `lane + lanes`, ..., or chunks of adjacent
/// elements in that order.
#[derive(Clone)]
pub struct RowPart<'b> {
    b: &'b Builder,
    /// The invocation's row and its index in it.
    pub position: RowPosition<'b>,
    /// Elements of a row.
    pub n: Value<'b>,
    /// `position.lane`, as the index type.
    pub lane: Value<'b>,
    /// Invocations that share the row.
    pub lanes: u32,
    /// Stride of a row.
    step: Value<'b>,
    shared: Vec<Shared<'b>>,
    chunk: u32,
    vectorized: bool,
    full: bool,
}

impl<'b> RowPart<'b> {
    /// This invocation's part, for rows with this distribution.
    pub fn part_of_row(
        b: &'b Builder,
        how: &RowDistribution,
        extent: ExtentParams<'b>,
        dtype: DType,
        together: usize,
    ) -> RowPart<'b> {
        let RowDistribution { chunk, vectorized, full, .. } = *how;
        RowPart { chunk, vectorized, full, ..RowPart::of(b, &how.rows, extent, dtype, together) }
    }

    /// This invocation's part. Up to `together` values of a row's dtype are reduced at once.
    pub fn of(b: &'b Builder, how: &Rows, extent: ExtentParams<'b>, dtype: DType, together: usize) -> RowPart<'b> {
        let index = how.index;
        let ExtentParams { rows, n, inner: step } = extent;
        let position = how.row_position(b, rows, n, step);
        let together = if how.lanes > 1 { together } else { 0 };
        let shared = (0..together).map(|_| b.shared(accumulator(dtype).compute(), 1, GROUP)).collect();
        let lane = position.lane.cast(index);
        RowPart { b, position, n, lane, lanes: how.lanes, step, shared, chunk: 1, vectorized: false, full: false }
    }

    /// The invocation's first `count` elements from `start` on. `start` is its first element plus a
    /// multiple of `lanes * chunk`.
    pub fn elements_from(&self, start: Value<'b>, count: u32) -> Vec<Value<'b>> {
        let chunk = self.chunk;
        (0..count).map(|e| start + (e / chunk * self.lanes * chunk + e % chunk)).collect()
    }

    /// The first of the invocation's elements.
    pub fn first(&self) -> Value<'b> {
        self.lane * self.chunk
    }

    /// The elements that the invocation holds.
    pub fn elements(&self, register_elements: u32) -> Vec<Value<'b>> {
        self.elements_from(self.first(), register_elements)
    }

    /// Iterates over the row, `count` of the invocation's elements at a time. `body` gets the
    /// indices, and a `RowPart` for accessing them: it checks bounds in the last iteration only.
    pub fn for_each_chunk(&self, count: u32, body: impl Fn(&RowPart<'b>, &[Value<'b>])) {
        let (b, step) = (self.b, count * self.lanes);
        let whole = self.n - (self.n & (step - 1));
        let [inside, last] = [true, false].map(|full| RowPart { full, ..self.clone() });
        b.for_(self.first(), whole, step, |k| body(&inside, &self.elements_from(k, count)));
        // Bounds are checked even if every invocation has the same number of elements, which may be
        // fewer than `count`.
        let rest = whole + self.first();
        b.if_(rest.lt(self.n), || body(&last, &self.elements_from(rest, count)));
    }

    /// Whether `k`, one of the invocation's elements or of an iteration over the row, is in range.
    pub fn has(&self, k: Value<'b>) -> Value<'b> {
        if self.full { self.b.bool(true) } else { k.lt(self.n) }
    }

    /// `k`, or the last index from which `count` elements are in range: loads need no branch.
    fn within(&self, k: Value<'b>, count: u32) -> Value<'b> {
        if self.full { k } else { k.min(self.n - count) }
    }

    /// Offset of element `k`; of the last element if `k` is out of range.
    pub fn offset(&self, k: Value<'b>) -> Value<'b> {
        self.position.first + self.within(k, 1) * self.step
    }

    /// Loads the elements of a row with indices `at`; `beyond` if out of range.
    pub fn load(&self, input: Pointer<'b>, at: &[Value<'b>], beyond: f64) -> Vec<Value<'b>> {
        // All loads are issued before the first use.
        let elements: Vec<Value> = if self.vectorized {
            at.chunks(self.chunk as usize).flat_map(|at| self.load_chunk(input, self.position.first, at[0])).collect()
        } else {
            at.iter().map(|&k| input.load(self.offset(k))).collect()
        };
        if self.full {
            return elements;
        }
        at.iter().zip(elements).map(|(&k, x)| self.has(k).select(x, x.like(beyond))).collect()
    }

    /// Loads elements of a tensor that all rows share, in the given scalar type.
    pub fn load_shared(&self, input: Pointer<'b>, at: &[Value<'b>], scalar: ScalarType) -> Vec<Value<'b>> {
        let elements: Vec<Value> = if self.vectorized {
            let start = self.n.like(0.0);
            at.chunks(self.chunk as usize).flat_map(|at| self.load_chunk(input, start, at[0])).collect()
        } else {
            at.iter().map(|&k| input.load(self.within(k, 1))).collect()
        };
        elements.into_iter().map(|x| x.cast(scalar)).collect()
    }

    /// Loads the chunk that begins with element `k`, or the last one. Rows consist of whole chunks.
    fn load_chunk(&self, input: Pointer<'b>, start: Value<'b>, k: Value<'b>) -> Vec<Value<'b>> {
        input.load_chunk((start + self.within(k, self.chunk)) >> self.chunk.ilog2(), self.chunk)
    }

    /// Stores the elements `at` that are in range.
    pub fn store_all(&self, out: Pointer<'b>, at: &[Value<'b>], values: &[Value<'b>]) {
        if !self.vectorized {
            return at.iter().zip(values).for_each(|(&k, &value)| self.store(out, k, value));
        }
        let size = self.chunk as usize;
        for (at, values) in at.chunks(size).zip(values.chunks(size)) {
            self.b.if_(self.position.valid & self.has(at[0]), || {
                out.store_chunk((self.position.first + at[0]) >> self.chunk.ilog2(), values);
            });
        }
    }

    /// Stores element `k` if it is in range.
    pub fn store(&self, out: Pointer<'b>, k: Value<'b>, value: Value<'b>) {
        self.b.if_(self.position.valid & self.has(k), || out.store(self.position.first + k * self.step, value));
    }

    /// Reduces each of the values over the row's invocations, all of which get the results.
    pub fn all(&self, values: &[Value<'b>], join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        if self.shared.is_empty() {
            return values.to_vec();
        }
        let (b, RowPosition { local, lane, leader, lane_stride, .. }) = (self.b, &self.position);
        b.barrier();
        values.iter().zip(&self.shared).for_each(|(&x, shared)| shared.store(*local, x));
        b.barrier();
        // Two levels: first a few invocations reduce several values each, then all invocations
        // reduce the results.
        let mut left = self.lanes;
        if left > REDUCTION_WIDTH {
            left /= REDUCTION_WIDTH;
            b.if_(lane.lt(left), || {
                for shared in &self.shared[..values.len()] {
                    let parts = (0..REDUCTION_WIDTH).map(|k| shared.load(*local + k * left * lane_stride)).collect();
                    shared.store(*local, pairwise(parts, &join));
                }
            });
            b.barrier();
        }
        let joined =
            |shared: &Shared<'b>| pairwise((0..left).map(|k| shared.load(*leader + k * lane_stride)).collect(), &join);
        self.shared[..values.len()].iter().map(joined).collect()
    }

    /// The sum over the row's invocations.
    pub fn sum(&self, x: Value<'b>) -> Value<'b> {
        self.all(&[x], |x, y| x + y)[0]
    }

    /// The maximum over the row's invocations.
    pub fn max(&self, x: Value<'b>) -> Value<'b> {
        self.all(&[x], |x, y| x.max(y))[0]
    }
}

/// Reduces values pairwise.
pub fn pairwise<'b>(mut values: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Value<'b> {
    while values.len() > 1 {
        values = values.chunks(2).map(|v| if v.len() == 2 { join(v[0], v[1]) } else { v[0] }).collect();
    }
    values[0]
}
