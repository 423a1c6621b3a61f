//! One workgroup of attention on matrix units: products of tiles, and what each invocation does with its scores.

use super::spec::Spec;
use super::stage::{Lines, Stage};
use super::tile::{SharedLayout, pitch};
use crate::attention::dropout::DropoutParams;
use crate::attention::matrix::Plane;
use crate::matmul::matrix_tile::UNIT;
use crate::random::philox::{philox, unit};
use dml_kernel::{Builder, ComponentMap, DType, Matrix, MatrixLayout, MatrixType, ScalarType, Shared, Value, encode};
use std::f64::consts::LOG2_E;

/// Keys that share a block of random words, as in the kernel without matrix units.
const DROPPED_TOGETHER: u32 = 4;

/// This invocation's scores, one for each of [`Worker`]'s cells.
pub type Patch<'b> = Vec<Value<'b>>;

/// Matrices by row and column.
pub type Matrices<'b> = Vec<Vec<Matrix<'b>>>;

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
    row0: Value<'b>,
    /// First row of the subgroup in that.
    first: Value<'b>,
    /// What this lane adds to rows and columns.
    lane: [Value<'b>; 2],
    /// Rows of this invocation's cells in the subgroup's, each once.
    row_offsets: Vec<u32>,
    /// Columns of the cells in the tile's, each once.
    column_offsets: Vec<u32>,
    /// Places in both.
    cells: Vec<[usize; 2]>,
    memory: Shared<'b>,
    layout: SharedLayout,
    types: [MatrixType; 3],
    /// Weights as left operands.
    weights: Matrices<'b>,
}

/// The rows' matrices as left operands.
pub enum Left<'b> {
    /// In registers, by row and step along the inner product.
    Resident(Matrices<'b>),
    /// In shared memory, and registers for one step.
    Staged(Lines<'b>, Vec<Matrix<'b>>),
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
    fn matrices(&self, columns: u32, ty: MatrixType) -> Matrices<'b> {
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

    /// The first tile of columns that some row sees, and the end of the last.
    pub fn visible(&self) -> (Value<'b>, Value<'b>) {
        let (start, width) = (self.b.u32(0), self.spec.tile.columns);
        match (self.spec.causal, self.spec.role.transposed()) {
            (false, _) => (start, self.columns),
            (true, false) => (start, self.columns.min(self.row0 + self.spec.rows())),
            (true, true) => (self.row0 & !(width - 1), self.columns),
        }
    }

    /// A stage for the columns' matrices: 0 for those of scores, 1 for the others. `length` is that of their rows.
    pub fn stage(&self, which: usize, length: Value<'b>) -> Stage<'b> {
        let begin = self.layout.right[which];
        self.stage_of(self.spec.tile.columns, begin, self.spec.aligned[1][which], (which, length))
    }

    fn stage_of(&self, rows: u32, begin: u32, aligned: bool, (which, length): (usize, Value<'b>)) -> Stage<'b> {
        let Spec { depth, width, ragged, .. } = self.spec;
        let (elements, ragged) = [(depth, ragged.depth), (width, ragged.width)][which];
        let length = ragged.then_some(length);
        Stage::new(self.b, (self.memory, begin), [rows, elements], self.spec.threads(), aligned, length)
    }

    /// The rows' matrices as left operands: 0 for those of scores, 1 for the others. All of shared memory may be used, which
    /// is free again behind a barrier.
    pub fn left(&self, which: usize, plane: &Plane<'b>, length: Value<'b>) -> Left<'b> {
        let Spec { tile, depth, width, parts, .. } = self.spec;
        let begin = self.layout.left[which];
        let stage = self.stage_of(self.spec.rows(), begin, self.spec.aligned[0][which], (which, length));
        stage.fetch(plane, self.row0, Some(self.rows));
        stage.store();
        self.b.barrier();
        let [m, _, k] = parts.shape;
        let lines = stage.lines;
        if !tile.resident {
            return Left::Staged(lines, (0..tile.rows / m).map(|_| parts.matrix(self.b, self.types[0])).collect());
        }
        let matrices = self.matrices([depth, width][which] / k, self.types[0]);
        for (i, row) in (0u32..).zip(&matrices) {
            for (step, &matrix) in (0u32..).zip(row) {
                lines.load(matrix, self.first + i * m, step * k, MatrixLayout::RowMajor);
            }
        }
        self.b.barrier();
        Left::Resident(matrices)
    }

    /// Inner products of the subgroup's rows with the columns that are staged.
    pub fn product(&self, left: &Left<'b>, right: &Lines<'b>, sums: &Matrices<'b>, elements: u32) -> Patch<'b> {
        let [m, n, k] = self.spec.parts.shape;
        sums.iter().flatten().for_each(|sum| sum.fill(0.0));
        let operand = self.spec.parts.matrix(self.b, self.types[1]);
        for step in 0..elements / k {
            let lefts: Vec<Matrix> = match left {
                Left::Resident(all) => all.iter().map(|row| row[step as usize]).collect(),
                Left::Staged(lines, registers) => {
                    for (i, &matrix) in (0u32..).zip(registers) {
                        lines.load(matrix, self.first + i * m, step * k, MatrixLayout::RowMajor);
                    }
                    registers.clone()
                }
            };
            for j in 0..self.spec.tile.columns / n {
                right.load(operand, self.b.u32(j * n), step * k, MatrixLayout::ColumnMajor);
                for (row, &left) in sums.iter().zip(&lefts) {
                    row[j as usize].multiply_add(left, operand);
                }
            }
        }
        sums.iter().flatten().flat_map(|sum| sum.components(&self.spec.parts.sums)).collect()
    }

    /// Adds `weights @ right`.
    pub fn accumulate(&self, weights: &Patch<'b>, right: &Lines<'b>, sums: &Matrices<'b>) {
        let [_, n, k] = self.spec.parts.shape;
        self.become_left(weights);
        let operand = self.spec.parts.matrix(self.b, self.types[1]);
        for step in 0..self.spec.tile.columns / k {
            for j in 0..sums[0].len() {
                right.load(operand, self.b.u32(step * k), j as u32 * n, MatrixLayout::RowMajor);
                for (row, left) in sums.iter().zip(&self.weights) {
                    row[j].multiply_add(left[step as usize], operand);
                }
            }
        }
    }

    /// Rounds weights to the dtype, as left operands: in registers, or through the subgroup's part of shared memory.
    fn become_left(&self, weights: &Patch<'b>) {
        let parts = self.spec.parts;
        let order =
            parts.left.filter(|_| parts.goes_directly()).and_then(|left| Some((left, parts.sums.order_of(&left)?)));
        let Some((left, order)) = order else { return self.pass_weights(weights) };
        let per_matrix = weights.chunks_exact(order.len());
        for (matrix, own) in self.weights.iter().flatten().zip(per_matrix) {
            let ordered: Vec<Value> = order.iter().map(|&i| own[i as usize]).collect();
            matrix.set_components(&left, &ordered);
        }
    }

    /// Through shared memory, in words of two neighbours: of a row where an invocation has both, else of a column, else of a
    /// row whose elements two lanes exchange.
    fn pass_weights(&self, weights: &Patch<'b>) {
        let (b, tile, map, [m, _, k]) = (self.b, self.spec.tile, self.spec.parts.sums, self.spec.parts.shape);
        let exchanged = [0, 1].map(|axis| map.lane_of_neighbour(axis));
        let along = if exchanged[1] != 0 && exchanged[0] == 0 { 0 } else { 1 };
        let length = if along == 1 { tile.columns } else { tile.rows };
        let begin = b.subgroup_index() * self.layout.weights[1] + self.layout.weights[0];
        let lines = Lines { memory: self.memory, begin, pitch: pitch(length) };
        let bits = |x: Value<'b>| encode(x, self.spec.dtype).bitcast(ScalarType::U32) & 0xffff;
        let offset = |cell: [usize; 2]| [self.row_offsets[cell[0]], self.column_offsets[cell[1]]];
        let mask = exchanged[along];
        b.subgroup_barrier();
        for (&cell, &weight) in self.cells.iter().zip(weights) {
            let at = offset(cell);
            let word = if mask != 0 {
                let (own, other) = (bits(weight), bits(weight.shuffle_xor(mask)));
                let odd = (b.subgroup_lane() & mask).ne(0);
                odd.select(other, own) | (odd.select(own, other) << 16)
            } else if at[along] & 1 == 0 {
                let mut next = at;
                next[along] += 1;
                let other = self.cells.iter().position(|&cell| offset(cell) == next);
                let other = other.map_or(weight, |i| weights[i]);
                bits(weight) | (bits(other) << 16)
            } else {
                continue;
            };
            let place = |axis: usize| self.lane[axis] + at[axis];
            let element = place(along);
            let unit = begin + place(1 - along) * lines.pitch + (element >> UNIT.ilog2());
            self.memory.store_lane(unit, (element & (UNIT - 1)) >> 1, word);
        }
        b.subgroup_barrier();
        for (i, row) in (0u32..).zip(&self.weights) {
            for (step, &matrix) in (0u32..).zip(row) {
                if along == 1 {
                    lines.load(matrix, b.u32(i * m), step * k, MatrixLayout::RowMajor);
                } else {
                    lines.load(matrix, b.u32(step * k), i * m, MatrixLayout::ColumnMajor);
                }
            }
        }
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

    /// One number for each query of this invocation's cells; of a query that does not exist, that of the last.
    pub fn of_queries(&self, column0: Value<'b>, load: impl Fn(Value<'b>) -> Value<'b>) -> Vec<Value<'b>> {
        if self.spec.role.transposed() {
            let edge = |column: Value<'b>| if self.spec.ragged.columns { column.min(self.columns - 1) } else { column };
            (0..self.column_offsets.len()).map(|i| load(edge(self.column(column0, i)))).collect()
        } else {
            (0..self.own_rows()).map(|i| load(self.row(i).min(self.rows - 1))).collect()
        }
    }

    /// Scores of inner products, in units of ln 2: times `scale`, with the bias, and -inf where the query does not see the key.
    pub fn scores(
        &self,
        products: &Patch<'b>,
        column0: Value<'b>,
        scale: Value<'b>,
        bias: Option<&Plane<'b>>,
    ) -> Patch<'b> {
        let (b, spec) = (self.b, &self.spec);
        let scores = self.cells.iter().zip(products).map(|(cell, &x)| {
            let Some(bias) = bias else { return x * scale };
            let (row, column) = (self.row(cell[0]), self.column(column0, cell[1]));
            let added = bias.load(row.min(self.rows - 1), column.min(self.columns - 1)).cast(ScalarType::F32);
            x.fma(scale, added * LOG2_E)
        });
        if !spec.masks() {
            return scores.collect();
        }
        let scores: Vec<_> = scores.map(|score| b.var(score)).collect();
        let edge = spec.ragged.columns.then(|| (column0 + spec.tile.columns).gt(self.columns));
        let diagonal = spec.causal.then(|| {
            let first = self.row0 + self.first;
            if spec.role.transposed() {
                column0.lt(first + (spec.tile.rows - 1))
            } else {
                (column0 + (spec.tile.columns - 1)).gt(first)
            }
        });
        let masked = edge.into_iter().chain(diagonal).reduce(|x, y| x | y).unwrap_or_else(|| b.bool(false));
        b.if_(masked, || {
            for (cell, score) in self.cells.iter().zip(&scores) {
                let (row, column) = (self.row(cell[0]), self.column(column0, cell[1]));
                let exists = spec.ragged.columns.then(|| column.lt(self.columns));
                let causal = spec.causal.then(|| if spec.role.transposed() { row.le(column) } else { column.le(row) });
                let seen = exists.into_iter().chain(causal).reduce(|x, y| x & y).unwrap_or_else(|| b.bool(true));
                score.set(seen.select(score.get(), f64::NEG_INFINITY));
            }
        });
        scores.iter().map(|score| score.get()).collect()
    }

    /// The dropout's factor where a weight is kept, and 0 elsewhere: what the kernels without matrix units draw.
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
