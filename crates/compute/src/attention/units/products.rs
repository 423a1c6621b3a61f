//! Products of tiles, between shared memory and a subgroup's matrices.

use crate::attention::matrix::Plane;
use crate::attention::units::parts::component;
use crate::attention::units::spec::{Role, Spec};
use crate::attention::units::stage::{Lines, Stage};
use crate::attention::units::tile::pitch;
use crate::attention::units::worker::{Matrices, Patch, Worker};
use crate::matmul::operand::UNIT;
use dml_kernel::{Matrix, MatrixLayout, ScalarType, Value, encode};

/// The rows' matrices as left operands.
pub enum Left<'b> {
    /// In registers, by row and step along the inner product.
    Resident(Matrices<'b>),
    /// In shared memory, and registers for one step.
    Staged(Lines<'b>, Vec<Matrix<'b>>),
}

impl<'b> Worker<'b> {
    /// A stage for the columns' matrices: 0 for those of scores, 1 for the others. `length` is that
    /// of their rows.
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

    /// The rows' matrices as left operands: 0 for those of scores, 1 for the others. All of shared
    /// memory may be used, which is free again behind a barrier.
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

    /// Rounds weights to the dtype, as left operands: in registers, or through the subgroup's part
    /// of shared memory.
    fn become_left(&self, weights: &Patch<'b>) {
        let parts = self.spec.parts;
        let order =
            parts.left.filter(|_| parts.goes_directly()).and_then(|left| Some((left, parts.sums.order_of(&left)?)));
        let Some((left, order)) = order else { return self.pass_weights(weights) };
        // Forward, a row that has a NaN ends as one, being divided by the sum of its weights.
        let nan = self.spec.role != Role::Forward;
        let per_matrix = weights.chunks_exact(order.len());
        for (matrix, own) in self.weights.iter().flatten().zip(per_matrix) {
            let ordered: Vec<Value> = order.iter().map(|&i| component(own[i as usize], self.spec.dtype, nan)).collect();
            matrix.set_components(&left, &ordered);
        }
    }

    /// Through shared memory, in words of two neighbours: of a row where an invocation has both,
    /// else of a column, else of a row whose elements two lanes exchange.
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
}
