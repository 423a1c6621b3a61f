//! Sorting along a dimension. Always stable: NaN is the largest, and equal elements keep their
//! order.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::radix_sort;
use crate::primitives::row_operands::{Operands, RowOperands, Take};
use crate::sorting::{key, tile};
use crate::view::View;
use crate::view::layout::LayoutSpec;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType};

/// Sorts the rows of the input; neither result may overlap it.
pub fn sort_into(cx: &Context, o: &Operands, descending: bool) -> Result<()> {
    let run = |cx: &Context, in_tile| {
        if in_tile {
            return tile::run(cx, o, None, o.n, descending, Take::First(o.n as u32));
        }
        // Elements that are not adjacent are gathered once.
        let keys = o.across().then(|| key::of_rows(cx, o, descending)).transpose()?;
        radix_sort::sort_elements(cx, o, keys.as_ref(), descending)
    };
    cx.run_accepted(o.n <= tile::max_row(cx), |in_tile| in_tile.then_some(false), run)
}

/// The sorted rows of a tensor along a dimension, contiguous, and the original position of each
/// element.
pub fn by_rows(cx: &Context, input: &View, dim: usize, descending: bool) -> Result<(View, View)> {
    let order = key::order(input, dim);
    let rows = input.permute(&order);
    let (values, indices) = (cx.empty(input.dtype, &rows.sizes)?, cx.empty(DType::I64, &rows.sizes)?);
    if rows.numel() > 0 {
        sort_into(cx, &Operands::new(&rows, rows.dim().max(1) - 1, &values, &indices), descending)?;
    }
    Ok((values, indices))
}

/// Writes the elements at `positions` (u32, contiguous, `[rows, n]`), and the positions as indices.
pub fn emit(cx: &Context, o: &Operands, positions: &View, n: i64) -> Result<()> {
    let spec = Emit { bits_dtype: o.tensors[0].dtype.bits(), layout: o.layout.spec() };
    let arguments = EmitArguments { operands: o, positions, n: n as u32 };
    cx.run_threads(&spec, &arguments, (o.rows * n) as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Emit {
    bits_dtype: DType,
    layout: LayoutSpec,
}

parameters! {
    Emit as s => EmitArguments, EmitParameters {
        operands: RowOperands = (s.bits_dtype, s.layout),
        positions: Input = DType::U32,
        n: U32,
    }
}

impl KernelSpec for Emit {
    fn name(&self) -> &'static str {
        "sort_emit"
    }

    fn write<'b>(&self, b: &'b Builder, p: EmitParameters<'b>) {
        let (index, o) = (self.layout.index, &p.operands);
        let i = linear_id(b, index);
        let row = i / p.n.cast(index);
        b.if_(row.lt(o.rows), || {
            let (position, offsets) = (p.positions.load(i), o.offsets(b, row));
            let to = i - row * p.n.cast(index);
            o.values.store(o.at(1, offsets[1], to), o.input.load(o.at(0, offsets[0], position)));
            o.indices.store(o.at(2, offsets[2], to), position);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::ScalarType;

    #[test]
    fn kernels_are_valid() {
        for (bits_dtype, index) in
            [(DType::U8, ScalarType::U32), (DType::U16, ScalarType::U64), (DType::U64, ScalarType::U32)]
        {
            accepted(&Emit { bits_dtype, layout: LayoutSpec { rank: 2, operands: 3, index } }.build());
        }
    }
}
