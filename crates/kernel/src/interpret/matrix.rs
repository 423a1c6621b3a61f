//! Statements on matrix registers. Products are summed in f32 with one rounding each, in the order
//! of k, or in wrapping 32-bit integers. A driver may use another order and other intermediate
//! roundings.

use super::machine::Machine;
use super::memory::Location;
use super::word::{bits32, f32_};
use crate::component_map::ComponentMap;
use crate::dtype::DType;
use crate::ir::{MatrixId, MatrixMemory, MatrixStmt, SharedId, ValueId};
use crate::matrix_type::{MatrixLayout, MatrixType};
use crate::types::Type;
use half::{bf16, f16};

impl Machine<'_, '_, '_> {
    /// Runs a statement for every subgroup that executes it.
    ///
    /// # Panics
    ///
    /// When only a part of a subgroup executes it, or with different operands.
    pub(super) fn matrix(&mut self, stmt: &MatrixStmt, mask: &[bool]) {
        let running = self.running(mask);
        if let MatrixStmt::SetComponent { matrix, component, value } = *stmt {
            for lane in running {
                let word = rounded(self.matrix_type(matrix).dtype, self.registers.lane(value, 0)[lane]);
                *self.component(matrix, component, lane) = word;
            }
            return;
        }
        let size = self.subgroup_size;
        for subgroup in running.chunk_by(|x, y| x / size == y / size) {
            let (first, index) = (subgroup[0], subgroup[0] / size);
            let whole = size.min(mask.len() - index * size);
            assert_eq!(subgroup.len(), whole, "kernel {}: a part of a subgroup uses a matrix", self.k.name);
            self.matrix_of_subgroup(stmt, first, subgroup, index);
        }
    }

    fn uniform(&self, value: ValueId, subgroup: &[usize]) -> u64 {
        let words = self.registers.lane(value, 0);
        let same = subgroup.iter().all(|&l| words[l] == words[subgroup[0]]);
        assert!(same, "kernel {}: the invocations of a subgroup disagree about a matrix", self.k.name);
        words[subgroup[0]]
    }

    fn matrix_type(&self, matrix: MatrixId) -> MatrixType {
        self.k.matrices[matrix as usize]
    }

    /// The elements of a subgroup's register.
    fn register(&mut self, matrix: MatrixId, subgroup: usize) -> &mut [u64] {
        let len = self.matrix_type(matrix).len() as usize;
        &mut self.matrices[matrix as usize][subgroup * len..][..len]
    }

    fn matrix_of_subgroup(&mut self, stmt: &MatrixStmt, first: usize, lanes: &[usize], subgroup: usize) {
        match *stmt {
            MatrixStmt::Fill { matrix, value } => {
                let dtype = self.matrix_type(matrix).dtype;
                let word = rounded(dtype, self.uniform(value, lanes));
                self.register(matrix, subgroup).fill(word);
            }
            MatrixStmt::Load { matrix, from, index, stride, layout } => {
                let ty = self.matrix_type(matrix);
                let index_and_stride = [self.uniform(index, lanes), self.uniform(stride, lanes)];
                for row in 0..ty.rows {
                    for column in 0..ty.columns {
                        let location =
                            self.memory_element(ty, from, index_and_stride, line(layout, row, column), index, first);
                        let word = decode(ty.dtype, self.get_element(ty, location));
                        self.register(matrix, subgroup)[(row * ty.columns + column) as usize] = word;
                    }
                }
            }
            MatrixStmt::Store { matrix, to, index, stride, layout } => {
                let ty = self.matrix_type(matrix);
                let index_and_stride = [self.uniform(index, lanes), self.uniform(stride, lanes)];
                for row in 0..ty.rows {
                    for column in 0..ty.columns {
                        let word = self.register(matrix, subgroup)[(row * ty.columns + column) as usize];
                        let location =
                            self.memory_element(ty, to, index_and_stride, line(layout, row, column), index, first);
                        self.set_element(ty, location, encode(ty.dtype, word));
                    }
                }
            }
            MatrixStmt::MultiplyAdd { sum, left, right } => {
                let (ty, depth) = (self.matrix_type(sum), self.matrix_type(left).columns as usize);
                let columns = ty.columns as usize;
                let (x, y) = (self.register(left, subgroup).to_vec(), self.register(right, subgroup).to_vec());
                for (i, sum) in self.register(sum, subgroup).iter_mut().enumerate() {
                    let (row, column) = (i / columns, i % columns);
                    for k in 0..depth {
                        let (x, y) = (x[row * depth + k], y[k * columns + column]);
                        *sum = if ty.dtype.is_float() {
                            bits32(f32_(x).mul_add(f32_(y), f32_(*sum)))
                        } else {
                            u64::from((x as u32).wrapping_mul(y as u32).wrapping_add(*sum as u32))
                        };
                    }
                    *sum = rounded(ty.dtype, *sum);
                }
            }
            MatrixStmt::Add { to, from } => {
                let dtype = self.matrix_type(to).dtype;
                let from = self.register(from, subgroup).to_vec();
                for (to, from) in self.register(to, subgroup).iter_mut().zip(from) {
                    *to = if dtype.is_float() {
                        rounded(dtype, bits32(f32_(*to) + f32_(from)))
                    } else {
                        u64::from((*to as u32).wrapping_add(from as u32))
                    };
                }
            }
            MatrixStmt::Scale { matrix, by } => {
                let (dtype, by) = (self.matrix_type(matrix).dtype, f32_(self.uniform(by, lanes)));
                for word in self.register(matrix, subgroup) {
                    *word = rounded(dtype, bits32(f32_(*word) * by));
                }
            }
            MatrixStmt::Convert { to, from } => {
                let dtype = self.matrix_type(to).dtype;
                let from = self.register(from, subgroup).to_vec();
                for (to, from) in self.register(to, subgroup).iter_mut().zip(from) {
                    *to = rounded(dtype, from);
                }
            }
            MatrixStmt::SetComponent { .. } => unreachable!("an invocation sets a component by itself"),
        }
    }

    /// A component of an invocation, in the mapping [`ComponentMap::quads`].
    pub(super) fn component(&mut self, matrix: MatrixId, component: u32, invocation: usize) -> &mut u64 {
        let (ty, size) = (self.matrix_type(matrix), self.subgroup_size);
        let map = ComponentMap::quads(ty.rows, ty.columns, size as u32);
        let [row, column] = map.position((invocation % size) as u32, component);
        &mut self.register(matrix, invocation / size)[(row * ty.columns + column) as usize]
    }

    /// The position of an element in memory.
    fn memory_element(
        &self,
        ty: MatrixType,
        memory: MatrixMemory,
        [index, stride]: [u64; 2],
        (line, along): (u32, u32),
        first_index: ValueId,
        first: usize,
    ) -> ElementLocation {
        let bytes = ty.dtype.bytes() as usize;
        let lines = (stride * u64::from(line)) as usize;
        match memory {
            MatrixMemory::Shared(shared) => {
                let element = self.k.shared[shared as usize].ty;
                let size = element.scalar.bytes() as usize * usize::from(element.lanes);
                ElementLocation::Shared(shared, (index as usize + lines) * size + along as usize * bytes)
            }
            MatrixMemory::Pointer(pointer) => {
                let location = self.location(pointer, first_index, Type::scalar(ty.dtype.word().value()), first);
                ElementLocation::Argument(location.lane(lines + along as usize))
            }
        }
    }

    /// The bits of an element in memory.
    fn get_element(&mut self, ty: MatrixType, location: ElementLocation) -> u64 {
        match location {
            ElementLocation::Shared(shared, byte) => {
                let word = self.shared[shared as usize][byte / 4] >> (8 * (byte % 4));
                let bits = 8 * ty.dtype.bytes();
                word & ((1u64 << bits) - 1)
            }
            ElementLocation::Argument(location) => self.memory.read(location),
        }
    }

    fn set_element(&mut self, ty: MatrixType, location: ElementLocation, bits: u64) {
        match location {
            ElementLocation::Shared(shared, byte) => {
                let (shift, mask) = (8 * (byte % 4), (1u64 << (8 * ty.dtype.bytes())) - 1);
                let word = &mut self.shared[shared as usize][byte / 4];
                *word = *word & !(mask << shift) | (bits & mask) << shift;
            }
            ElementLocation::Argument(location) => self.memory.write(location, bits),
        }
    }
}

/// The position of an element of a matrix in memory.
enum ElementLocation {
    /// A byte of a shared array.
    Shared(SharedId, usize),
    Argument(Location),
}

/// The index of the line of contiguous elements in memory that an element is in, and its index in
/// the line.
fn line(layout: MatrixLayout, row: u32, column: u32) -> (u32, u32) {
    if layout == MatrixLayout::RowMajor { (row, column) } else { (column, row) }
}

/// Converts bits in memory to a word of a register: floats as f32, integers in 32 bits.
pub(super) fn decode(dtype: DType, bits: u64) -> u64 {
    match dtype {
        DType::F16 => bits32(f16::from_bits(bits as u16).to_f32()),
        DType::BF16 => bits32(bf16::from_bits(bits as u16).to_f32()),
        DType::I8 => u64::from(i32::from(bits as u8 as i8) as u32),
        _ => bits,
    }
}

fn encode(dtype: DType, word: u64) -> u64 {
    match dtype {
        DType::F16 => u64::from(f16::from_f32(f32_(word)).to_bits()),
        DType::BF16 => u64::from(bf16::from_f32(f32_(word)).to_bits()),
        _ => word,
    }
}

/// A number rounded to the precision of the dtype.
fn rounded(dtype: DType, word: u64) -> u64 {
    decode(dtype, encode(dtype, word))
}
