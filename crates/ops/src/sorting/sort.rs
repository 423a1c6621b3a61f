//! Sorting along a dimension. Always stable: NaN is the largest, and equal elements keep their order.

use super::key;
use super::operands::{Operands, Params, Take};
use super::tile;
use crate::movement::copy::contiguous;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::radix_sort;
use crate::tensor::Tensor;
use crate::tensor::overlap;
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::sort.stable", |c| sort(c, [None, None])),
    op("aten::sort.values_stable", |c| sort(c, [Some(4), Some(5)])),
];

/// `sort.stable(self, *, stable, dim, descending[, values, indices])`
fn sort(call: &mut Call, outs: [Option<usize>; 2]) -> Result<()> {
    let input = call.tensor(0)?;
    let dim = call.wrap_dim(call.int(2)?, input.dim())?;
    let descending = call.flag(3)?;
    let values = structured::out(call, outs[0], input.dtype, &input.sizes)?;
    let indices = structured::out(call, outs[1], DType::I64, &input.sizes)?;
    for t in [&values, &indices] {
        overlap::check_internal(t)?;
    }
    if input.numel() > 0 {
        // The values are read once more when their places are known.
        let input = if overlap::touches(input, &values) { contiguous(call, input)? } else { input.clone() };
        sort_into(call, &Operands::new(&input, dim, &values, &indices), descending)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

/// Sorts the rows of the input; neither result may share its memory.
fn sort_into(call: &Call, o: &Operands, descending: bool) -> Result<()> {
    if o.n <= tile::LONGEST {
        return tile::run(call, o, None, o.n, descending, Take::First(o.n as u32));
    }
    let keys = key::of_rows(call, o, descending)?;
    let (_, positions) = radix_sort::sort_rows(call, &keys, None, o.rows, key::bits(o.tensors[0].dtype))?;
    emit(call, o, &positions, o.n)
}

/// The sorted rows of a tensor along a dimension, contiguous, and where each element was.
pub fn by_rows(call: &Call, input: &Tensor, dim: usize) -> Result<(Tensor, Tensor)> {
    let order = key::order(input, dim);
    let rows = input.permute(&order);
    let (values, indices) = (call.empty(input.dtype, &rows.sizes)?, call.empty(DType::I64, &rows.sizes)?);
    if rows.numel() > 0 {
        sort_into(call, &Operands::new(&rows, rows.dim().max(1) - 1, &values, &indices), false)?;
    }
    Ok((values, indices))
}

/// Writes the elements at `positions` (u32, contiguous, `[rows, n]`), and the positions as indices.
pub fn emit(call: &Call, o: &Operands, positions: &Tensor, n: i64) -> Result<()> {
    let (dtype, rank, index) = (o.tensors[0].dtype.bits(), o.layout.rank(), o.layout.index);
    let key = [dtype as u32, rank as u32, index.bytes(), 0, 0, 0];
    let kernel = call.kernel("sort_emit", key, || build_emit(dtype, rank, index))?;
    let [input, values, indices] = &o.tensors;
    let launcher = call.launch(kernel).read(input).write(values).write(indices).read(positions).u32(n as u32);
    o.pass(launcher).threads((o.rows * n) as u64)
}

fn build_emit(dtype: DType, rank: usize, index: Scalar) -> Kernel {
    let b = Builder::new("sort_emit", [GROUP, 1, 1]);
    let (input, values) = (b.pointer("input", dtype), b.pointer("values", dtype));
    let (indices, positions) = (b.pointer("indices", DType::I64), b.pointer("positions", DType::U32));
    let n = b.param("n", Scalar::U32);
    let params = Params::declare(&b, rank, index);
    let i = linear_id(&b, index);
    let row = i / n.cast(index);
    b.if_(row.lt(params.rows), || {
        let (place, offsets) = (positions.load(i), params.offsets(&b, row));
        let to = i - row * n.cast(index);
        values.store(params.at(1, offsets[1], to), input.load(params.at(0, offsets[0], place)));
        indices.store(params.at(2, offsets[2], to), place);
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U8, Scalar::U32), (DType::U16, Scalar::U64), (DType::U64, Scalar::U32)] {
            crate::primitives::validate::accepted(&build_emit(dtype, 2, index));
        }
    }
}
