//! The most frequent element along a dimension; of several the smallest one. No NaN equals another.

use super::key;
use super::operands::Operands;
use super::rank::reduced;
use super::sort::{by_rows, emit};
use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::reduction::{Axes, extremum};
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[op("aten::mode", mode)];

/// `mode(self, dim, keepdim) -> (values, indices)`
fn mode(call: &mut Call) -> Result<()> {
    let input = call.tensor(0)?;
    let dim = call.wrap_dim(call.int(1)?, input.dim())?;
    let keep = call.flag(2)?;
    let n = input.sizes.get(dim).copied().unwrap_or(1);
    check!(n != 0, Index, "mode(): Expected reduction dim {dim} to have non-zero size.");
    let [values, value_rows] = reduced(call, None, input.dtype, input, dim, keep)?;
    let [indices, index_rows] = reduced(call, None, DType::I64, input, dim, keep)?;
    if values.numel() > 0 {
        let o = Operands::new(input, dim, &value_rows, &index_rows);
        let (elements, places) = by_rows(call, input, dim)?;
        let positions = most_frequent(call, &elements, &places, &o)?;
        emit(call, &o, &positions, 1)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}

/// The position (u32) of a most frequent element in each row, given the sorted rows and where each element was.
fn most_frequent(call: &Call, elements: &Tensor, places: &Tensor, o: &Operands) -> Result<Tensor> {
    let (dtype, index) = (elements.dtype, o.layout.index);
    let lengths = call.empty(DType::U32, &[o.rows, o.n])?;
    let key = [dtype as u32, index.bytes(), 0, 0, 0, 0];
    let kernel = call.kernel("mode_lengths", key, || build_lengths(dtype, index))?;
    let launcher = call.launch(kernel).read(elements).write(&lengths);
    launcher.index(index, o.rows).u32(o.n as u32).threads((o.rows * o.n) as u64)?;
    let (longest, positions) = (call.empty(DType::I64, &[o.rows])?, call.empty(DType::U32, &[o.rows])?);
    extremum::first_largest(call, &lengths, &longest, Axes::listed(call, &[1], 2, false)?)?;
    let kernel = call.kernel("mode_place", key, || build_place(index))?;
    let launcher = call.launch(kernel).read(places).read(&longest).write(&positions);
    launcher.index(index, o.rows).u32(o.n as u32).threads(o.rows as u64)?;
    Ok(positions)
}

/// At the last of equal elements how many there are, elsewhere 0.
fn build_lengths(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("mode_lengths", [GROUP, 1, 1]);
    let (elements, lengths) = (b.pointer("elements", dtype.bits()), b.pointer("lengths", DType::U32));
    let (rows, n) = (b.param("rows", index), b.param("n", Scalar::U32));
    let i = linear_id(&b, index);
    let row = i / n.cast(index);
    b.if_(row.lt(rows), || {
        let first = row * n.cast(index);
        let column = (i - first).cast(Scalar::U32);
        let own = key::load(elements, dtype, first + column.cast(index));
        let nan = if dtype.is_float() { own.eq(key::largest(dtype)) } else { b.bool(false) };
        let last = b.var(nan | (column + 1).eq(n));
        b.if_(!last.get(), || last.set(key::load(elements, dtype, first + (column + 1).cast(index)).ne(own)));
        let length = b.var(b.u32(0));
        b.if_(last.get(), || {
            let begin = key::partition_point(column, |c| key::load(elements, dtype, first + c.cast(index)).lt(own));
            length.set(column + 1 - begin);
        });
        lengths.store(i, (nan & length.get().gt(1)).select(b.u32(1), length.get()));
    });
    b.finish()
}

fn build_place(index: Scalar) -> Kernel {
    let b = Builder::new("mode_place", [GROUP, 1, 1]);
    let (places, longest) = (b.pointer("places", DType::I64), b.pointer("longest", DType::I64));
    let positions = b.pointer("positions", DType::U32);
    let (rows, n) = (b.param("rows", index), b.param("n", Scalar::U32));
    let row = linear_id(&b, index);
    b.if_(row.lt(rows), || {
        positions.store(row, places.load(row * n.cast(index) + longest.load(row).cast(index)).cast(Scalar::U32));
    });
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::Bool, Scalar::U32), (DType::F16, Scalar::U64), (DType::F64, Scalar::U32)] {
            accepted(&build_lengths(dtype, index));
            accepted(&build_place(index));
        }
    }
}
