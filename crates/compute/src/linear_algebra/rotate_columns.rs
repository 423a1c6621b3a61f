//! The kernel that applies the rotations of [`block_pair`](super::block_pair): one invocation for
//! each row of a pair of blocks.

use crate::context::Context;
use crate::linear_algebra::block_pair::{Blocks, columns};
use crate::linear_algebra::element::{
    Element, ElementVar, InputElements, LocalElements, OutputElements, SharedElements,
};
use crate::linear_algebra::jacobi::pair;
use crate::linear_algebra::matrices::{self, MatrixStrides};
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::registers;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Where an invocation keeps its row. The rotations permute it: an element is read whose index is
/// known at run time only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In registers, and for such indices in an array of the invocation.
    Registers,
    /// In registers, and for such indices in shared memory: compilers put arrays into memory where
    /// registers are few.
    RegistersAndShared,
    /// In shared memory.
    Shared,
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RotateColumns {
    /// The dtype of the matrices.
    pub dtype: DType,
    /// Integer type of offsets.
    pub index: ScalarType,
    /// Where an invocation keeps its row.
    pub place: Place,
}

impl RotateColumns {
    /// The kernel for the context's adapter.
    pub fn here(cx: &Context, dtype: DType, index: ScalarType) -> RotateColumns {
        let of = |place| RotateColumns { dtype, index, place };
        let capabilities = &cx.device.info().capabilities;
        let kept = registers::Kept {
            bytes: dtype.bytes() as u32,
            // And a sum and a factor.
            elements: columns(dtype) + 2,
            loaded: (1, registers::Loads::Elements),
        };
        let (held, shared) = (of(Place::RegistersAndShared), of(Place::Shared));
        if capabilities.registers.is_none() || shared.shared_bytes() > capabilities.max_shared_memory {
            of(Place::Registers)
        } else if kept.fits(capabilities.registers, held.rows()) {
            held
        } else {
            shared
        }
    }

    /// Rows of a workgroup.
    pub fn rows(&self) -> u32 {
        if self.place == Place::Registers { 128 } else { 64 }
    }

    /// Bytes of shared memory.
    fn shared_bytes(&self) -> u32 {
        let columns = columns(self.dtype);
        let rows = if self.place == Place::Registers { columns } else { columns + self.rows() };
        rows * columns * self.dtype.bytes() as u32 + 4 * columns
    }
}

parameters! {
    pub RotateColumns as s => RotateColumnsArguments, RotateColumnsParameters {
        /// `[batch, rows, n]`
        x: OutputElements = s.dtype,
        strides: MatrixStrides = s.index,
        /// The output of [`block_pair`](super::block_pair).
        rotations: InputElements = s.dtype,
        permutation: Input = DType::I32,
        rotated: Input = DType::I32,
        batch: U32,
        rows: U32,
        n: U32,
        /// Columns of a block, and number of blocks.
        width: U32,
        blocks: U32,
        round: U32,
        /// Number of tiles of rows.
        tiles: U32,
    }
}

impl KernelSpec for RotateColumns {
    fn name(&self) -> &'static str {
        "jacobi_rotate_columns"
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.rows(), 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: RotateColumnsParameters<'b>) {
        let (dtype, rows) = (self.dtype, self.rows());
        let most = columns(dtype);
        let nothing = || Element::constant(b, dtype, 0.0);
        let pairs = (p.blocks + 1) / 2;
        let (matrix, tile) = matrices::workgroup_tile(b, p.batch, pairs * p.tiles);
        let own = tile / p.tiles;
        let local = b.local_id(0);
        let row = tile % p.tiles * rows + local;
        let slot = (matrix * pairs + own).cast(self.index);
        b.if_(p.rotated.load(slot).eq(0), || b.return_());
        let (rotations, permutation) =
            (SharedElements::shared(b, dtype, most * most), b.shared(ScalarType::U32, 1, most));
        let blocks = Blocks { pair: pair(p.blocks, p.round, own), width: p.width, n: p.n };
        let columns = p.width * 2;
        for e in 0..most * most / rows {
            let element = local + e * rows;
            let (from, to) = (element / most, element % most);
            let value = ElementVar::var(b, nothing());
            b.if_(from.lt(columns) & to.lt(columns), || value.set(p.rotations.load(blocks.number(slot, from, to))));
            rotations.store(element, value.get());
        }
        b.if_(local.lt(columns), || {
            permutation.store(local, p.permutation.load(blocks.permutation_offset(slot, local)).cast(ScalarType::U32));
        });
        b.barrier();
        let at = |column: Value<'b>| p.strides.at(matrix, row, column);
        b.if_(row.lt(p.rows), || {
            let before = if self.place == Place::Registers {
                Before::Array(LocalElements::local(b, dtype, most))
            } else {
                Before::Shared { rows: SharedElements::shared(b, dtype, most * rows), count: rows, own: local }
            };
            let values: Vec<ElementVar> = (0..most)
                .map(|c| {
                    let (column, value) = (blocks.column(b.u32(c)), ElementVar::var(b, nothing()));
                    b.if_(column.lt(p.n), || value.set(p.x.load(at(column))));
                    before.set(b.u32(c), value.get());
                    value
                })
                .collect();
            let value = |i: u32| match self.place {
                Place::Shared => before.get(b.u32(i)),
                _ => values[i as usize].get(),
            };
            b.for_(0, columns, 1, |c| {
                let column = blocks.column(c);
                b.if_(column.lt(p.n), || {
                    let change = (0..most).fold(nothing(), |sum, i| sum + value(i) * rotations.load(c + i * most));
                    p.x.store(at(column), before.get(permutation.load(c)) + change);
                });
            });
        });
    }
}

/// The row before the rotations, whose elements are read at indices known at run time only.
#[derive(Copy, Clone)]
enum Before<'b> {
    /// An array of the invocation.
    Array(LocalElements<'b>),
    /// The rows of a workgroup's `count` invocations, one column after the other, and this
    /// invocation's index.
    Shared { rows: SharedElements<'b>, count: u32, own: Value<'b> },
}

impl<'b> Before<'b> {
    /// Element `c`.
    fn get(self, c: Value<'b>) -> Element<'b> {
        match self {
            Before::Array(row) => row.get(c),
            Before::Shared { rows, count, own } => rows.load(c * count + own),
        }
    }

    /// Stores element `c`.
    fn set(self, c: Value<'b>, element: Element<'b>) {
        match self {
            Before::Array(row) => row.set(c, element),
            Before::Shared { rows, count, own } => rows.store(c * count + own, element),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for place in [Place::Registers, Place::RegistersAndShared, Place::Shared] {
            for dtype in [DType::F32, DType::C64] {
                accepted(&RotateColumns { dtype, index: ScalarType::U32, place }.build());
            }
            for dtype in [DType::F64, DType::C128] {
                accepted(&RotateColumns { dtype, index: ScalarType::U64, place }.build());
            }
        }
    }
}
