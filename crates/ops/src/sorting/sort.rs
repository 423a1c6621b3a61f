//! Sorting along a dimension. Always stable: NaN is the largest, and equal elements keep their order.

use super::key;
use super::tile;
use crate::movement::copy::separate;
use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operators;
use crate::primitives::kernel::{Input, KernelSpec};
use crate::primitives::radix_sort;
use crate::primitives::row_operands::{Operands, RowOperands, Take};
use crate::tensor::layout::{LayoutSpec, preserved_strides};
use crate::tensor::{Tensor, overlap};
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType};

operators! {
    sort(self, dim, descending, outs) {
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        "aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
}

fn sort(call: &mut Call, input: &Tensor, dim: i64, descending: bool, outs: Outs) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let strides = || preserved_strides(input);
    let values = structured::result_strided(call, given(0), input.dtype, &input.sizes, strides)?;
    let indices = structured::result_strided(call, given(1), DType::I64, &input.sizes, strides)?;
    for t in [&values, &indices] {
        overlap::check_partial(t, [input])?;
    }
    if input.numel() > 0 {
        // The values are read once more when their places are known.
        let input = separate(call, &values, input)?;
        sort_into(call, &Operands::new(&input, dim, &values, &indices), descending)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

/// Sorts the rows of the input; neither result may share its memory.
fn sort_into(call: &Call, o: &Operands, descending: bool) -> Result<()> {
    if o.n <= tile::max_row(call) {
        return tile::run(call, o, None, o.n, descending, Take::First(o.n as u32));
    }
    // Elements that are far apart are fetched once.
    let keys = o.across().then(|| key::of_rows(call, o, descending)).transpose()?;
    radix_sort::sort_elements(call, o, keys.as_ref(), descending)
}

/// The rows of a tensor along a dimension in order, contiguous, and where each element was.
pub fn by_rows(call: &Call, input: &Tensor, dim: usize, descending: bool) -> Result<(Tensor, Tensor)> {
    let order = key::order(input, dim);
    let rows = input.permute(&order);
    let (values, indices) = (call.empty(input.dtype, &rows.sizes)?, call.empty(DType::I64, &rows.sizes)?);
    if rows.numel() > 0 {
        sort_into(call, &Operands::new(&rows, rows.dim().max(1) - 1, &values, &indices), descending)?;
    }
    Ok((values, indices))
}

/// Writes the elements at `positions` (u32, contiguous, `[rows, n]`), and the positions as indices.
pub fn emit(call: &Call, o: &Operands, positions: &Tensor, n: i64) -> Result<()> {
    let spec = Emit { moved: o.tensors[0].dtype.bits(), layout: o.layout.spec() };
    let arguments = EmitArguments { operands: o, positions, n: n as u32 };
    call.run_threads(&spec, &arguments, (o.rows * n) as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Emit {
    moved: DType,
    layout: LayoutSpec,
}

parameters! {
    Emit as s => EmitArguments, EmitParameters {
        operands: RowOperands = (s.moved, s.layout),
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
            let (place, offsets) = (p.positions.load(i), o.offsets(b, row));
            let to = i - row * p.n.cast(index);
            o.values.store(o.at(1, offsets[1], to), o.input.load(o.at(0, offsets[0], place)));
            o.indices.store(o.at(2, offsets[2], to), place);
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
        for (moved, index) in
            [(DType::U8, ScalarType::U32), (DType::U16, ScalarType::U64), (DType::U64, ScalarType::U32)]
        {
            accepted(&Emit { moved, layout: LayoutSpec { rank: 2, operands: 3, index } }.build());
        }
    }
}
