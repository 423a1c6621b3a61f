//! Rows of a contiguous tensor (all elements along one dimension), each shared by some invocations of a workgroup: how
//! they are dealt out, and what is computed of a whole row.

use crate::tensor::promote::accumulator;
use dml_engine::{ArgumentBlock, Parameter, interface::Index};
use dml_kernel::dense::GROUP;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value, dense};

/// How rows are dealt to invocations.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Type of indices.
    pub index: ScalarType,
    /// Invocations that share a row; a power of two.
    pub lanes: u32,
    /// Neighbouring invocations share a row (whose elements are neighbours); otherwise they have neighbouring rows.
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
    /// Whether there is such a row. A superfluous invocation reads the last one and must write nothing.
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
    /// How rows of `n` neighbouring elements are dealt out, and how many elements an invocation then holds in
    /// registers (0 if rows are too long for that).
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

/// An invocation's share of a row: elements `lane`, `lane + lanes`, ...
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
}

impl<'b> Share<'b> {
    /// The share of this invocation. Up to `together` values of a row's dtype are joined at once.
    pub fn of(b: &'b Builder, how: &Rows, extent: ExtentParams<'b>, dtype: DType, together: usize) -> Share<'b> {
        let index = how.index;
        let ExtentParams { rows, n, inner: step } = extent;
        let place = how.place(b, rows, n, step);
        let together = if how.lanes > 1 { together } else { 0 };
        let shared = (0..together).map(|_| b.shared(accumulator(dtype).compute(), 1, GROUP)).collect();
        let lane = place.lane.cast(index);
        Share { b, place, n, lane, lanes: how.lanes, step, shared }
    }

    /// The elements that the invocation holds.
    pub fn elements(&self, held: u32) -> Vec<Value<'b>> {
        (0..held).map(|e| self.lane + e * self.lanes).collect()
    }

    /// Element `k` if it exists, else the last one: loads need no branch.
    pub fn offset(&self, k: Value<'b>) -> Value<'b> {
        self.place.first + k.min(self.n - 1) * self.step
    }

    /// The elements of a row at `at`, or `beyond` where there are none.
    pub fn load(&self, input: Pointer<'b>, at: &[Value<'b>], beyond: f64) -> Vec<Value<'b>> {
        // All loads first: they do not wait for each other.
        let elements: Vec<Value> = at.iter().map(|&k| input.load(self.offset(k))).collect();
        at.iter().zip(elements).map(|(k, x)| k.lt(self.n).select(x, x.like(beyond))).collect()
    }

    /// Writes element `k` if it exists.
    pub fn store(&self, out: Pointer<'b>, k: Value<'b>, value: Value<'b>) {
        self.b.if_(self.place.valid & k.lt(self.n), || out.store(self.place.first + k * self.step, value));
    }

    /// Values joined, each with its like, over the row's invocations; known to all of them.
    pub fn all(&self, values: &[Value<'b>], join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        if self.shared.is_empty() {
            return values.to_vec();
        }
        let (b, lane) = (self.b, self.place.lane);
        let parts: Vec<_> = values.iter().zip(&self.shared).map(|(&x, &shared)| (b.var(x), shared)).collect();
        b.barrier();
        for (total, shared) in &parts {
            shared.store(self.place.local, total.get());
        }
        let mut half = self.lanes / 2;
        while half > 0 {
            b.barrier();
            b.if_(lane.lt(half), || {
                for (total, shared) in &parts {
                    let sum = join(total.get(), shared.load(self.place.local + half * self.place.apart));
                    total.set(sum);
                    shared.store(self.place.local, sum);
                }
            });
            half /= 2;
        }
        b.barrier();
        parts.iter().map(|(_, shared)| shared.load(self.place.leader)).collect()
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
