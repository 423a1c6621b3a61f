//! Products of tiles, between shared memory and a subgroup's matrices.

use crate::attention::matrix::Plane;
use crate::attention::matrix_units::matrix_layouts::component_value;
use crate::attention::matrix_units::spec::{Role, Spec};
use crate::attention::matrix_units::stage::{Places, SharedRows, Stage};
use crate::attention::matrix_units::tile::pitch;
use crate::attention::matrix_units::worker::{Matrices, Patch, Worker};
use crate::matmul::operand::VECTOR_16_BIT;
use dml_kernel::{Matrix, MatrixLayout, ScalarType, Value, encode};

/// The rows' matrices as left operands.
pub enum LeftOperand<'b> {
    /// In registers, by row of matrices and step along the inner product.
    Registers(Matrices<'b>),
    /// In shared memory; the registers hold the matrices of one step.
    SharedMemory(SharedRows<'b>, Vec<Matrix<'b>>),
}

impl<'b> Worker<'b> {
    /// A stage for the columns' matrix of scores (`which` 0) or the other one (1). `length` is the
    /// number of elements of its rows.
    pub fn stage(&self, which: usize, length: Value<'b>) -> Stage<'b> {
        let places = self.layout.right[which];
        self.stage_of(self.spec.tile.columns, places, self.spec.aligned[1][which], (which, length))
    }

    fn stage_of(&self, rows: u32, places: Places, aligned: bool, (which, length): (usize, Value<'b>)) -> Stage<'b> {
        let Spec { depth, width, bounds_checks, .. } = self.spec;
        let (elements, bounds_checks) = [(depth, bounds_checks.depth), (width, bounds_checks.width)][which];
        let length = bounds_checks.then_some(length);
        Stage::new(self.b, (self.memory, places), [rows, elements], self.spec.threads(), aligned, length)
    }

    /// The rows' matrix as left operands: of scores (`which` 0) or the other one (1). The stage may
    /// overlap all of shared memory, which is free for other use again after a barrier.
    pub fn left_operand(&self, which: usize, plane: &Plane<'b>, length: Value<'b>) -> LeftOperand<'b> {
        let Spec { tile, depth, width, layouts, .. } = self.spec;
        let places = Places { rows: Some(self.layout.left[which]), transposed: None };
        let stage = self.stage_of(self.spec.rows(), places, self.spec.aligned[0][which], (which, length));
        stage.fetch(plane, self.row0, Some(self.rows));
        stage.store();
        self.b.barrier();
        let [m, _, k] = layouts.shape;
        let staged = stage.rows();
        if !tile.rows_in_registers {
            return LeftOperand::SharedMemory(
                staged,
                (0..tile.rows / m).map(|_| layouts.matrix(self.b, self.types[0])).collect(),
            );
        }
        let matrices = self.matrices([depth, width][which] / k, self.types[0]);
        for (i, row) in (0u32..).zip(&matrices) {
            for (step, &matrix) in (0u32..).zip(row) {
                staged.load(matrix, self.first + i * m, step * k, MatrixLayout::RowMajor);
            }
        }
        self.b.barrier();
        LeftOperand::Registers(matrices)
    }

    /// Inner products of the subgroup's rows with the staged columns.
    pub fn product(&self, left: &LeftOperand<'b>, right: &Stage<'b>, sums: &Matrices<'b>, elements: u32) -> Patch<'b> {
        let [m, n, k] = self.spec.layouts.shape;
        sums.iter().flatten().for_each(|sum| sum.fill(0.0));
        let operand = self.spec.layouts.matrix(self.b, self.types[1]);
        for step in 0..elements / k {
            let lefts: Vec<Matrix> = match left {
                LeftOperand::Registers(all) => all.iter().map(|row| row[step as usize]).collect(),
                LeftOperand::SharedMemory(staged, registers) => {
                    for (i, &matrix) in (0u32..).zip(registers) {
                        staged.load(matrix, self.first + i * m, step * k, MatrixLayout::RowMajor);
                    }
                    registers.clone()
                }
            };
            for j in 0..self.spec.tile.columns / n {
                right.rows().load(operand, self.b.u32(j * n), step * k, MatrixLayout::ColumnMajor);
                for (row, &left) in sums.iter().zip(&lefts) {
                    row[j as usize].multiply_add(left, operand);
                }
            }
        }
        sums.iter().flatten().flat_map(|sum| sum.components(&self.spec.layouts.sums)).collect()
    }

    /// Accumulates `weights @ right`.
    pub fn accumulate(&self, weights: &Patch<'b>, right: &Stage<'b>, sums: &Matrices<'b>) {
        let [_, n, k] = self.spec.layouts.shape;
        self.to_left_operand(weights);
        let operand = self.spec.layouts.matrix(self.b, self.types[1]);
        for step in 0..self.spec.tile.columns / k {
            for j in 0..sums[0].len() {
                right.load_along_rows(operand, step * k, j as u32 * n);
                for (row, left) in sums.iter().zip(&self.weights) {
                    row[j].multiply_add(left[step as usize], operand);
                }
            }
        }
    }

    /// Rounds weights to the dtype and makes them left operands: in registers, or through the
    /// subgroup's part of shared memory.
    fn to_left_operand(&self, weights: &Patch<'b>) {
        let layouts = self.spec.layouts;
        let order = layouts
            .left
            .filter(|_| layouts.accumulator_is_operand())
            .and_then(|left| Some((left, layouts.sums.order_of(&left)?)));
        let Some((left, order)) = order else { return self.pass_weights(weights) };
        // Forward, a NaN in a row reaches the output without this, by the division by the row's
        // sum.
        let nan = self.spec.role != Role::Forward;
        let per_matrix = weights.chunks_exact(order.len());
        for (matrix, own) in self.weights.iter().flatten().zip(per_matrix) {
            let ordered: Vec<Value> =
                order.iter().map(|&i| component_value(own[i as usize], self.spec.dtype, nan)).collect();
            matrix.set_components(&left, &ordered);
        }
    }

    /// Passes weights through shared memory in words of two elements: neighbours in a row if an
    /// invocation has both, else neighbours in a column, else neighbours in a row that two lanes
    /// exchange.
    fn pass_weights(&self, weights: &Patch<'b>) {
        let (b, tile, map, [m, _, k]) = (self.b, self.spec.tile, self.spec.layouts.sums, self.spec.layouts.shape);
        let exchanged = [0, 1].map(|axis| map.lane_of_neighbour(axis));
        let along = if exchanged[1] != 0 && exchanged[0] == 0 { 0 } else { 1 };
        let length = if along == 1 { tile.columns } else { tile.rows };
        let begin = b.subgroup_index() * self.layout.weights[1] + self.layout.weights[0];
        let staged = SharedRows { memory: self.memory, begin, pitch: pitch(length) };
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
            let position = |axis: usize| self.lane[axis] + at[axis];
            let element = position(along);
            let unit = begin + position(1 - along) * staged.pitch + (element >> VECTOR_16_BIT.ilog2());
            self.memory.store_lane(unit, (element & (VECTOR_16_BIT - 1)) >> 1, word);
        }
        b.subgroup_barrier();
        for (i, row) in (0u32..).zip(&self.weights) {
            for (step, &matrix) in (0u32..).zip(row) {
                if along == 1 {
                    staged.load(matrix, b.u32(i * m), step * k, MatrixLayout::RowMajor);
                } else {
                    staged.load(matrix, b.u32(step * k), i * m, MatrixLayout::ColumnMajor);
                }
            }
        }
    }
}
