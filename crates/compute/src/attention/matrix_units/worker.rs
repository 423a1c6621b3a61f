//! One workgroup of attention on matrix units: what each invocation does with its scores and
//! accumulators.

use crate::attention::dropout::{DropoutParams, KEYS_PER_RANDOM_BLOCK};
use crate::attention::matrix::Plane;
use crate::attention::matrix_units::spec::Spec;
use crate::attention::matrix_units::tile::SharedLayout;
use crate::random::philox::{philox, unit};
use dml_kernel::{Builder, ComponentMap, DType, Matrix, MatrixType, ScalarType, Shared, Value};
use std::f64::consts::LOG2_E;

/// This invocation's scores, one for each of [`Worker::cells`].
pub type Patch<'b> = Vec<Value<'b>>;

/// Cooperative matrices by row and column.
pub type Matrices<'b> = Vec<Vec<Matrix<'b>>>;

/// Which scores of a tile of columns are to be masked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// None.
    Never,
    /// Those beyond the last column, which only the last tile has.
    LastTile,
    /// Possibly any.
    Always,
}

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
    /// First row of the workgroup.
    pub row0: Value<'b>,
    /// First row of the subgroup, relative to `row0`.
    pub first: Value<'b>,
    /// Offset of this lane's components: row and column.
    pub lane: [Value<'b>; 2],
    /// Distinct rows of this invocation's components, relative to the subgroup's first row and the
    /// lane's.
    pub row_offsets: Vec<u32>,
    /// Distinct columns of the components, relative to the tile's first column and the lane's.
    pub column_offsets: Vec<u32>,
    /// For each component, its indices in `row_offsets` and `column_offsets`.
    pub cells: Vec<[usize; 2]>,
    pub memory: Shared<'b>,
    pub layout: SharedLayout,
    pub types: [MatrixType; 3],
    /// Weights as left operands.
    pub weights: Matrices<'b>,
}

impl<'b> Worker<'b> {
    /// A worker for the rows from `row0` on.
    pub fn new(b: &'b Builder, spec: Spec, [row0, rows, columns]: [Value<'b>; 3]) -> Worker<'b> {
        let (map, [m, n, k]) = (spec.layouts.sums, spec.layouts.shape);
        let distinct = |axis: usize| {
            let mut positions: Vec<u32> = (0..map.components()).map(|i| map.component_position(i)[axis]).collect();
            positions.sort_unstable();
            positions.dedup();
            positions
        };
        let slots = [distinct(0), distinct(1)];
        let offsets = |axis: usize, count: u32, size: u32| -> Vec<u32> {
            (0..count).flat_map(|i| slots[axis].iter().map(move |slot| i * size + slot)).collect()
        };
        let (down, across) = (spec.tile.rows / m, spec.tile.columns / n);
        let slot = |axis: usize, component: u32| {
            slots[axis].iter().position(|&x| x == map.component_position(component)[axis]).unwrap_or(0)
        };
        let cells = (0..down as usize)
            .flat_map(|i| (0..across as usize).map(move |j| (i, j)))
            .flat_map(|(i, j)| (0..map.components()).map(move |component| (i, j, component)))
            .map(|(i, j, c)| [i * slots[0].len() + slot(0, c), j * slots[1].len() + slot(1, c)]);
        let layout = SharedLayout::of(&spec);
        let types = spec.layouts.types(spec.dtype);
        let mut worker = Worker {
            b,
            spec,
            rows,
            columns,
            row0,
            first: b.subgroup_index() * spec.tile.rows,
            lane: map.lane_position(b),
            cells: cells.collect(),
            row_offsets: offsets(0, down, m),
            column_offsets: offsets(1, across, n),
            memory: b.shared(ScalarType::U32, 4, layout.total),
            layout,
            types,
            weights: Vec::new(),
        };
        worker.weights = worker.matrices(spec.tile.columns / k, types[0]);
        worker
    }

    /// Declares matrices for all rows of the subgroup and `columns` columns of matrices.
    pub fn matrices(&self, columns: u32, ty: MatrixType) -> Matrices<'b> {
        let down = self.spec.tile.rows / self.spec.layouts.shape[0];
        let line = || (0..columns).map(|_| self.spec.layouts.matrix(self.b, ty)).collect();
        (0..down).map(|_| line()).collect()
    }

    /// Declares accumulators for `columns` columns of elements, set to 0.
    pub fn sums(&self, columns: u32) -> Matrices<'b> {
        let sums = self.matrices(columns / self.spec.layouts.shape[1], self.types[2]);
        sums.iter().flatten().for_each(|sum| sum.fill(0.0));
        sums
    }

    /// Number of rows of which this invocation has components.
    pub fn rows_of_invocation(&self) -> usize {
        self.row_offsets.len()
    }

    /// Index of the invocation's row number `i`.
    fn row(&self, i: usize) -> Value<'b> {
        self.row0 + (self.first + self.lane[0]) + self.row_offsets[i]
    }

    fn column(&self, column0: Value<'b>, i: usize) -> Value<'b> {
        column0 + self.lane[1] + self.column_offsets[i]
    }

    /// The columns that at least one row attends to, as ranges of whole tiles: first column, upper
    /// bound of the end, and which scores are to be masked. The kernel has one loop for each range,
    /// since scores would wait for a branch inside of a loop.
    pub fn visible(&self) -> Vec<(Value<'b>, Value<'b>, Mask)> {
        let Spec { causal, bounds_checks, tile, role, layouts, .. } = self.spec;
        let (rows, width) = (self.spec.rows(), tile.columns);
        // Rounds down, and up, to a multiple of the tile's columns.
        let [down, up] = [0, width - 1].map(|more| move |x: Value<'b>| (x + more) & !(width - 1));
        let (first, end) = match (causal, role.transposed()) {
            (false, _) => (self.b.u32(0), self.columns),
            (true, false) => (self.b.u32(0), self.columns.min(self.row0 + rows)),
            (true, true) => (down(self.row0), self.columns),
        };
        let edge = if bounds_checks.columns { Mask::LastTile } else { Mask::Never };
        if !causal && (!bounds_checks.columns || role.transposed()) {
            return vec![(first, end, edge)];
        }
        if layouts.emulated {
            // Emulated matrices make so much code that a driver refuses two loops of it.
            return vec![(first, end, Mask::Always)];
        }
        if role.transposed() {
            let diagonal = up(self.row0 + (rows - 1)).min(end);
            return vec![(first, diagonal, Mask::Always), (up(diagonal), end, edge)];
        }
        let whole = if bounds_checks.columns { down(self.columns) } else { self.columns };
        // There may be fewer keys than queries.
        let seen_by_all = if causal { down(self.row0 + 1).min(whole) } else { whole };
        vec![(first, seen_by_all, Mask::Never), (seen_by_all, end, Mask::Always)]
    }

    /// Reduces each row with `join` over all columns; every lane that has components of the row
    /// gets the result.
    pub fn reduce_rows(&self, own: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        let masks = self.spec.layouts.sums.lanes_along(0);
        own.into_iter().map(|x| masks.iter().fold(x, |x, &mask| join(x, x.shuffle_xor(mask)))).collect()
    }

    /// Reduces each row with `join` over this invocation's columns.
    pub fn fold_rows(&self, patch: &Patch<'b>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        let of_row = |row: usize| self.cells.iter().zip(patch).filter(move |(cell, _)| cell[0] == row).map(|(_, &x)| x);
        // Pairwise, so that chains of dependent operations stay short.
        (0..self.rows_of_invocation())
            .map(|row| {
                let mut all: Vec<Value> = of_row(row).collect();
                while all.len() > 1 {
                    all = all.chunks(2).map(|pair| if let [x, y] = pair { join(*x, *y) } else { pair[0] }).collect();
                }
                all[0]
            })
            .collect()
    }

    /// `f` of every element and the index of its row.
    pub fn map_with_row(
        &self,
        patch: &Patch<'b>,
        numbers: &[Value<'b>],
        f: impl Fn(Value<'b>, Value<'b>) -> Value<'b>,
    ) -> Patch<'b> {
        self.cells.iter().zip(patch).map(|(cell, &x)| f(x, numbers[cell[0]])).collect()
    }

    /// `f` of every element and the index of its query.
    pub fn map_with_query(
        &self,
        patch: &Patch<'b>,
        numbers: &[Value<'b>],
        f: impl Fn(Value<'b>, Value<'b>) -> Value<'b>,
    ) -> Patch<'b> {
        let axis = usize::from(self.spec.role.transposed());
        self.cells.iter().zip(patch).map(|(cell, &x)| f(x, numbers[cell[axis]])).collect()
    }

    /// Loads one number for each query of this invocation's components. For queries out of range it
    /// is the last query's number.
    pub fn of_queries(&self, column0: Value<'b>, load: impl Fn(Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        if self.spec.role.transposed() {
            let edge =
                |column: Value<'b>| if self.spec.bounds_checks.columns { column.min(self.columns - 1) } else { column };
            (0..self.column_offsets.len()).map(|i| load(edge(self.column(column0, i)))).collect()
        } else {
            (0..self.rows_of_invocation()).map(|i| load(self.row(i).min(self.rows - 1))).collect()
        }
    }

    /// Converts inner products to scores: times `scale`, divided by ln 2, and with the bias, unless
    /// the scale is [scale_in_exponential](Spec::scale_in_exponential); -inf where the query does
    /// not attend to the key.
    pub fn scores(
        &self,
        products: Patch<'b>,
        column0: Value<'b>,
        scale: Value<'b>,
        bias: Option<&Plane<'b>>,
        mask: Mask,
    ) -> Patch<'b> {
        let spec = &self.spec;
        let score = |(cell, x): (&[usize; 2], Value<'b>)| {
            let Some(bias) = bias else { return if spec.scale_in_exponential { x } else { x * scale } };
            let (row, column) = (self.row(cell[0]), self.column(column0, cell[1]));
            let added = bias.load(row.min(self.rows - 1), column.min(self.columns - 1)).cast(ScalarType::F32);
            x.fma(scale, added * LOG2_E)
        };
        let scores: Patch<'b> = self.cells.iter().zip(products).map(score).collect();
        match mask {
            Mask::Never => scores,
            Mask::Always => self.masked(&scores, column0),
            Mask::LastTile => {
                let scores: Vec<_> = scores.into_iter().map(|score| self.b.var(score)).collect();
                self.b.if_((column0 + spec.tile.columns).gt(self.columns), || {
                    let all: Patch<'b> = scores.iter().map(|score| score.get()).collect();
                    scores.iter().zip(self.masked(&all, column0)).for_each(|(score, masked)| score.set(masked));
                });
                scores.iter().map(|score| score.get()).collect()
            }
        }
    }

    /// The scores, with -inf where the query does not attend to the key.
    fn masked(&self, scores: &Patch<'b>, column0: Value<'b>) -> Patch<'b> {
        let spec = &self.spec;
        let mask = |(cell, score): (&[usize; 2], &Value<'b>)| {
            let (row, column) = (self.row(cell[0]), self.column(column0, cell[1]));
            let exists = spec.bounds_checks.columns.then(|| column.lt(self.columns));
            let causal = spec.causal.then(|| if spec.role.transposed() { row.le(column) } else { column.le(row) });
            let seen = exists.into_iter().chain(causal).reduce(|x, y| x & y);
            seen.map_or(*score, |seen| seen.select(*score, f64::NEG_INFINITY))
        };
        self.cells.iter().zip(scores).map(mask).collect()
    }

    /// The dropout's factor where a weight is kept, and 0 elsewhere. The random numbers are the
    /// same as in the kernels without matrix units.
    pub fn dropout_factors(&self, column0: Value<'b>, head: Value<'b>, dropout: &DropoutParams<'b>) -> Patch<'b> {
        let DropoutParams { seed, offset, keep, boost } = *dropout;
        let transposed = self.spec.role.transposed();
        let (queries, keys) = if transposed { (self.columns, self.rows) } else { (self.rows, self.columns) };
        let [seed, offset] = [seed, offset].map(|state| state.load(0).bitcast(ScalarType::U64));
        let halves = |x: Value<'b>| [x.cast(ScalarType::U32), (x >> 32).cast(ScalarType::U32)];
        let wide = |x: Value<'b>| x.cast(ScalarType::U64);
        let zero = self.b.u32(0);
        let key_axis = usize::from(!transposed);
        let key_offset =
            |cell: [usize; 2]| if transposed { self.row_offsets[cell[0]] } else { self.column_offsets[cell[1]] };
        let own = self.lane[key_axis] & (KEYS_PER_RANDOM_BLOCK - 1);
        let row_and_column = |cell: [usize; 2]| (self.row(cell[0]), self.column(column0, cell[1]));
        // Random words by the component's query and block of keys, without the lane's offset.
        let mut blocks: Vec<((usize, u32), Vec<Value<'b>>)> = Vec::new();
        self.cells
            .iter()
            .map(|&cell| {
                let block = (cell[1 - key_axis], key_offset(cell) / KEYS_PER_RANDOM_BLOCK);
                let known = blocks.iter().position(|(known, _)| *known == block).unwrap_or_else(|| {
                    let (row, column) = row_and_column(cell);
                    let (query, key) = if transposed { (column, row) } else { (row, column) };
                    let line = wide(head) * wide(queries) + wide(query);
                    let each = (keys + (KEYS_PER_RANDOM_BLOCK - 1)) / KEYS_PER_RANDOM_BLOCK;
                    let [low, high] = halves(offset + line * wide(each) + wide(key / KEYS_PER_RANDOM_BLOCK));
                    let words = philox(self.b, [low, high, zero, zero], halves(seed));
                    let factors = unit(words, DType::F32).into_iter().map(|u| u.lt(keep).select(boost, 0)).collect();
                    blocks.push((block, factors));
                    blocks.len() - 1
                });
                let which = own + key_offset(cell) % KEYS_PER_RANDOM_BLOCK;
                let factors = &blocks[known].1;
                (1..KEYS_PER_RANDOM_BLOCK).fold(factors[0], |chosen, i| which.eq(i).select(factors[i as usize], chosen))
            })
            .collect()
    }

    /// Multiplies each row of the accumulators by its factor.
    pub fn scale_rows(&self, sums: &Matrices<'b>, factors: &[Value<'b>]) {
        let map = self.spec.layouts.sums;
        let slots = self.rows_of_invocation() / sums.len();
        for (line, factors) in sums.iter().zip(factors.chunks_exact(slots)) {
            for sum in line {
                let scaled: Vec<Value> =
                    (0..).zip(sum.components(&map)).map(|(i, x)| x * factors[self.slot(&map, i)]).collect();
                sum.set_components(&map, &scaled);
            }
        }
    }

    /// Index of a component's row among the invocation's rows in one matrix.
    fn slot(&self, map: &ComponentMap, component: u32) -> usize {
        let row = map.component_position(component)[0];
        self.row_offsets.iter().position(|&offset| offset == row).unwrap_or(0)
    }

    /// Stores `f` of the row's index and the accumulator, for every accumulator, to a matrix of
    /// `width` columns.
    pub fn store(
        &self,
        sums: &Matrices<'b>,
        out: &Plane<'b>,
        width: Value<'b>,
        bounds_checks: bool,
        f: impl Fn(usize, Value<'b>) -> Value<'b>,
    ) {
        let (map, [_, n, _]) = (self.spec.layouts.sums, self.spec.layouts.shape);
        let slots = self.rows_of_invocation() / sums.len();
        // Two neighbours in memory are stored as one word if one invocation has both.
        let together = if self.spec.pairs && map.lane_of_neighbour(1) == 0 { 2 } else { 1 };
        for own in 0..self.rows_of_invocation() {
            let row = self.row(own);
            self.b.if_(row.lt(self.rows), || {
                for (j, sum) in (0u32..).zip(&sums[own / slots]) {
                    let all = sum.components(&map);
                    let column_of = |i: u32| j * n + map.component_position(i)[1];
                    let begins = (0..map.components()).filter(|&i| self.slot(&map, i) == own % slots);
                    for i in begins.filter(|&i| column_of(i) % together == 0) {
                        let value = |at: u32| {
                            let component = (0..map.components())
                                .find(|&other| self.slot(&map, other) == own % slots && column_of(other) == at)
                                .unwrap_or(i);
                            f(own, all[component as usize])
                        };
                        let values: Vec<Value> = (0..together).map(|k| value(column_of(i) + k)).collect();
                        let column = self.lane[1] + column_of(i);
                        let store = || out.store_chunk(row, column, &values);
                        if bounds_checks { self.b.if_(column.lt(width), store) } else { store() }
                    }
                }
            });
        }
    }

    /// Runs `body` for each valid row of this invocation, in one lane a row.
    pub fn for_each_row(&self, body: impl Fn(usize, Value<'b>)) {
        for i in 0..self.rows_of_invocation() {
            let row = self.row(i);
            self.b.if_(self.lane[1].eq(0) & row.lt(self.rows), || body(i, row));
        }
    }
}
