//! Rows of a contiguous tensor (all elements along one dimension), each shared by some invocations
//! of a workgroup: how they are dealt out, and what is computed of a whole row.

use crate::dtype::accumulator;
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::dense::{self, GROUP};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value};

/// How rows are dealt to invocations.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Type of indices.
    pub index: ScalarType,
    /// Invocations that share a row; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share a row (whose elements are neighbours); otherwise they have
    /// neighbouring rows.
    pub lanes_first: bool,
}

/// How many rows there are, and how they lie.
#[derive(Copy, Clone, Debug)]
pub struct Extent {
    /// Rows.
    pub rows: i64,
    /// Elements of a row.
    pub n: i64,
    /// From one element of a row to the next, in elements.
    pub inner: i64,
}

impl Extent {
    /// The rows along dimension `dim` of a contiguous tensor of these sizes, of which none is 0.
    pub fn along(sizes: &[i64], dim: usize) -> Extent {
        let n = sizes.get(dim).copied().unwrap_or(1);
        let inner = sizes.iter().skip(dim + 1).product();
        Extent { rows: sizes.iter().product::<i64>() / n, n, inner }
    }
}

/// An [`Extent`] as a kernel's parameter.
pub struct RowExtent;

/// An [`Extent`] in a kernel.
#[derive(Copy, Clone)]
pub struct ExtentParams<'b> {
    /// Rows.
    pub rows: Value<'b>,
    /// Elements of a row.
    pub n: Value<'b>,
    /// From one element of a row to the next, in elements.
    pub inner: Value<'b>,
}

impl Parameter for RowExtent {
    /// The type of the three.
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

/// An invocation's row, and its place among those that share it.
#[derive(Clone)]
pub struct RowPosition<'b> {
    /// Index of the invocation in the workgroup (u32).
    pub local: Value<'b>,
    /// Its index among those of its row (u32).
    pub lane: Value<'b>,
    /// Index in the workgroup of the row's first invocation (u32), and the step to the next one.
    pub leader: Value<'b>,
    /// See `leader`.
    pub apart: u32,
    /// The row's number.
    pub row: Value<'b>,
    /// Offset of the row's first element. The step to the next one is `inner`.
    pub first: Value<'b>,
    /// Whether there is such a row. A superfluous invocation reads the last one and must write
    /// nothing.
    pub valid: Value<'b>,
}

impl Rows {
    /// Workgroups that these rows take.
    pub fn groups(&self, extent: &Extent) -> [u32; 3] {
        dense::folded((extent.rows as u64).div_ceil(u64::from(GROUP / self.lanes)))
    }

    /// The place of this invocation; `rows` rows of `n` elements, `inner` apart.
    pub fn place<'b>(&self, b: &'b Builder, rows: Value<'b>, n: Value<'b>, inner: Value<'b>) -> RowPosition<'b> {
        let (lanes, columns) = (self.lanes, GROUP / self.lanes);
        let local = b.local_id(0);
        let (lane, column, leader, apart) = if self.lanes_first {
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
        RowPosition { local, lane, leader, apart, row, first, valid: wanted.lt(rows) }
    }
}

/// Most elements that an invocation holds in registers.
const HELD: u32 = 16;

impl Rows {
    /// How rows of `n` neighbouring elements are dealt out, and how many elements an invocation
    /// then holds in registers (0 if rows are too long for that).
    fn held_neighbours(index: ScalarType, n: i64) -> (Rows, u32) {
        let lanes = (needed(n, i64::from(HELD)) as u32).next_power_of_two().min(GROUP);
        (Rows { index, lanes, lanes_first: true }, held(n, lanes))
    }

    /// The same where an invocation holds few, and rows are rather shared by more.
    pub fn of_neighbours(index: ScalarType, n: i64) -> (Rows, u32) {
        let lanes = (needed(n, 4) as u32).next_power_of_two().min(GROUP);
        (Rows { index, lanes, lanes_first: true }, held(n, lanes))
    }

    /// The same for `rows` rows whose elements are apart, and which are neighbours themselves.
    pub fn of_columns(index: ScalarType, n: i64, rows: i64) -> (Rows, u32) {
        let columns = (rows.min(i64::from(COLUMNS)) as u32).next_power_of_two();
        let lanes = (needed(n, 8) as u32).next_power_of_two().min(GROUP / columns);
        (Rows { index, lanes, lanes_first: false }, held(n, lanes))
    }
}

/// Values that an invocation joins when what a row's invocations have is joined.
const JOINED: u32 = 16;

/// Neighbouring rows in a workgroup when their elements are neighbours in memory.
const COLUMNS: u32 = 32;

/// Rows are never held from this length on.
const LONG: i64 = 1 << 20;

fn needed(n: i64, each: i64) -> i64 {
    (n.clamp(1, LONG) + each - 1) / each
}

fn held(n: i64, lanes: u32) -> u32 {
    let held = (n.min(LONG) as u32).div_ceil(lanes).next_power_of_two();
    if held <= HELD && n < LONG { held } else { 0 }
}

/// How the elements of rows are dealt out.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dealt {
    /// Who shares a row.
    pub rows: Rows,
    /// Elements that an invocation holds in registers; 0 if rows are too long for that.
    pub held: u32,
    /// How many neighbours go to one invocation before the next has its first: it depends on the
    /// rows' length and dtype alone, as do the results of sums.
    pub chunk: u32,
    /// They are moved in one access.
    pub wide: bool,
    /// Every invocation of a row holds as many elements as any.
    pub full: bool,
}

impl Dealt {
    /// Rows of `n` neighbouring elements of a dtype; the addresses of all tensors that are accessed
    /// so, and the bytes of their elements.
    pub fn neighbours(index: ScalarType, n: i64, dtype: DType, accessed: &[(u64, u64)]) -> Dealt {
        let (rows, held) = Rows::held_neighbours(index, n);
        let most = 16 / dtype.bytes() as i64;
        let chunk = (1 << n.trailing_zeros().min(most.ilog2())) as u32;
        let aligned = |&(address, bytes): &(u64, u64)| address.is_multiple_of(u64::from(chunk) * bytes);
        let (wide, full) = (chunk > 1 && accessed.iter().all(aligned), n == i64::from(held * rows.lanes));
        Dealt { rows, held, chunk, wide, full }
    }

    /// `rows` rows of `n` elements that are apart.
    pub fn columns(index: ScalarType, n: i64, rows: i64) -> Dealt {
        let (rows, held) = Rows::of_columns(index, n, rows);
        Dealt { rows, held, chunk: 1, wide: false, full: n == i64::from(held * rows.lanes) }
    }
}

/// An invocation's share of a row: elements `lane`, `lane + lanes`, ..., or as many chunks of
/// neighbours.
#[derive(Clone)]
pub struct Share<'b> {
    b: &'b Builder,
    /// Where it is.
    pub place: RowPosition<'b>,
    /// Elements of a row.
    pub n: Value<'b>,
    /// `place.lane` as an index.
    pub lane: Value<'b>,
    /// Invocations that share the row.
    pub lanes: u32,
    /// From one element to the next.
    step: Value<'b>,
    shared: Vec<Shared<'b>>,
    chunk: u32,
    wide: bool,
    full: bool,
}

impl<'b> Share<'b> {
    /// The share of this invocation of rows that are dealt so.
    pub fn dealt(b: &'b Builder, how: &Dealt, extent: ExtentParams<'b>, dtype: DType, together: usize) -> Share<'b> {
        let Dealt { chunk, wide, full, .. } = *how;
        Share { chunk, wide, full, ..Share::of(b, &how.rows, extent, dtype, together) }
    }

    /// The share of this invocation. Up to `together` values of a row's dtype are joined at once.
    pub fn of(b: &'b Builder, how: &Rows, extent: ExtentParams<'b>, dtype: DType, together: usize) -> Share<'b> {
        let index = how.index;
        let ExtentParams { rows, n, inner: step } = extent;
        let place = how.place(b, rows, n, step);
        let together = if how.lanes > 1 { together } else { 0 };
        let shared = (0..together).map(|_| b.shared(accumulator(dtype).compute(), 1, GROUP)).collect();
        let lane = place.lane.cast(index);
        Share { b, place, n, lane, lanes: how.lanes, step, shared, chunk: 1, wide: false, full: false }
    }

    /// The first `count` elements that the invocation has from `start` on, the first one of its
    /// lane and a multiple of all lanes'.
    pub fn elements_from(&self, start: Value<'b>, count: u32) -> Vec<Value<'b>> {
        let chunk = self.chunk;
        (0..count).map(|e| start + (e / chunk * self.lanes * chunk + e % chunk)).collect()
    }

    /// The first of the invocation's elements.
    pub fn first(&self) -> Value<'b> {
        self.lane * self.chunk
    }

    /// The elements that the invocation holds.
    pub fn elements(&self, held: u32) -> Vec<Value<'b>> {
        self.elements_from(self.first(), held)
    }

    /// Goes through the row, `count` of the invocation's elements at a time. What `body` gets
    /// beside their places is this share, or one that need not ask whether they exist: all but the
    /// last of them do.
    pub fn walk(&self, count: u32, body: impl Fn(&Share<'b>, &[Value<'b>])) {
        let (b, step) = (self.b, count * self.lanes);
        let whole = self.n - (self.n & (step - 1));
        let [inside, last] = [true, false].map(|full| Share { full, ..self.clone() });
        b.for_(self.first(), whole, step, |k| body(&inside, &self.elements_from(k, count)));
        // Also of a row of which every invocation has as many elements: these may be fewer than
        // `count`.
        let rest = whole + self.first();
        b.if_(rest.lt(self.n), || body(&last, &self.elements_from(rest, count)));
    }

    /// Whether the row has an element `k`, which is one of those that are held or of a loop over
    /// the row.
    pub fn has(&self, k: Value<'b>) -> Value<'b> {
        if self.full { self.b.bool(true) } else { k.lt(self.n) }
    }

    /// `k`, or the first of the last so many elements if there are not so many from `k` on: loads
    /// need no branch.
    fn within(&self, k: Value<'b>, count: u32) -> Value<'b> {
        if self.full { k } else { k.min(self.n - count) }
    }

    /// Element `k` if it exists, else the last one.
    pub fn offset(&self, k: Value<'b>) -> Value<'b> {
        self.place.first + self.within(k, 1) * self.step
    }

    /// The elements of a row at `at`, or `beyond` where there are none.
    pub fn load(&self, input: Pointer<'b>, at: &[Value<'b>], beyond: f64) -> Vec<Value<'b>> {
        // All loads first: they do not wait for each other.
        let elements: Vec<Value> = if self.wide {
            at.chunks(self.chunk as usize).flat_map(|at| self.load_chunk(input, self.place.first, at[0])).collect()
        } else {
            at.iter().map(|&k| input.load(self.offset(k))).collect()
        };
        if self.full {
            return elements;
        }
        at.iter().zip(elements).map(|(&k, x)| self.has(k).select(x, x.like(beyond))).collect()
    }

    /// The same of something that all rows share, in the scalar type given.
    pub fn load_shared(&self, input: Pointer<'b>, at: &[Value<'b>], scalar: ScalarType) -> Vec<Value<'b>> {
        let elements: Vec<Value> = if self.wide {
            let start = self.n.like(0.0);
            at.chunks(self.chunk as usize).flat_map(|at| self.load_chunk(input, start, at[0])).collect()
        } else {
            at.iter().map(|&k| input.load(self.within(k, 1))).collect()
        };
        elements.into_iter().map(|x| x.cast(scalar)).collect()
    }

    /// The chunk that begins with element `k`, or the last one. Rows consist of whole chunks.
    fn load_chunk(&self, input: Pointer<'b>, start: Value<'b>, k: Value<'b>) -> Vec<Value<'b>> {
        input.load_chunk((start + self.within(k, self.chunk)) >> self.chunk.ilog2(), self.chunk)
    }

    /// Writes those of the elements `at` that exist.
    pub fn store_all(&self, out: Pointer<'b>, at: &[Value<'b>], values: &[Value<'b>]) {
        if !self.wide {
            return at.iter().zip(values).for_each(|(&k, &value)| self.store(out, k, value));
        }
        let size = self.chunk as usize;
        for (at, values) in at.chunks(size).zip(values.chunks(size)) {
            self.b.if_(self.place.valid & self.has(at[0]), || {
                out.store_chunk((self.place.first + at[0]) >> self.chunk.ilog2(), values);
            });
        }
    }

    /// Writes element `k` if it exists.
    pub fn store(&self, out: Pointer<'b>, k: Value<'b>, value: Value<'b>) {
        self.b.if_(self.place.valid & self.has(k), || out.store(self.place.first + k * self.step, value));
    }

    /// Values joined, each with its like, over the row's invocations; known to all of them.
    pub fn all(&self, values: &[Value<'b>], join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        if self.shared.is_empty() {
            return values.to_vec();
        }
        let (b, RowPosition { local, lane, leader, apart, .. }) = (self.b, &self.place);
        b.barrier();
        values.iter().zip(&self.shared).for_each(|(&x, shared)| shared.store(*local, x));
        b.barrier();
        // Two levels: each of a few invocations joins as many values, and all join what these have.
        let mut left = self.lanes;
        if left > JOINED {
            left /= JOINED;
            b.if_(lane.lt(left), || {
                for shared in &self.shared[..values.len()] {
                    let parts = (0..JOINED).map(|k| shared.load(*local + k * left * apart)).collect();
                    shared.store(*local, pairwise(parts, &join));
                }
            });
            b.barrier();
        }
        let joined =
            |shared: &Shared<'b>| pairwise((0..left).map(|k| shared.load(*leader + k * apart)).collect(), &join);
        self.shared[..values.len()].iter().map(joined).collect()
    }

    /// The sum over the row's invocations.
    pub fn sum(&self, x: Value<'b>) -> Value<'b> {
        self.all(&[x], |x, y| x + y)[0]
    }

    /// The largest value of the row's invocations.
    pub fn max(&self, x: Value<'b>) -> Value<'b> {
        self.all(&[x], |x, y| x.max(y))[0]
    }
}

/// Joins values pairwise.
pub fn pairwise<'b>(mut values: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Value<'b> {
    while values.len() > 1 {
        values = values.chunks(2).map(|v| if v.len() == 2 { join(v[0], v[1]) } else { v[0] }).collect();
    }
    values[0]
}
