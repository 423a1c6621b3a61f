//! One workgroup of attention: products of tiles that are staged in shared memory, and the
//! accumulators.

use crate::attention::dropout::DropoutParams;
use crate::attention::matrix::Plane;
use crate::attention::prefetch::{Loads, Prefetch};
use crate::attention::shared_memory::{pitch, shared, swizzled};
use crate::attention::spec::{ACROSS, PATCH, Spec};
use crate::matmul::gemm::multiply_add;
use crate::random::philox::{philox, unit};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value, Var, math};
use std::f64::consts::LOG2_E;

/// This invocation's patch of a tile, by row and column.
pub type Patch<'b> = Vec<Vec<Value<'b>>>;

/// A workgroup that computes a tile of rows.
pub struct Worker<'b> {
    /// The kernel's builder.
    pub b: &'b Builder,
    /// The kernel's specialisation.
    pub spec: Spec,
    /// Number of rows.
    pub rows: Value<'b>,
    /// Number of columns.
    pub columns: Value<'b>,
    /// The range of columns that are iterated over: first, and end.
    column_range: [Value<'b>; 2],
    /// Index of this invocation's patch along a row of the tile.
    pub patch_column: Value<'b>,
    patch_row: Value<'b>,
    row0: Value<'b>,
    /// First column of the slice of `x`, and number of columns of `x`.
    x0: Value<'b>,
    width: Value<'b>,
    /// Tiles of both operands as `[depth][row]`, or of `x` as `[row][column]`.
    tiles: Shared<'b>,
    /// Weights as `[column][row]`.
    weights: Shared<'b>,
    /// One number from every invocation, `[row][across]`.
    numbers: Shared<'b>,
    /// Accumulators of `weights @ x`: by row of the patch, then columns. An invocation's vectors of
    /// columns are `4 * ACROSS` columns apart.
    sums: Vec<Vec<Var<'b>>>,
    /// Where they wait while scores are computed, if they do: vectors by row, then vector of
    /// columns, then invocation.
    parked: Option<Shared<'b>>,
    /// Of each row the numbers of the softmax, if they wait too: by number, then row of the patch,
    /// then invocation.
    softmax: Option<Shared<'b>>,
}

/// Which weights of a patch are kept, by query and key.
pub enum Drawn<'b> {
    /// A condition for each weight.
    Conditions(Patch<'b>),
    /// A bit for each weight.
    Bits(Value<'b>),
}

/// The elementwise product of a patch and factors; the patch itself without factors.
pub fn scaled<'b>(patch: &Patch<'b>, factors: Option<&Patch<'b>>) -> Patch<'b> {
    let Some(factors) = factors else { return patch.clone() };
    patch.iter().zip(factors).map(|(x, y)| x.iter().zip(y).map(|(&x, &y)| x * y).collect()).collect()
}

impl<'b> Worker<'b> {
    /// A worker for the tile of rows from `row0` on and the slice of x from `x0` on.
    pub fn new(
        b: &'b Builder,
        spec: Spec,
        [row0, rows, columns]: [Value<'b>; 3],
        column_range: [Value<'b>; 2],
        [x0, width]: [Value<'b>; 2],
    ) -> Worker<'b> {
        let compute = spec.dtype.compute();
        let lane = b.local_id(0);
        let [tiles, weights, numbers, parked, softmax] = shared(&spec);
        let zeros = |n: u32| (0..n).map(|_| b.var(b.float(compute, 0.0))).collect::<Vec<_>>();
        let worker = Worker {
            b,
            spec,
            rows,
            columns,
            column_range,
            patch_column: lane & (ACROSS - 1),
            patch_row: lane / ACROSS,
            row0,
            x0,
            width,
            tiles: b.shared(compute, PATCH as u8, tiles / PATCH),
            weights: b.shared(compute, PATCH as u8, weights / PATCH),
            numbers: b.shared(compute, 1, numbers),
            sums: (0..PATCH).map(|_| zeros(spec.width / ACROSS)).collect(),
            parked: spec.parks_sums.then(|| b.shared(compute, PATCH as u8, parked / PATCH)),
            softmax: (softmax > 0).then(|| b.shared(compute, 1, softmax)),
        };
        if spec.parks_sums {
            // In a loop of its own, so that no position is kept from here on.
            let zeros = b.vector(&[b.float(compute, 0.0); PATCH as usize]);
            worker.repeat(PATCH, 1, |i| worker.parked_row(i).for_each(|(parked, at)| parked.store(at, zeros)));
        }
        worker
    }

    /// The accumulators of each vector, if they wait in shared memory, with row and position there.
    fn parked(&self) -> impl Iterator<Item = (usize, &[Var<'b>], Shared<'b>, Value<'b>)> {
        let vectors = self.sums.iter().enumerate().flat_map(|(i, row)| row.chunks(PATCH as usize).map(move |x| (i, x)));
        vectors
            .zip(0..)
            .filter_map(|((i, sums), n)| Some((i, sums, self.parked?, self.b.local_id(0) + n * self.spec.threads)))
    }

    /// Lets the accumulators wait in shared memory, if they do.
    fn park(&self) {
        for (_, sums, parked, at) in self.parked() {
            let sums: Vec<Value> = sums.iter().map(|sum| sum.get()).collect();
            parked.store(at, self.b.vector(&sums));
        }
    }

    /// Takes the accumulators back from where they wait.
    fn take_back(&self) {
        for (_, sums, parked, at) in self.parked() {
            let vector = parked.load(at);
            sums.iter().zip(0..).for_each(|(sum, lane)| sum.set(vector.lane(lane)));
        }
    }

    /// A loop from 0 to `count`. Compilers that know the end unroll it, and keep what iterations
    /// have in common, such as positions: where registers do not even hold accumulators, a zero
    /// that they do not know is added. (No axis has 2^31 workgroups.)
    pub fn repeat(&self, count: u32, step: u32, body: impl FnOnce(Value<'b>)) {
        let count = self.b.u32(count);
        let end = if self.spec.parks_sums { count + (self.b.group_id(0) >> 31) } else { count };
        self.b.for_(0u32, end, step, body);
    }

    /// A value that a loop uses, computed once before the loop; or where registers are few at each
    /// use, so that it takes none between uses.
    pub fn hoisted<T: Copy>(&self, compute: impl Fn() -> T) -> impl Fn() -> T {
        let computed = (!self.spec.few_registers).then(&compute);
        move || computed.unwrap_or_else(&compute)
    }

    /// Runs `body`, which comes after the loops. Where registers are few it is a loop of its own,
    /// of one iteration: loops load the parameters that they use again, so that none is kept until
    /// then.
    pub fn afterwards(&self, body: impl FnOnce()) {
        if self.spec.few_registers { self.b.for_(0u32, self.b.u32(1), 1, |_| body()) } else { body() }
    }

    /// Row `i` of the patch.
    pub fn row(&self, i: u32) -> Value<'b> {
        self.row0 + self.row_of_tile(i)
    }

    fn row_of_tile(&self, i: u32) -> Value<'b> {
        self.patch_row * PATCH + i
    }

    fn column(&self, column0: Value<'b>, j: u32) -> Value<'b> {
        column0 + self.column_of_tile(j)
    }

    fn column_of_tile(&self, j: u32) -> Value<'b> {
        self.patch_column * PATCH + (j / PATCH * ACROSS * PATCH + j % PATCH)
    }

    /// Of the columns that are iterated over, the first tile that any row attends to, and the end
    /// of the last one.
    pub fn visible(&self) -> (Value<'b>, Value<'b>) {
        let [first, end] = self.column_range;
        match (self.spec.causal, self.spec.role.transposed()) {
            (false, _) => (first, end),
            (true, false) => (first, end.min(self.row0 + self.spec.rows())),
            (true, true) => (first.max(self.row0 / self.spec.columns() * self.spec.columns()), end),
        }
    }

    /// Reduces each row with `join` over the invocations of the row, all of which get the result.
    pub fn reduce_rows(&self, own: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        self.put_numbers(&own);
        (0..own.len() as u32).map(|i| self.reduced(|| self.row_of_tile(i), &join)).collect()
    }

    /// Gives a number of each row of the patch to the row's other invocations.
    pub fn put_numbers(&self, own: &[Value<'b>]) {
        for (&x, i) in own.iter().zip(0..) {
            self.numbers.store(self.row_of_tile(i) * ACROSS + self.patch_column, x);
        }
        self.b.barrier();
    }

    /// A row of the tile's numbers, reduced.
    fn reduced(&self, row: impl Fn() -> Value<'b>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Value<'b> {
        let row: Vec<Value> = (0..ACROSS).map(|k| self.numbers.load(row() * ACROSS + k)).collect();
        row[1..].iter().fold(row[0], |x, &y| join(x, y))
    }

    /// Runs `body` for each row of the patch, one after the other: it gets the row's index in the
    /// patch, and the row's [numbers](Self::put_numbers), reduced.
    pub fn each_row(&self, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>, body: impl FnOnce(Value<'b>, Value<'b>)) {
        self.repeat(PATCH, 1, |i| body(i, self.reduced(|| self.row_of_tile(0) + i, join)));
    }

    /// A number of the softmax that waits in shared memory, of row `i` of the patch: its memory,
    /// and the position there.
    pub fn waiting(&self, number: u32, i: Value<'b>) -> (Shared<'b>, Value<'b>) {
        let softmax = self.softmax.unwrap_or(self.numbers);
        (softmax, self.b.local_id(0) + (i + number * PATCH) * self.spec.threads)
    }

    /// Inner products, of `depth` elements, of the tile's rows of `left` with the rows of `right`
    /// from `column0` on.
    pub fn product(&self, left: &Plane<'b>, right: &Plane<'b>, column0: Value<'b>, depth: Value<'b>) -> Patch<'b> {
        let (b, spec) = (self.b, &self.spec);
        let (rows, columns) = (spec.rows(), spec.columns());
        let zero = b.float(spec.dtype.compute(), 0.0);
        let sums: Vec<Vec<Var>> = (0..PATCH).map(|_| (0..PATCH).map(|_| b.var(zero)).collect()).collect();
        let stage = spec.depth;
        let right_tile = stage * pitch(rows);
        let fetch = |depth0: Value<'b>| {
            let mut all = self.fetch(left, rows, [self.row0, self.rows], [depth0, depth]);
            all.extend(self.fetch(right, columns, [column0, self.columns], [depth0, depth]));
            all
        };
        let prefetch = Prefetch::new(b, spec.prefetch, || fetch(b.u32(0)));
        b.for_(0u32, depth, stage, |depth0| {
            let now = prefetch.current(|| fetch(depth0));
            let of_left = (rows * stage / self.elements_per_load() / spec.threads) as usize;
            self.put(0, rows, &now[..of_left]);
            self.put(right_tile, columns, &now[of_left..]);
            b.barrier();
            let next = prefetch.next(|| fetch(depth0 + stage));
            b.for_(0u32, b.u32(stage), PATCH, |k0| {
                let x_place = swizzled(self.patch_row, k0, rows);
                let y_place = swizzled(self.patch_column, k0, columns) + right_tile;
                for k in (0..PATCH).map(|e| k0 + e) {
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
            prefetch.advance(next);
        });
        sums.iter().map(|row| row.iter().map(|sum| sum.get()).collect()).collect()
    }

    /// Elements of one load.
    fn elements_per_load(&self) -> u32 {
        if self.spec.vector_loads { PATCH } else { 1 }
    }

    /// Fetches this invocation's part of `count` rows of a plane, from element `depth0` on.
    /// Elements past the depth are zeros; past the last row it is read again.
    fn fetch(
        &self,
        plane: &Plane<'b>,
        count: u32,
        [row0, rows]: [Value<'b>; 2],
        [depth0, depth]: [Value<'b>; 2],
    ) -> Loads<'b> {
        let (lane, each, stage) = (self.b.local_id(0), self.elements_per_load(), self.spec.depth);
        (0..count * stage / each)
            .step_by(self.spec.threads as usize)
            .map(|first| {
                let i = lane + first;
                // Neighbouring invocations read adjacent addresses.
                let (k, row) = ((i & (stage / each - 1)) * each, i / (stage / each));
                let (row_of_plane, at) = ((row0 + row).min(rows - 1), depth0 + k);
                let elements = plane.load_chunk(row_of_plane, at.min(depth - each), each);
                elements.into_iter().map(|x| at.lt(depth).select(x, 0)).collect()
            })
            .collect()
    }

    /// Stores fetched elements to shared memory as `[depth][row]`, with vectors of rows
    /// [`swizzled`].
    fn put(&self, base: u32, count: u32, loads: &[Vec<Value<'b>>]) {
        let (lane, pitch, each) = (self.b.local_id(0), pitch(count), self.elements_per_load());
        let stage = self.spec.depth;
        for (first, elements) in (0..count * stage / each).step_by(self.spec.threads as usize).zip(loads) {
            let i = lane + first;
            let (k, row) = ((i & (stage / each - 1)) * each, i / (stage / each));
            for (e, &x) in elements.iter().enumerate() {
                let swizzled_row = swizzled(row / PATCH, k + e as u32, count);
                self.tiles.store_lane((k + e as u32) * pitch + swizzled_row + base, row & (PATCH - 1), x);
            }
        }
    }

    /// Converts inner products to scores: scaled, with the bias, and -inf where the query does not
    /// attend to the key.
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

    /// The number, of those at `numbers`, of the query of row `i` and column `j` of the patch.
    pub fn of_query(&self, column0: Value<'b>, [i, j]: [Value<'b>; 2], numbers: Pointer<'b>) -> Value<'b> {
        let (at, limit) = if self.spec.role.transposed() {
            (self.column(column0, 0) + j, self.columns)
        } else {
            (self.row(0) + i, self.rows)
        };
        numbers.load(at.min(limit - 1).cast(ScalarType::U64))
    }

    /// `f` of every element and a number of its query, loaded from `numbers`.
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
            (0..PATCH).map(|j| load(self.column(column0, j), self.columns)).collect()
        } else {
            (0..PATCH).map(|i| load(self.row(i), self.rows)).collect()
        };
        self.each(patch, |i, j, x| f(x, of_query[if transposed { j } else { i } as usize]))
    }

    /// Draws which weights are kept. Four neighbouring keys of a query share a block of random
    /// words, so that every launch draws the same numbers.
    pub fn drawn(&self, column0: Value<'b>, dropout: &DropoutParams<'b>, head: Value<'b>) -> Drawn<'b> {
        let DropoutParams { seed, offset, keep, .. } = *dropout;
        let transposed = self.spec.role.transposed();
        let (queries, keys) = if transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        // What does not depend on the column compilers compute before the loop, and keep: where
        // registers are few it depends on a zero of the column. (There are less than 2^31.)
        let (start, head) = if self.spec.few_registers {
            let zero = column0 >> 31;
            (zero, head + zero)
        } else {
            (self.b.u32(0), head)
        };
        let [seed, offset] = [seed, offset].map(|state| state.load(start).bitcast(ScalarType::U64));
        let halves = |x: Value<'b>| [x.cast(ScalarType::U32), (x >> 32).cast(ScalarType::U32)];
        let zero = self.b.u32(0);
        let wide = |x: Value<'b>| x.cast(ScalarType::U64);
        let blocks = wide((keys + (PATCH - 1)) / PATCH);
        // Of the patch's query `of_patch`, whether the weights of its four keys are kept.
        let drawn = |of_patch: Value<'b>, key_words: [Value<'b>; 2]| {
            let (row, column) = (self.row(0), self.column(column0, 0));
            let (query, key) = if transposed { (column + of_patch, row) } else { (row + of_patch, column) };
            let line = wide(head) * wide(queries) + wide(query);
            let [low, high] = halves(offset + line * blocks + wide(key / PATCH));
            let words = philox(self.b, [low, high, zero, zero], key_words);
            unit(words, DType::F32).into_iter().map(|u| u.lt(keep)).collect::<Vec<_>>()
        };
        if !self.spec.few_registers {
            return Drawn::Conditions((0..PATCH).map(|query| drawn(self.b.u32(query), halves(seed))).collect());
        }
        // One query's random words exist at a time, and the keys of its rounds: a zero that comes
        // of the query before is added.
        let all = self.b.var(zero);
        self.repeat(PATCH, 1, |query| {
            let zero = all.get() >> (PATCH * PATCH);
            for (key, kept) in drawn(query, halves(seed).map(|half| half + zero)).into_iter().enumerate() {
                let bit = kept.select(self.b.u32(1 << key), 0) << (query * PATCH);
                all.set(all.get() | bit);
            }
        });
        Drawn::Bits(all.get())
    }

    /// As [`dropout_factors`](Self::dropout_factors), of row `i` and column `j` of the patch.
    pub fn dropout_factor(&self, drawn: Value<'b>, [i, j]: [Value<'b>; 2], boost: Value<'b>) -> Value<'b> {
        let bit = if self.spec.role.transposed() { j * PATCH + i } else { i * PATCH + j };
        ((drawn >> bit) & 1).ne(0).select(boost, 0)
    }

    /// `boost` where a weight is kept, and 0 elsewhere.
    pub fn dropout_factors(&self, drawn: &Drawn<'b>, boost: Value<'b>) -> Patch<'b> {
        let factor = |i: u32, j: u32| {
            let (query, key) = if self.spec.role.transposed() { (j, i) } else { (i, j) };
            let kept = match drawn {
                Drawn::Conditions(kept) => kept[query as usize][key as usize],
                Drawn::Bits(all) => (*all & (1u32 << (query * PATCH + key))).ne(0),
            };
            kept.select(boost, 0)
        };
        (0..PATCH).map(|i| (0..PATCH).map(|j| factor(i, j)).collect()).collect()
    }

    /// Of row `i` of the patch, vectors of accumulators that wait in shared memory.
    fn parked_row(&self, i: Value<'b>) -> impl Iterator<Item = (Shared<'b>, Value<'b>)> {
        let vectors = self.spec.width / (ACROSS * PATCH);
        let at = move |n: u32| self.b.local_id(0) + (i * vectors + n) * self.spec.threads;
        (0..vectors).filter_map(move |n| Some((self.parked?, at(n))))
    }

    /// Multiplies the accumulators of row `i` of the patch that wait in shared memory.
    pub fn shrink_parked(&self, i: Value<'b>, factor: Value<'b>) {
        for (parked, at) in self.parked_row(i) {
            let vector = parked.load(at);
            let lanes: Vec<Value> = (0..PATCH as u8).map(|lane| vector.lane(lane) * factor).collect();
            parked.store(at, self.b.vector(&lanes));
        }
    }

    /// Multiplies the accumulators of row `i` of the patch.
    pub fn shrink(&self, i: usize, factor: Value<'b>) {
        for sum in &self.sums[i] {
            sum.set(sum.get() * factor);
        }
    }

    /// Position in shared memory of column `j` of this invocation's weights.
    fn weights_at(&self, j: u32) -> Value<'b> {
        self.column_of_tile(j) * pitch(self.spec.rows()) + self.patch_row
    }

    /// Stores this invocation's weights to shared memory.
    pub fn store_weights(&self, weights: &Patch<'b>) {
        for j in 0..PATCH {
            let column: Vec<Value> = weights.iter().map(|row| row[j as usize]).collect();
            self.weights.store(self.weights_at(j), self.b.vector(&column));
        }
    }

    /// Replaces the weights that this invocation stored, one at a time: `f` gets a weight, and its
    /// row and column in the patch.
    pub fn replace_weights(&self, f: impl Fn(Value<'b>, [Value<'b>; 2]) -> Value<'b>) {
        self.repeat(PATCH * PATCH, 1, |n| {
            let (i, j) = (n % PATCH, n / PATCH);
            let at = self.weights_at(0) + j * pitch(self.spec.rows());
            let column = self.weights.load(at);
            let weight = (1..PATCH).fold(column.lane(0), |x, lane| i.eq(lane).select(column.lane(lane as u8), x));
            self.weights.store_lane(at, i, f(weight, [i, j]));
        });
    }

    /// Replaces column `j` of the weights that this invocation stored.
    pub fn replace_column(&self, j: Value<'b>, f: impl FnOnce(Vec<Value<'b>>) -> Vec<Value<'b>>) {
        // An invocation's columns are adjacent.
        let at = self.weights_at(0) + j * pitch(self.spec.rows());
        let column = self.weights.load(at);
        let column = f((0..PATCH as u8).map(|i| column.lane(i)).collect());
        self.weights.store(at, self.b.vector(&column));
    }

    /// Multiplies the weights that this invocation stored by factors, a column at a time.
    pub fn scale_stored(&self, factors: &Patch<'b>) {
        for j in 0..PATCH {
            let factors = factors.iter().map(|row| row[j as usize]);
            self.replace_column(self.b.u32(j), |weights| weights.iter().zip(factors).map(|(&w, f)| w * f).collect());
        }
    }

    /// Accumulates `weights @ x[column0..]`.
    pub fn accumulate(&self, weights: &Patch<'b>, x: &Plane<'b>, column0: Value<'b>) {
        self.store_weights(weights);
        self.accumulate_stored(x, column0);
    }

    /// Accumulates `weights @ x[column0..]` with the weights that invocations have stored.
    pub fn accumulate_stored(&self, x: &Plane<'b>, column0: Value<'b>) {
        let (b, spec) = (self.b, &self.spec);
        let (width, staged_rows, pitch) = (spec.width, spec.staged_rows(), pitch(spec.rows()));
        self.take_back();
        let prefetch = Prefetch::new(b, spec.prefetch, || self.load_x(x, column0));
        self.repeat(spec.columns(), staged_rows, |first| {
            let now = prefetch.current(|| self.load_x(x, column0 + first));
            self.store_x(&now);
            b.barrier();
            let next = prefetch.next(|| self.load_x(x, column0 + first + staged_rows));
            b.for_(0u32, b.u32(staged_rows), 1u32, |j| {
                let weight = self.weights.load((first + j) * pitch + self.patch_row);
                for part in 0..width / (ACROSS * PATCH) {
                    let x = self.tiles.load(j * (width / PATCH) + part * ACROSS + self.patch_column);
                    for (i, row) in self.sums.iter().enumerate() {
                        for c in 0..PATCH as usize {
                            let sum = row[part as usize * PATCH as usize + c];
                            sum.set(multiply_add(weight.lane(i as u8), x.lane(c as u8), sum.get()));
                        }
                    }
                }
            });
            b.barrier();
            prefetch.advance(next);
        });
        self.park();
    }

    /// Fetches this invocation's part of the rows of x from `column0` on.
    fn load_x(&self, x: &Plane<'b>, column0: Value<'b>) -> Loads<'b> {
        let (lane, spec, each) = (self.b.local_id(0), &self.spec, self.elements_per_load());
        (0..spec.staged_rows() * spec.width / each)
            .step_by(spec.threads as usize)
            .map(|first| {
                let i = (lane + first) * each;
                let (k, j) = (i & (spec.width - 1), i / spec.width);
                let (column, at) = (column0 + j, self.x0 + k);
                // Elements out of range are replaced by 0, since a NaN times a weight of 0 would be
                // NaN.
                let exists = column.lt(self.columns) & at.lt(self.width);
                let elements = x.load_chunk(column.min(self.columns - 1), at.min(self.width - each), each);
                elements.into_iter().map(|x| exists.select(x, 0)).collect()
            })
            .collect()
    }

    /// Stores fetched rows of x to shared memory.
    fn store_x(&self, loads: &[Vec<Value<'b>>]) {
        let (lane, each) = (self.b.local_id(0), self.elements_per_load());
        for (n, elements) in loads.iter().enumerate() {
            let i = (lane + n as u32 * self.spec.threads) * each;
            match elements[..] {
                [one] => self.tiles.store_lane(i / PATCH, i & (PATCH - 1), one),
                _ => self.tiles.store(i / PATCH, self.b.vector(elements)),
            }
        }
    }

    /// The exponential of a difference of scores. Where matrices have 16 bits it is the adapter's
    /// own power of two, as on matrix units: the exact one takes some fifty instructions.
    pub fn exp(&self, x: Value<'b>) -> Value<'b> {
        if self.spec.dtype.bytes() == 2 { (x * LOG2_E).fast_exp2() } else { math::exp(x) }
    }

    /// Stores the accumulators of row `i` of the patch that wait in shared memory, as
    /// [`store`](Self::store) does.
    pub fn store_parked(&self, out: &Plane<'b>, i: Value<'b>, total: Option<Value<'b>>) {
        let at = self.row(0) + i;
        for ((parked, place), n) in self.parked_row(i).zip(0..) {
            let vector = parked.load(place);
            for c in 0..PATCH {
                let column = self.x0 + self.column_of_tile(n * PATCH + c);
                let sum = vector.lane(c as u8);
                let value = total.map_or(sum, |t| t.eq(0.0).select(t.like(0.0), sum / t));
                self.b.if_(at.lt(self.rows) & column.lt(self.width), || out.store(at, column, value));
            }
        }
    }

    /// Stores the accumulators, divided by their rows' totals. A row whose total is 0 has no
    /// visible column: its output is 0.
    pub fn store(&self, out: &Plane<'b>, totals: Option<&[Value<'b>]>) {
        if self.spec.parks_sums {
            self.repeat(PATCH, 1, |i| self.store_parked(out, i, None));
            return;
        }
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
