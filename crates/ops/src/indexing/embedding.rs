//! The gradient of an embedding, and the norms of its rows. (The embedding itself is `index_select`.)

use crate::check;
use crate::indexing::index::is_index;
use crate::movement::copy::{as_contiguous, fill_with};
use crate::normalization::renorm::factor;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::primitives::launch::GROUP;
use crate::primitives::radix_sort;
use crate::primitives::rows::{Rows, Share};
use crate::reduction::norm::Order;
use crate::reduction::sum::accumulator_dtype;
use crate::tensor::layout::index_type;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar};

/// This family's overloads.
pub const OPERATORS: &[Operator] =
    &[op("aten::embedding_dense_backward", embedding_dense_backward), op("aten::embedding_renorm_", embedding_renorm)];

/// `embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)`
fn embedding_dense_backward(call: &mut Call) -> Result<()> {
    let (grad, indices) = (call.tensor(0)?, call.tensor(1)?);
    check!(
        is_index(indices.dtype),
        Runtime,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {} \
         instead (while checking arguments for embedding_backward)",
        indices.dtype
    );
    let (rows, padding) = (call.int(2)?, call.int(3)?);
    let by_frequency = call.flag(4)?;
    let width = grad.sizes.last().copied().unwrap_or(1);
    let out = call.empty(grad.dtype, &[rows, width])?;
    fill_with(call, &out, Number::Int(0))?;
    accumulate_rows(call, grad, indices, &out, padding, by_frequency)?;
    call.ret(out);
    Ok(())
}

/// Adds `parts`, one row an index, to the rows of `out` that the indices name, but for row `padding`. Each is divided by how
/// often its row occurs if `by_frequency`. `out` is contiguous and zero.
pub fn accumulate_rows(
    call: &Call,
    parts: &Tensor,
    indices: &Tensor,
    out: &Tensor,
    padding: i64,
    by_frequency: bool,
) -> Result<()> {
    let (rows, width, n) = (out.sizes[0], out.sizes[1], indices.numel());
    if n == 0 || width == 0 {
        return Ok(());
    }
    let row = row_numbers(call, indices, out)?;
    let parts: Tensor = as_contiguous(call, parts)?;
    keyed_reduction::run(
        call,
        &Accumulation {
            dst: out,
            key_sizes: &[rows],
            key_strides: &[width],
            keys: &row,
            src: &parts,
            part_sizes: &[n],
            part_strides: &[width],
            slice_sizes: &[width],
            dst_strides: &[1],
            src_strides: &[1],
            combine: if by_frequency { Combine::Mean } else { Combine::Add },
            include_self: false,
            skip: u32::try_from(padding).ok(),
        },
    )
}

/// Indices of rows of a table as a u32 row; the number of rows stands for one that does not exist, which is reported.
fn row_numbers(call: &Call, indices: &Tensor, table: &Tensor) -> Result<Tensor> {
    let rows = table.sizes[0];
    let row = call.empty(DType::U32, &[indices.numel()])?;
    let none = keyed_reduction::no_key(call.name, &[rows])?;
    let own = Dims::from_elem(0, indices.dim());
    let selectors = [Selector { index: indices.clone(), size: rows, stride: 1, dim: 0 }];
    let walk = Walk { sizes: &indices.sizes, base: table, strides: &own, selectors: &selectors, negative: false };
    indexed_access::run(call, &walk, &Action::Number { row: &row, none })?;
    Ok(row)
}

/// `embedding_renorm_(self, indices, max_norm, norm_type)`: the rows that the indices name are scaled down to a norm
fn embedding_renorm(call: &mut Call) -> Result<()> {
    let (table, indices) = (call.tensor(0)?.clone(), call.tensor(1)?);
    let (limit, p) = (call.double(2)?, call.double(3)?);
    check!(
        table.dim() == 2,
        Runtime,
        "Expected 2-dimensional tensor, but got {}-dimensional tensor for argument #1 'self' (while checking arguments \
         for embedding_renorm_)",
        table.dim()
    );
    check!(
        is_index(indices.dtype),
        Runtime,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {} \
         instead (while checking arguments for embedding_renorm_)",
        indices.dtype
    );
    check!(
        table.dtype.is_float(),
        Runtime,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
        table.dtype
    );
    let (n, width) = (indices.numel(), table.sizes[1]);
    if n > 0 && width > 0 {
        let none = keyed_reduction::no_key(call.name, &table.sizes[..1])?;
        // In order, so that the first of equal ones can do the work for all.
        let (keys, _) = radix_sort::sort(call, &row_numbers(call, indices, &table)?, none)?;
        let reach = table.range();
        let far = (reach.end - reach.start) / table.element_size();
        let wide = index_type((far as i64).max(n * width));
        let (rows, _) = Rows::of_neighbours(wide, width);
        let order = Order::of(p);
        let key = [table.dtype as u32, order as u32, rows.code(), 0, 0, 0];
        let kernel = call.kernel("embedding_renorm", key, || build_renorm(table.dtype, order, &rows))?;
        let numbers = accumulator_dtype(table.dtype);
        let launcher = call.launch(kernel).write(&table).read(&keys);
        let launcher = launcher.number(numbers, Number::Double(p)).number(numbers, Number::Double(limit)).u32(none);
        let launcher = launcher.index(wide, table.strides[0]).index(wide, table.strides[1]);
        rows.run(launcher, n, width, 1)?;
    }
    call.ret(table);
    Ok(())
}

fn build_renorm(dtype: DType, order: Order, rows: &Rows) -> Kernel {
    let b = Builder::new("embedding_renorm", [GROUP, 1, 1]);
    write_renorm(&b, dtype, order, rows);
    b.finish()
}

fn write_renorm(b: &Builder, dtype: DType, order: Order, rows: &Rows) {
    let (table, keys) = (b.pointer("table", dtype), b.pointer("keys", DType::U32));
    let scalar = accumulator_dtype(dtype).compute();
    let (p, limit) = (b.param("p", scalar), b.param("limit", scalar));
    let none = b.param("none", Scalar::U32);
    let (row_step, column_step) = (b.param("row_step", rows.index), b.param("column_step", rows.index));
    let share = Share::new(b, rows, dtype, 1);
    let at = share.place.row;
    let key = keys.load(at);
    let first = b.var(key.lt(none) & share.place.valid);
    b.if_(at.gt(0), || first.set(first.get() & keys.load(at - 1).ne(key)));
    let start = key.cast(rows.index) * row_step;
    let norm = b.var(order.identity(b, scalar));
    b.if_(first.get(), || {
        b.for_(share.lane, share.n, share.lanes, |k| {
            let term = order.term(table.load(start + k * column_step), p);
            norm.set(order.join(norm.get(), term));
        });
    });
    let norm = share.all(&[norm.get()], |x, y| order.join(x, y))[0];
    let factor = factor(order.project(norm, p), limit);
    b.if_(first.get() & factor.ne(1.0), || {
        b.for_(share.lane, share.n, share.lanes, |k| {
            let place = start + k * column_step;
            table.store(place, table.load(place) * factor);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, p, index) in [(DType::F32, 2.0, Scalar::U32), (DType::BF16, 1.5, Scalar::U64)] {
            accepted(&build_renorm(dtype, Order::of(p), &Rows::of_neighbours(index, 70).0));
        }
    }
}
