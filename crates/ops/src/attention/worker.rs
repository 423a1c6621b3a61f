//! One workgroup of attention: products of tiles staged in shared memory, and the sums that it keeps.

use super::matrix::Plane;
use super::spec::{ACROSS, COLUMNS, PATCH, Spec};
use crate::matmul::gemm::multiply_add;
use crate::random::philox::{philox, unit};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value, Var};

/// Elements of inner products that are staged at once.
const DEPTH: u32 = 16;
/// Rows of x that are staged at once.
const AHEAD: u32 = 8;
/// Lanes of a vector in shared memory.
const VECTOR: u32 = 4;

/// Turns of loops of [`Worker::accumulate`].
pub const ACCUMULATE_TURNS: i64 = (COLUMNS / AHEAD * (1 + AHEAD)) as i64;

/// Turns of loops of [`Worker::product`] of so many elements.
pub fn product_turns(depth: i64) -> i64 {
    (depth as u64).div_ceil(u64::from(DEPTH)) as i64 * i64::from(1 + DEPTH / 2)
}

/// This invocation's part of a tile, by row and column.
pub type Patch<'b> = Vec<Vec<Value<'b>>>;

/// A workgroup at work on a tile of rows.
pub struct Worker<'b> {
    /// Where it is written.
    pub b: &'b Builder,
    /// What it does.
    pub spec: Spec,
    /// Rows that exist.
    pub rows: Value<'b>,
    /// Columns that exist.
    pub columns: Value<'b>,
    /// First and end of those that are walked.
    walked: [Value<'b>; 2],
    /// Place of this invocation's patch along a row of the tile.
    pub across: Value<'b>,
    down: Value<'b>,
    row0: Value<'b>,
    /// First column of x, and columns that exist.
    x0: Value<'b>,
    width: Value<'b>,
    /// Tiles of both factors as `[depth][row]`, or of x as `[row][column]`.
    tiles: Shared<'b>,
    /// Weights as `[column][row]`.
    weights: Shared<'b>,
    /// One number of every invocation, `[row][across]`.
    numbers: Shared<'b>,
    /// Sums of `weights @ x`: by row of the patch, vectors of columns that lie [`COLUMNS`] apart.
    sums: Vec<Vec<Var<'b>>>,
}

/// Element by element; without factors the patch itself.
pub fn scaled<'b>(patch: &Patch<'b>, factors: Option<&Patch<'b>>) -> Patch<'b> {
    let Some(factors) = factors else { return patch.clone() };
    patch.iter().zip(factors).map(|(x, y)| x.iter().zip(y).map(|(&x, &y)| x * y).collect()).collect()
}

impl<'b> Worker<'b> {
    /// Of the tile at `row0` and the part of x at `x0`.
    pub fn new(
        b: &'b Builder,
        spec: Spec,
        [row0, rows, columns]: [Value<'b>; 3],
        walked: [Value<'b>; 2],
        [x0, width]: [Value<'b>; 2],
    ) -> Worker<'b> {
        let compute = spec.dtype.compute();
        let lane = b.local_id(0);
        let [tiles, weights, numbers] = shared(&spec);
        let zeros = |n: u32| (0..n).map(|_| b.var(b.float(compute, 0.0))).collect::<Vec<_>>();
        Worker {
            b,
            spec,
            rows,
            columns,
            walked,
            across: lane & (ACROSS - 1),
            down: lane / ACROSS,
            row0,
            x0,
            width,
            tiles: b.shared(compute, VECTOR as u8, tiles / VECTOR),
            weights: b.shared(compute, VECTOR as u8, weights / VECTOR),
            numbers: b.shared(compute, 1, numbers),
            sums: (0..PATCH).map(|_| zeros(spec.width / ACROSS)).collect(),
        }
    }

    /// Row `i` of the patch.
    pub fn row(&self, i: u32) -> Value<'b> {
        self.row0 + self.down * PATCH + i
    }

    fn column(&self, column0: Value<'b>, j: u32) -> Value<'b> {
        column0 + self.across * PATCH + j
    }

    /// Of the columns that are walked, the first tile that some row sees, and the end of the last.
    pub fn visible(&self) -> (Value<'b>, Value<'b>) {
        let [first, end] = self.walked;
        match (self.spec.causal, self.spec.role.transposed()) {
            (false, _) => (first, end),
            (true, false) => (first, end.min(self.row0 + self.spec.rows())),
            (true, true) => (first.max(self.row0 / COLUMNS * COLUMNS), end),
        }
    }

    /// `join` over the invocations of each row, known to all of them.
    pub fn join_rows(&self, own: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        let place = |i: u32| (self.down * PATCH + i) * ACROSS;
        for (i, &x) in own.iter().enumerate() {
            self.numbers.store(place(i as u32) + self.across, x);
        }
        self.b.barrier();
        (0..own.len() as u32)
            .map(|i| {
                let row: Vec<Value> = (0..ACROSS).map(|k| self.numbers.load(place(i) + k)).collect();
                row[1..].iter().fold(row[0], |x, &y| join(x, y))
            })
            .collect()
    }

    /// Inner products of `depth` elements of the tile's rows of `left` with rows `column0..` of `right`.
    pub fn product(&self, left: &Plane<'b>, right: &Plane<'b>, column0: Value<'b>, depth: Value<'b>) -> Patch<'b> {
        let (b, rows) = (self.b, self.spec.rows());
        let zero = b.float(self.spec.dtype.compute(), 0.0);
        let sums: Vec<Vec<Var>> = (0..PATCH).map(|_| (0..PATCH).map(|_| b.var(zero)).collect()).collect();
        let right_tile = DEPTH * rows / VECTOR;
        b.for_(0u32, depth, DEPTH, |depth0| {
            self.stage(left, 0, rows, [self.row0, self.rows], [depth0, depth]);
            self.stage(right, right_tile, COLUMNS, [column0, self.columns], [depth0, depth]);
            b.barrier();
            b.for_(0u32, b.u32(DEPTH), 2u32, |k| {
                for k in [k, k + 1] {
                    let x = self.tiles.load(k * (rows / VECTOR) + self.down);
                    let y = self.tiles.load(k * (COLUMNS / VECTOR) + self.across + right_tile);
                    for (i, row) in sums.iter().enumerate() {
                        for (j, sum) in row.iter().enumerate() {
                            sum.set(multiply_add(x.lane(i as u8), y.lane(j as u8), sum.get()));
                        }
                    }
                }
            });
            b.barrier();
        });
        sums.iter().map(|row| row.iter().map(|sum| sum.get()).collect()).collect()
    }

    /// Brings `count` rows of a plane, `depth0..` of each, to shared memory as `[depth][row]`. Past the depth are
    /// zeros; past the rows is the last one.
    fn stage(
        &self,
        plane: &Plane<'b>,
        base: u32,
        count: u32,
        [row0, rows]: [Value<'b>; 2],
        [depth0, depth]: [Value<'b>; 2],
    ) {
        let lane = self.b.local_id(0);
        for first in (0..count * DEPTH).step_by(self.spec.threads as usize) {
            let i = lane + first;
            let (k, row) = (i & (DEPTH - 1), i / DEPTH);
            let at = depth0 + k;
            let x = plane.load((row0 + row).min(rows - 1), at.min(depth - 1));
            let x = at.lt(depth).select(x, 0);
            self.tiles.store_lane(k * (count / VECTOR) + row / VECTOR + base, row & (VECTOR - 1), x);
        }
    }

    /// Scores of inner products: scaled, with the bias, and -inf where the query does not see the key.
    pub fn masked(
        &self,
        products: &Patch<'b>,
        column0: Value<'b>,
        scale: Value<'b>,
        bias: Option<&Plane<'b>>,
    ) -> Patch<'b> {
        self.each(products, |i, j, x| {
            let (row, column) = (self.row(i), self.column(column0, j));
            let mut score = x * scale;
            if let Some(bias) = bias {
                let added = bias.load(row.min(self.rows - 1), column.min(self.columns - 1));
                score = score + added.cast(score.scalar());
            }
            let mut seen = column.lt(self.columns) & row.lt(self.rows);
            if self.spec.causal {
                seen = seen & if self.spec.role.transposed() { row.le(column) } else { column.le(row) };
            }
            seen.select(score, f64::NEG_INFINITY)
        })
    }

    fn each(&self, patch: &Patch<'b>, f: impl Fn(u32, u32, Value<'b>) -> Value<'b>) -> Patch<'b> {
        let row = |(i, row): (usize, &Vec<Value<'b>>)| {
            row.iter().enumerate().map(|(j, &x)| f(i as u32, j as u32, x)).collect()
        };
        patch.iter().enumerate().map(row).collect()
    }

    /// `f` of every element and its query's number.
    pub fn with_queries(
        &self,
        patch: &Patch<'b>,
        column0: Value<'b>,
        numbers: Pointer<'b>,
        f: impl Fn(Value<'b>, Value<'b>) -> Value<'b>,
    ) -> Patch<'b> {
        let load = |at: Value<'b>, limit: Value<'b>| numbers.load(at.min(limit - 1).cast(ScalarType::U64));
        let of_query: Vec<Value> = (0..PATCH)
            .map(|i| {
                if self.spec.role.transposed() {
                    load(self.column(column0, i), self.columns)
                } else {
                    load(self.row(i), self.rows)
                }
            })
            .collect();
        let transposed = self.spec.role.transposed();
        self.each(patch, |i, j, x| f(x, of_query[if transposed { j } else { i } as usize]))
    }

    /// `boost` where a weight is kept and 0 elsewhere. Four neighbouring keys of a query share a block of random words,
    /// so that every launch draws the same.
    pub fn kept(
        &self,
        column0: Value<'b>,
        [seed, offset]: [Value<'b>; 2],
        head: Value<'b>,
        keep: Value<'b>,
        boost: Value<'b>,
    ) -> Patch<'b> {
        let transposed = self.spec.role.transposed();
        let (queries, keys) = if transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        let [seed, offset] = [seed, offset].map(|x| x.bitcast(ScalarType::U64));
        let halves = |x: Value<'b>| [x.cast(ScalarType::U32), (x >> 32).cast(ScalarType::U32)];
        let zero = self.b.u32(0);
        // By query, then key.
        let drawn: Patch = (0..PATCH)
            .map(|i| {
                let (query, key) = if transposed {
                    (self.column(column0, i), self.row(0))
                } else {
                    (self.row(i), self.column(column0, 0))
                };
                let wide = |x: Value<'b>| x.cast(ScalarType::U64);
                let line = wide(head) * wide(queries) + wide(query);
                let block = line * wide((keys + (PATCH - 1)) / PATCH) + wide(key / PATCH);
                let [low, high] = halves(offset + block);
                let words = philox(self.b, [low, high, zero, zero], halves(seed));
                unit(words, DType::F32).into_iter().map(|u| u.lt(keep).select(boost, 0)).collect()
            })
            .collect();
        if transposed {
            (0..PATCH as usize).map(|key| drawn.iter().map(|row| row[key]).collect()).collect()
        } else {
            drawn
        }
    }

    /// Multiplies the sums of row `i` of the patch.
    pub fn shrink(&self, i: usize, factor: Value<'b>) {
        for sum in &self.sums[i] {
            sum.set(sum.get() * factor);
        }
    }

    /// Adds `weights @ x[column0..]`.
    pub fn accumulate(&self, weights: &Patch<'b>, x: &Plane<'b>, column0: Value<'b>) {
        let (b, width, pitch) = (self.b, self.spec.width, pitch(&self.spec));
        for j in 0..PATCH {
            let column: Vec<Value> = weights.iter().map(|row| row[j as usize]).collect();
            self.weights.store((self.across * PATCH + j) * pitch + self.down, b.vector(&column));
        }
        let lane = b.local_id(0);
        b.for_(0u32, b.u32(COLUMNS), AHEAD, |ahead| {
            for first in (0..AHEAD * width).step_by(self.spec.threads as usize) {
                let i = lane + first;
                let (k, j) = (i & (width - 1), i / width);
                let (column, at) = (column0 + ahead + j, self.x0 + k);
                let value = x.load(column.min(self.columns - 1), at.min(self.width - 1));
                // What does not exist must not meet a weight of 0: it may be NaN.
                let value = (column.lt(self.columns) & at.lt(self.width)).select(value, 0);
                self.tiles.store_lane(i / VECTOR, i & (VECTOR - 1), value);
            }
            b.barrier();
            b.for_(0u32, b.u32(AHEAD), 1u32, |j| {
                let weight = self.weights.load((ahead + j) * pitch + self.down);
                for part in 0..width / COLUMNS {
                    let x = self.tiles.load(j * (width / VECTOR) + part * ACROSS + self.across);
                    for (i, row) in self.sums.iter().enumerate() {
                        for c in 0..VECTOR {
                            let sum = row[(part * VECTOR + c) as usize];
                            sum.set(multiply_add(weight.lane(i as u8), x.lane(c as u8), sum.get()));
                        }
                    }
                }
            });
            b.barrier();
        });
    }

    /// Writes the sums, divided by their rows' totals. A row whose total is 0 has seen nothing: its sums are 0.
    pub fn store(&self, out: &Plane<'b>, totals: Option<&[Value<'b>]>) {
        for (i, row) in self.sums.iter().enumerate() {
            let at = self.row(i as u32);
            for (n, sum) in row.iter().enumerate() {
                let (part, c) = (n as u32 / VECTOR, n as u32 % VECTOR);
                let column = self.x0 + self.across * VECTOR + (part * COLUMNS + c);
                let sum = sum.get();
                let value = totals.map_or(sum, |t| t[i].eq(0.0).select(t[i].like(0.0), sum / t[i]));
                self.b.if_(at.lt(self.rows) & column.lt(self.width), || out.store(at, column, value));
            }
        }
    }
}

/// Elements of shared memory: for tiles, weights and numbers.
fn shared(spec: &Spec) -> [u32; 3] {
    let tiles = (DEPTH * (spec.rows() + COLUMNS)).max(AHEAD * spec.width);
    [tiles, VECTOR * COLUMNS * pitch(spec), spec.rows() * ACROSS]
}

/// Bytes of shared memory of a workgroup.
pub fn shared_bytes(spec: &Spec) -> u32 {
    shared(spec).iter().sum::<u32>() * spec.dtype.compute().bytes()
}

/// Vectors from one column of weights to the next; one more than needed, so that columns lie in different banks.
fn pitch(spec: &Spec) -> u32 {
    spec.rows() / VECTOR + 1
}
