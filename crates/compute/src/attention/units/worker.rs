//! One workgroup of attention on matrix units: what each invocation does with its scores and sums.

use crate::attention::dropout::{DROPPED_TOGETHER, DropoutParams};
use crate::attention::matrix::Plane;
use crate::attention::units::spec::Spec;
use crate::attention::units::tile::SharedLayout;
use crate::random::philox::{philox, unit};
use dml_kernel::{Builder, ComponentMap, DType, Matrix, MatrixType, ScalarType, Shared, Value};
use std::f64::consts::LOG2_E;

/// This invocation's scores, one for each of [`Worker`]'s cells.
pub type Patch<'b> = Vec<Value<'b>>;

/// Matrices by row and column.
pub type Matrices<'b> = Vec<Vec<Matrix<'b>>>;

/// Which scores of a tile of columns are to be masked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// None.
    Never,
    /// Those beyond the last column, which only the last tile has.
    AtEdge,
    /// Perhaps any.
    Always,
}

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
    /// First row of the workgroup.
    pub row0: Value<'b>,
    /// First row of the subgroup in that.
    pub first: Value<'b>,
    /// What this lane adds to rows and columns.
    pub lane: [Value<'b>; 2],
    /// Rows of this invocation's cells in the subgroup's, each once.
    pub row_offsets: Vec<u32>,
    /// Columns of the cells in the tile's, each once.
    pub column_offsets: Vec<u32>,
    /// Places in both.
    pub cells: Vec<[usize; 2]>,
    pub memory: Shared<'b>,
    pub layout: SharedLayout,
    pub types: [MatrixType; 3],
    /// Weights as left operands.
    pub weights: Matrices<'b>,
}

impl<'b> Worker<'b> {
    /// Of the rows from `row0` on.
    pub fn new(b: &'b Builder, spec: Spec, [row0, rows, columns]: [Value<'b>; 3]) -> Worker<'b> {
        let (map, [m, n, k]) = (spec.parts.sums, spec.parts.shape);
        let distinct = |axis: usize| {
            let mut places: Vec<u32> = (0..map.components()).map(|i| map.component_place(i)[axis]).collect();
            places.sort_unstable();
            places.dedup();
            places
        };
        let slots = [distinct(0), distinct(1)];
        let offsets = |axis: usize, count: u32, size: u32| -> Vec<u32> {
            (0..count).flat_map(|i| slots[axis].iter().map(move |slot| i * size + slot)).collect()
        };
        let (down, across) = (spec.tile.rows / m, spec.tile.columns / n);
        let slot = |axis: usize, component: u32| {
            slots[axis].iter().position(|&x| x == map.component_place(component)[axis]).unwrap_or(0)
        };
        let cells = (0..down as usize)
            .flat_map(|i| (0..across as usize).map(move |j| (i, j)))
            .flat_map(|(i, j)| (0..map.components()).map(move |component| (i, j, component)))
            .map(|(i, j, c)| [i * slots[0].len() + slot(0, c), j * slots[1].len() + slot(1, c)]);
        let layout = SharedLayout::of(&spec);
        let types = spec.parts.types(spec.dtype);
        let mut worker = Worker {
            b,
            spec,
            rows,
            columns,
            row0,
            first: b.subgroup_index() * spec.tile.rows,
            lane: map.lane_place(b),
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

    /// Matrices of all the subgroup's rows, and so many columns.
    pub fn matrices(&self, columns: u32, ty: MatrixType) -> Matrices<'b> {
        let down = self.spec.tile.rows / self.spec.parts.shape[0];
        let line = || (0..columns).map(|_| self.spec.parts.matrix(self.b, ty)).collect();
        (0..down).map(|_| line()).collect()
    }

    /// Matrices for sums of so many columns, which are 0.
    pub fn sums(&self, columns: u32) -> Matrices<'b> {
        let sums = self.matrices(columns / self.spec.parts.shape[1], self.types[2]);
        sums.iter().flatten().for_each(|sum| sum.fill(0.0));
        sums
    }

    /// How many rows this invocation has a part of.
    pub fn own_rows(&self) -> usize {
        self.row_offsets.len()
    }

    /// Number `i` of them.
    fn row(&self, i: usize) -> Value<'b> {
        self.row0 + (self.first + self.lane[0]) + self.row_offsets[i]
    }

    fn column(&self, column0: Value<'b>, i: usize) -> Value<'b> {
        column0 + self.lane[1] + self.column_offsets[i]
    }

    /// The columns that some row sees, in runs of whole tiles, each with where it begins, where it
    /// ends at the latest, and what of it is to be masked. There is no branch where nothing is: the
    /// scores would have to wait for it.
    pub fn visible(&self) -> Vec<(Value<'b>, Value<'b>, Mask)> {
        let Spec { causal, ragged, tile, role, parts, .. } = self.spec;
        let (rows, width) = (self.spec.rows(), tile.columns);
        // Down to a multiple of the tile's columns, and up.
        let [down, up] = [0, width - 1].map(|more| move |x: Value<'b>| (x + more) & !(width - 1));
        let (first, end) = match (causal, role.transposed()) {
            (false, _) => (self.b.u32(0), self.columns),
            (true, false) => (self.b.u32(0), self.columns.min(self.row0 + rows)),
            (true, true) => (down(self.row0), self.columns),
        };
        let edge = if ragged.columns { Mask::AtEdge } else { Mask::Never };
        if !causal && (!ragged.columns || role.transposed()) {
            return vec![(first, end, edge)];
        }
        if parts.emulated {
            // There is so much code already that a driver refuses it twice.
            return vec![(first, end, Mask::Always)];
        }
        if role.transposed() {
            let diagonal = up(self.row0 + (rows - 1)).min(end);
            return vec![(first, diagonal, Mask::Always), (up(diagonal), end, edge)];
        }
        let whole = if ragged.columns { down(self.columns) } else { self.columns };
        // Keys may be fewer than queries.
        let seen_by_all = if causal { down(self.row0 + 1).min(whole) } else { whole };
        vec![(first, seen_by_all, Mask::Never), (seen_by_all, end, Mask::Always)]
    }

    /// `join` over all columns of each row, known to all lanes that have a part of it.
    pub fn join_rows(&self, own: Vec<Value<'b>>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        let masks = self.spec.parts.sums.lanes_along(0);
        own.into_iter().map(|x| masks.iter().fold(x, |x, &mask| join(x, x.shuffle_xor(mask)))).collect()
    }

    /// `join` over this invocation's columns of each row.
    pub fn fold_rows(&self, patch: &Patch<'b>, join: impl Fn(Value<'b>, Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        let of_row = |row: usize| self.cells.iter().zip(patch).filter(move |(cell, _)| cell[0] == row).map(|(_, &x)| x);
        // Neighbours first: the chains of dependent operations stay short.
        (0..self.own_rows())
            .map(|row| {
                let mut all: Vec<Value> = of_row(row).collect();
                while all.len() > 1 {
                    all = all.chunks(2).map(|pair| if let [x, y] = pair { join(*x, *y) } else { pair[0] }).collect();
                }
                all[0]
            })
            .collect()
    }

    /// `f` of every element and the number of its row.
    pub fn by_row(
        &self,
        patch: &Patch<'b>,
        numbers: &[Value<'b>],
        f: impl Fn(Value<'b>, Value<'b>) -> Value<'b>,
    ) -> Patch<'b> {
        self.cells.iter().zip(patch).map(|(cell, &x)| f(x, numbers[cell[0]])).collect()
    }

    /// `f` of every element and the number of its query.
    pub fn by_query(
        &self,
        patch: &Patch<'b>,
        numbers: &[Value<'b>],
        f: impl Fn(Value<'b>, Value<'b>) -> Value<'b>,
    ) -> Patch<'b> {
        let axis = usize::from(self.spec.role.transposed());
        self.cells.iter().zip(patch).map(|(cell, &x)| f(x, numbers[cell[axis]])).collect()
    }

    /// One number for each query of this invocation's cells; of a query that does not exist, that
    /// of the last.
    pub fn of_queries(&self, column0: Value<'b>, load: impl Fn(Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        if self.spec.role.transposed() {
            let edge = |column: Value<'b>| if self.spec.ragged.columns { column.min(self.columns - 1) } else { column };
            (0..self.column_offsets.len()).map(|i| load(edge(self.column(column0, i)))).collect()
        } else {
            (0..self.own_rows()).map(|i| load(self.row(i).min(self.rows - 1))).collect()
        }
    }

    /// Scores of inner products: times `scale`, in units of ln 2, and with the bias, unless the
    /// scale is [deferred](Spec::deferred); -inf where the query does not see the key.
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
            let Some(bias) = bias else { return if spec.deferred { x } else { x * scale } };
            let (row, column) = (self.row(cell[0]), self.column(column0, cell[1]));
            let added = bias.load(row.min(self.rows - 1), column.min(self.columns - 1)).cast(ScalarType::F32);
            x.fma(scale, added * LOG2_E)
        };
        let scores: Patch<'b> = self.cells.iter().zip(products).map(score).collect();
        match mask {
            Mask::Never => scores,
            Mask::Always => self.masked(&scores, column0),
            Mask::AtEdge => {
                let scores: Vec<_> = scores.into_iter().map(|score| self.b.var(score)).collect();
                self.b.if_((column0 + spec.tile.columns).gt(self.columns), || {
                    let all: Patch<'b> = scores.iter().map(|score| score.get()).collect();
                    scores.iter().zip(self.masked(&all, column0)).for_each(|(score, masked)| score.set(masked));
                });
                scores.iter().map(|score| score.get()).collect()
            }
        }
    }

    /// Scores, and -inf where the query does not see the key.
    fn masked(&self, scores: &Patch<'b>, column0: Value<'b>) -> Patch<'b> {
        let spec = &self.spec;
        let mask = |(cell, score): (&[usize; 2], &Value<'b>)| {
            let (row, column) = (self.row(cell[0]), self.column(column0, cell[1]));
            let exists = spec.ragged.columns.then(|| column.lt(self.columns));
            let causal = spec.causal.then(|| if spec.role.transposed() { row.le(column) } else { column.le(row) });
            let seen = exists.into_iter().chain(causal).reduce(|x, y| x & y);
            seen.map_or(*score, |seen| seen.select(*score, f64::NEG_INFINITY))
        };
        self.cells.iter().zip(scores).map(mask).collect()
    }

    /// The dropout's factor where a weight is kept, and 0 elsewhere: what the kernels without
    /// matrix units draw.
    pub fn kept(&self, column0: Value<'b>, head: Value<'b>, dropout: &DropoutParams<'b>) -> Patch<'b> {
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
        let own = self.lane[key_axis] & (DROPPED_TOGETHER - 1);
        let place = |cell: [usize; 2]| (self.row(cell[0]), self.column(column0, cell[1]));
        // By the cell's query, and the block of keys without what the lane adds.
        let mut blocks: Vec<((usize, u32), Vec<Value<'b>>)> = Vec::new();
        self.cells
            .iter()
            .map(|&cell| {
                let block = (cell[1 - key_axis], key_offset(cell) / DROPPED_TOGETHER);
                let known = blocks.iter().position(|(known, _)| *known == block).unwrap_or_else(|| {
                    let (row, column) = place(cell);
                    let (query, key) = if transposed { (column, row) } else { (row, column) };
                    let line = wide(head) * wide(queries) + wide(query);
                    let each = (keys + (DROPPED_TOGETHER - 1)) / DROPPED_TOGETHER;
                    let [low, high] = halves(offset + line * wide(each) + wide(key / DROPPED_TOGETHER));
                    let words = philox(self.b, [low, high, zero, zero], halves(seed));
                    let factors = unit(words, DType::F32).into_iter().map(|u| u.lt(keep).select(boost, 0)).collect();
                    blocks.push((block, factors));
                    blocks.len() - 1
                });
                let which = own + key_offset(cell) % DROPPED_TOGETHER;
                let factors = &blocks[known].1;
                (1..DROPPED_TOGETHER).fold(factors[0], |chosen, i| which.eq(i).select(factors[i as usize], chosen))
            })
            .collect()
    }

    /// Multiplies each row of sums by a number of its own.
    pub fn scale_rows(&self, sums: &Matrices<'b>, factors: &[Value<'b>]) {
        let map = self.spec.parts.sums;
        let slots = self.own_rows() / sums.len();
        for (line, factors) in sums.iter().zip(factors.chunks_exact(slots)) {
            for sum in line {
                let scaled: Vec<Value> =
                    (0..).zip(sum.components(&map)).map(|(i, x)| x * factors[self.slot(&map, i)]).collect();
                sum.set_components(&map, &scaled);
            }
        }
    }

    /// Which of a matrix's rows that an invocation has a component is in.
    fn slot(&self, map: &ComponentMap, component: u32) -> usize {
        let row = map.component_place(component)[0];
        self.row_offsets.iter().position(|&offset| offset == row).unwrap_or(0)
    }

    /// Writes `f` of each sum and its own row's index to a matrix with so many columns.
    pub fn store(
        &self,
        sums: &Matrices<'b>,
        out: &Plane<'b>,
        width: Value<'b>,
        ragged: bool,
        f: impl Fn(usize, Value<'b>) -> Value<'b>,
    ) {
        let (map, [_, n, _]) = (self.spec.parts.sums, self.spec.parts.shape);
        let slots = self.own_rows() / sums.len();
        // Neighbours in memory, where an invocation has both, go as one word.
        let together = if self.spec.pairs && map.lane_of_neighbour(1) == 0 { 2 } else { 1 };
        for own in 0..self.own_rows() {
            let row = self.row(own);
            self.b.if_(row.lt(self.rows), || {
                for (j, sum) in (0u32..).zip(&sums[own / slots]) {
                    let all = sum.components(&map);
                    let place = |i: u32| j * n + map.component_place(i)[1];
                    let begins = (0..map.components()).filter(|&i| self.slot(&map, i) == own % slots);
                    for i in begins.filter(|&i| place(i) % together == 0) {
                        let value = |at: u32| {
                            let component = (0..map.components())
                                .find(|&other| self.slot(&map, other) == own % slots && place(other) == at)
                                .unwrap_or(i);
                            f(own, all[component as usize])
                        };
                        let values: Vec<Value> = (0..together).map(|k| value(place(i) + k)).collect();
                        let column = self.lane[1] + place(i);
                        let store = || out.store_chunk(row, column, &values);
                        if ragged { self.b.if_(column.lt(width), store) } else { store() }
                    }
                }
            });
        }
    }

    /// Runs `body` for each of this invocation's rows that exist, of one lane for each.
    pub fn each_row(&self, body: impl Fn(usize, Value<'b>)) {
        for i in 0..self.own_rows() {
            let row = self.row(i);
            self.b.if_(self.lane[1].eq(0) & row.lt(self.rows), || body(i, row));
        }
    }
}
