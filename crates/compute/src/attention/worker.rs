//! One workgroup of attention: products of tiles staged in shared memory, and the sums that it
//! keeps.

use crate::attention::matrix::Plane;
use crate::attention::spec::{ACROSS, DEPTH, QUAD, Spec};
use crate::matmul::gemm::multiply_add;
use crate::random::philox::{philox, unit};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value, Var};

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
    /// Sums of `weights @ x`: by row of the patch, quads of columns that lie a round of invocations
    /// apart.
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
            tiles: b.shared(compute, QUAD as u8, tiles / QUAD),
            weights: b.shared(compute, QUAD as u8, weights / QUAD),
            numbers: b.shared(compute, 1, numbers),
            sums: (0..QUAD).map(|_| zeros(spec.width / ACROSS)).collect(),
        }
    }

    /// Row `i` of the patch.
    pub fn row(&self, i: u32) -> Value<'b> {
        self.row0 + self.row_of_tile(i)
    }

    fn row_of_tile(&self, i: u32) -> Value<'b> {
        self.down * QUAD + i
    }

    fn column(&self, column0: Value<'b>, j: u32) -> Value<'b> {
        column0 + self.column_of_tile(j)
    }

    fn column_of_tile(&self, j: u32) -> Value<'b> {
        self.across * QUAD + (j / QUAD * ACROSS * QUAD + j % QUAD)
    }

    /// Of the columns that are walked, the first tile that some row sees, and the end of the last.
    pub fn visible(&self) -> (Value<'b>, Value<'b>) {
        let [first, end] = self.walked;
        match (self.spec.causal, self.spec.role.transposed()) {
            (false, _) => (first, end),
            (true, false) => (first, end.min(self.row0 + self.spec.rows())),
            (true, true) => (first.max(self.row0 / self.spec.columns() * self.spec.columns()), end),
        }
    }

    /// `join` over the invocations of each row, known to all of them.
    pub fn join_rows(&self, own: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        let place = |i: u32| self.row_of_tile(i) * ACROSS;
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

    /// Inner products of `depth` elements of the tile's rows of `left` with rows `column0..` of
    /// `right`.
    pub fn product(&self, left: &Plane<'b>, right: &Plane<'b>, column0: Value<'b>, depth: Value<'b>) -> Patch<'b> {
        let (b, spec) = (self.b, &self.spec);
        let (rows, columns) = (spec.rows(), spec.columns());
        let zero = b.float(spec.dtype.compute(), 0.0);
        let sums: Vec<Vec<Var>> = (0..QUAD).map(|_| (0..QUAD).map(|_| b.var(zero)).collect()).collect();
        let right_tile = DEPTH * pitch(rows);
        let fetch = |depth0: Value<'b>| {
            let mut all = self.fetch(left, rows, [self.row0, self.rows], [depth0, depth]);
            all.extend(self.fetch(right, columns, [column0, self.columns], [depth0, depth]));
            all
        };
        let held = spec.prefetch.then(|| self.hold(&fetch(b.u32(0))));
        b.for_(0u32, depth, DEPTH, |depth0| {
            let now = held.as_ref().map_or_else(|| fetch(depth0), |held| current(held));
            let of_left = (rows * DEPTH / self.per_load() / spec.threads) as usize;
            self.put(0, rows, &now[..of_left]);
            self.put(right_tile, columns, &now[of_left..]);
            b.barrier();
            let next = held.as_ref().map(|_| fetch(depth0 + DEPTH));
            b.for_(0u32, b.u32(DEPTH), QUAD, |quad| {
                let x_place = swizzled(self.down, quad, rows);
                let y_place = swizzled(self.across, quad, columns) + right_tile;
                for k in (0..QUAD).map(|e| quad + e) {
                    let x = self.tiles.load(k * pitch(rows) + x_place);
                    let y = self.tiles.load(k * pitch(columns) + y_place);
                    for (i, row) in sums.iter().enumerate() {
                        for (j, sum) in row.iter().enumerate() {
                            sum.set(multiply_add(x.lane(i as u8), y.lane(j as u8), sum.get()));
                        }
                    }
                }
            });
            b.barrier();
            if let (Some(held), Some(next)) = (&held, next) {
                replace(held, &next);
            }
        });
        sums.iter().map(|row| row.iter().map(|sum| sum.get()).collect()).collect()
    }

    /// Elements of a load.
    fn per_load(&self) -> u32 {
        if self.spec.quads { QUAD } else { 1 }
    }

    /// Variables with these values.
    fn hold(&self, loads: &[Vec<Value<'b>>]) -> Vec<Vec<Var<'b>>> {
        loads.iter().map(|load| load.iter().map(|&x| self.b.var(x)).collect()).collect()
    }

    /// This invocation's part of `count` rows of a plane, `depth0..` of each. Past the depth are
    /// zeros; past the rows is the last one.
    fn fetch(
        &self,
        plane: &Plane<'b>,
        count: u32,
        [row0, rows]: [Value<'b>; 2],
        [depth0, depth]: [Value<'b>; 2],
    ) -> Vec<Vec<Value<'b>>> {
        let (lane, each) = (self.b.local_id(0), self.per_load());
        (0..count * DEPTH / each)
            .step_by(self.spec.threads as usize)
            .map(|first| {
                let i = lane + first;
                // Neighbours read what lies together.
                let (k, row) = ((i & (DEPTH / each - 1)) * each, i / (DEPTH / each));
                let (row_of_plane, at) = ((row0 + row).min(rows - 1), depth0 + k);
                let elements = plane.load_chunk(row_of_plane, at.min(depth - each), each);
                elements.into_iter().map(|x| at.lt(depth).select(x, 0)).collect()
            })
            .collect()
    }

    /// Brings what was fetched to shared memory as `[depth][row]`, quads of rows [`swizzled`].
    fn put(&self, base: u32, count: u32, loads: &[Vec<Value<'b>>]) {
        let (lane, pitch, each) = (self.b.local_id(0), pitch(count), self.per_load());
        for (first, elements) in (0..count * DEPTH / each).step_by(self.spec.threads as usize).zip(loads) {
            let i = lane + first;
            let (k, row) = ((i & (DEPTH / each - 1)) * each, i / (DEPTH / each));
            for (e, &x) in elements.iter().enumerate() {
                let place = swizzled(row / QUAD, k + e as u32, count);
                self.tiles.store_lane((k + e as u32) * pitch + place + base, row & (QUAD - 1), x);
            }
        }
    }

    /// Scores of inner products: scaled, with the bias, and -inf where the query does not see the
    /// key.
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
        let transposed = self.spec.role.transposed();
        let of_query: Vec<Value> = if transposed {
            (0..QUAD).map(|j| load(self.column(column0, j), self.columns)).collect()
        } else {
            (0..QUAD).map(|i| load(self.row(i), self.rows)).collect()
        };
        self.each(patch, |i, j, x| f(x, of_query[if transposed { j } else { i } as usize]))
    }

    /// `boost` where a weight is kept and 0 elsewhere. Four neighbouring keys of a query share a
    /// block of random words, so that every launch draws the same.
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
        let wide = |x: Value<'b>| x.cast(ScalarType::U64);
        let quads = wide((keys + (QUAD - 1)) / QUAD);
        // Of the keys from `key` on.
        let drawn = |query: Value<'b>, key: Value<'b>| {
            let line = wide(head) * wide(queries) + wide(query);
            let [low, high] = halves(offset + line * quads + wide(key / QUAD));
            let words = philox(self.b, [low, high, zero, zero], halves(seed));
            unit(words, DType::F32).into_iter().map(|u| u.lt(keep).select(boost, 0)).collect::<Vec<_>>()
        };
        if !transposed {
            return (0..QUAD).map(|i| drawn(self.row(i), self.column(column0, 0))).collect();
        }
        let by_column: Patch = (0..QUAD).map(|j| drawn(self.column(column0, j), self.row(0))).collect();
        (0..QUAD as usize).map(|key| by_column.iter().map(|column| column[key]).collect()).collect()
    }

    /// Multiplies the sums of row `i` of the patch.
    pub fn shrink(&self, i: usize, factor: Value<'b>) {
        for sum in &self.sums[i] {
            sum.set(sum.get() * factor);
        }
    }

    /// Adds `weights @ x[column0..]`.
    pub fn accumulate(&self, weights: &Patch<'b>, x: &Plane<'b>, column0: Value<'b>) {
        let (b, spec) = (self.b, &self.spec);
        let (width, ahead, pitch) = (spec.width, spec.ahead(), pitch(spec.rows()));
        for j in 0..QUAD {
            let column: Vec<Value> = weights.iter().map(|row| row[j as usize]).collect();
            self.weights.store(self.column_of_tile(j) * pitch + self.down, b.vector(&column));
        }
        let held = spec.prefetch.then(|| self.hold(&self.fetch_x(x, column0)));
        b.for_(0u32, b.u32(spec.columns()), ahead, |first| {
            let now = held.as_ref().map_or_else(|| self.fetch_x(x, column0 + first), |held| current(held));
            self.put_x(&now);
            b.barrier();
            let next = held.as_ref().map(|_| self.fetch_x(x, column0 + first + ahead));
            b.for_(0u32, b.u32(ahead), 1u32, |j| {
                let weight = self.weights.load((first + j) * pitch + self.down);
                for part in 0..width / (ACROSS * QUAD) {
                    let x = self.tiles.load(j * (width / QUAD) + part * ACROSS + self.across);
                    for (i, row) in self.sums.iter().enumerate() {
                        for c in 0..QUAD as usize {
                            let sum = row[part as usize * QUAD as usize + c];
                            sum.set(multiply_add(weight.lane(i as u8), x.lane(c as u8), sum.get()));
                        }
                    }
                }
            });
            b.barrier();
            if let (Some(held), Some(next)) = (&held, next) {
                replace(held, &next);
            }
        });
    }

    /// This invocation's part of rows of x from `column0` on.
    fn fetch_x(&self, x: &Plane<'b>, column0: Value<'b>) -> Vec<Vec<Value<'b>>> {
        let (lane, spec, each) = (self.b.local_id(0), &self.spec, self.per_load());
        (0..spec.ahead() * spec.width / each)
            .step_by(spec.threads as usize)
            .map(|first| {
                let i = (lane + first) * each;
                let (k, j) = (i & (spec.width - 1), i / spec.width);
                let (column, at) = (column0 + j, self.x0 + k);
                // What does not exist must not meet a weight of 0: it may be NaN.
                let exists = column.lt(self.columns) & at.lt(self.width);
                let elements = x.load_chunk(column.min(self.columns - 1), at.min(self.width - each), each);
                elements.into_iter().map(|x| exists.select(x, 0)).collect()
            })
            .collect()
    }

    /// Brings what was fetched to shared memory.
    fn put_x(&self, loads: &[Vec<Value<'b>>]) {
        let (lane, each) = (self.b.local_id(0), self.per_load());
        for (n, elements) in loads.iter().enumerate() {
            let i = (lane + n as u32 * self.spec.threads) * each;
            match elements[..] {
                [one] => self.tiles.store_lane(i / QUAD, i & (QUAD - 1), one),
                _ => self.tiles.store(i / QUAD, self.b.vector(elements)),
            }
        }
    }

    /// Writes the sums, divided by their rows' totals. A row whose total is 0 has seen nothing: its
    /// sums are 0.
    pub fn store(&self, out: &Plane<'b>, totals: Option<&[Value<'b>]>) {
        for (i, row) in self.sums.iter().enumerate() {
            let at = self.row(i as u32);
            for (n, sum) in row.iter().enumerate() {
                let column = self.x0 + self.column_of_tile(n as u32);
                let sum = sum.get();
                let value = totals.map_or(sum, |t| t[i].eq(0.0).select(t[i].like(0.0), sum / t[i]));
                self.b.if_(at.lt(self.rows) & column.lt(self.width), || out.store(at, column, value));
            }
        }
    }
}

/// The values of variables.
fn current<'b>(held: &[Vec<Var<'b>>]) -> Vec<Vec<Value<'b>>> {
    held.iter().map(|load| load.iter().map(|x| x.get()).collect()).collect()
}

/// Gives variables other values.
fn replace<'b>(held: &[Vec<Var<'b>>], loads: &[Vec<Value<'b>>]) {
    for (x, &next) in held.iter().flatten().zip(loads.iter().flatten()) {
        x.set(next);
    }
}

/// Elements of shared memory: for tiles, weights and numbers.
fn shared(spec: &Spec) -> [u32; 3] {
    let tiles = (QUAD * DEPTH * (pitch(spec.rows()) + pitch(spec.columns()))).max(spec.ahead() * spec.width);
    [tiles, QUAD * spec.columns() * pitch(spec.rows()), spec.rows() * ACROSS]
}

/// Bytes of shared memory of a workgroup.
pub fn shared_bytes(spec: &Spec) -> u32 {
    shared(spec).iter().sum::<u32>() * spec.dtype.compute().bytes()
}

/// Where a quad of `count` rows lies for element `k` of an inner product. Four elements of eight
/// neighbours are stored at once, and with [`pitch`] no two of them to one bank.
fn swizzled<'b>(quad: Value<'b>, k: Value<'b>, count: u32) -> Value<'b> {
    quad ^ ((k / QUAD) & ((count / QUAD).min(8) - 1))
}

/// Vectors from one element of `rows` rows to the next; one more than needed, so that neighbours
/// lie in different banks.
fn pitch(rows: u32) -> u32 {
    rows / QUAD + 1
}
