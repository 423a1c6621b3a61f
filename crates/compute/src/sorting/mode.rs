//! The most frequent element along a dimension; of several the smallest one. NaN does not equal
//! NaN.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::row_operands::Operands;
use crate::reduction::axes::Axes;
use crate::reduction::extremum;
use crate::sorting::key;
use crate::view::View;
use dml_engine::interface::{Index, ReadRange, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The position (u32) of a most frequent element in each row, given the sorted rows and each
/// element's original position.
pub fn most_frequent(cx: &Context, elements: &View, order: &View, o: &Operands) -> Result<View> {
    let (dtype, index) = (elements.dtype, o.layout.index);
    let lengths = cx.empty(DType::U32, &[o.rows, o.n])?;
    let (rows, n) = (o.rows, o.n as u32);
    let arguments = LengthsArguments { elements: elements.range(), lengths: &lengths, rows, n };
    cx.run_threads(&Lengths { dtype, index }, &arguments, (o.rows * o.n) as u64)?;
    let (longest, positions) = (cx.empty(DType::I64, &[o.rows])?, cx.empty(DType::U32, &[o.rows])?);
    extremum::index_of_first_maximum(cx, &lengths, &longest, Axes::of_dims(&[1], 2, false))?;
    let arguments = LocateArguments { order, longest: &longest, positions: &positions, rows, n };
    cx.run_threads(&Locate { index }, &arguments, o.rows as u64)?;
    Ok(positions)
}

/// Writes the length of each run of equal elements to the run's last element, and 0 to the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lengths {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Lengths as s => LengthsArguments, LengthsParameters {
        elements: ReadRange = s.dtype.bits(),
        lengths: Output = DType::U32,
        rows: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for Lengths {
    fn name(&self) -> &'static str {
        "mode_lengths"
    }

    fn write<'b>(&self, b: &'b Builder, p: LengthsParameters<'b>) {
        let &Lengths { dtype, index } = self;
        let i = linear_id(b, index);
        let row = i / p.n.cast(index);
        b.if_(row.lt(p.rows), || {
            let first = row * p.n.cast(index);
            let column = (i - first).cast(ScalarType::U32);
            let own = key::load(p.elements, dtype, first + column.cast(index));
            let nan = if dtype.is_float() { own.eq(key::largest(dtype)) } else { b.bool(false) };
            let last = b.var(nan | (column + 1).eq(p.n));
            b.if_(!last.get(), || last.set(key::load(p.elements, dtype, first + (column + 1).cast(index)).ne(own)));
            let length = b.var(b.u32(0));
            b.if_(last.get(), || {
                let begin =
                    key::partition_point(column, |c| key::load(p.elements, dtype, first + c.cast(index)).lt(own));
                length.set(column + 1 - begin);
            });
            p.lengths.store(i, (nan & length.get().gt(1)).select(b.u32(1), length.get()));
        });
    }
}

/// Finds the original position of the last element of the longest run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Locate {
    index: ScalarType,
}

parameters! {
    Locate as s => LocateArguments, LocateParameters {
        order: Input = DType::I64,
        longest: Input = DType::I64,
        positions: Output = DType::U32,
        rows: Index = s.index,
        n: U32,
    }
}

impl KernelSpec for Locate {
    fn name(&self) -> &'static str {
        "mode_place"
    }

    fn write<'b>(&self, b: &'b Builder, p: LocateParameters<'b>) {
        let index = self.index;
        let row = linear_id(b, index);
        b.if_(row.lt(p.rows), || {
            let last = row * p.n.cast(index) + p.longest.load(row).cast(index);
            p.positions.store(row, p.order.load(last).cast(ScalarType::U32));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::Bool, ScalarType::U32), (DType::F16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            accepted(&Lengths { dtype, index }.build());
            accepted(&Locate { index }.build());
        }
    }
}
