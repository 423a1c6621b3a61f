//! The gradient of an embedding, and the norms of its rows. (The embedding itself is `index_select`.)

use super::arguments::is_index;
use crate::movement::copy::{as_contiguous, fill_with};
use crate::normalization::renorm::factor;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::Fault;
use crate::primitives::indexed_access::{self, Action, Selector, Walk};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::primitives::radix_sort;
use crate::primitives::rows::{Extent, RowExtent, Rows, Share};
use crate::reduction::norm::Order;
use crate::tensor::layout::index_type;
use crate::tensor::overlap::SHARED;
use crate::tensor::promote::accumulator;
use crate::tensor::{Dims, Tensor};
use crate::{check, operators};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::{Builder, DType};

operators! {
    embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) {
        "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    }
    embedding_renorm(self, indices, max_norm, norm_type) {
        "aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    }
}

fn embedding_dense_backward(
    call: &mut Call,
    grad: &Tensor,
    indices: &Tensor,
    rows: i64,
    padding: i64,
    by_frequency: bool,
) -> Result<()> {
    check!(
        is_index(indices.dtype),
        Runtime,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got {} \
         instead (while checking arguments for embedding_backward)",
        indices.dtype
    );
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

/// The rows that the indices name are scaled down to a norm. Of rows that are expanded only those that need no scaling are taken.
fn embedding_renorm(call: &mut Call, table: &Tensor, indices: &Tensor, limit: f64, p: f64) -> Result<()> {
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
        let (keys, _) = radix_sort::sort(call, &row_numbers(call, indices, table)?, none)?;
        let index = index_type(table.reach().max(n * width));
        let (rows, _) = Rows::of_neighbours(index, width);
        let spec =
            Renorm { table: table.dtype, order: Order::of(p), expanded: width > 1 && table.strides[1] == 0, rows };
        let extent = Extent { rows: n, n: width, inner: 1 };
        let arguments = RenormArguments {
            table,
            keys: &keys,
            p: Number::Double(p),
            limit: Number::Double(limit),
            none,
            row_step: table.strides[0],
            column_step: table.strides[1],
            extent,
            fault: call.fault_of_value(SHARED),
        };
        call.run(&spec, &arguments, rows.groups(&extent))?;
    }
    call.ret(table.clone());
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Renorm {
    table: DType,
    order: Order,
    /// Whether the elements of a row are one: such a row cannot be scaled.
    expanded: bool,
    rows: Rows,
}

parameters! {
    Renorm as s => RenormArguments, RenormParameters {
        table: Output = s.table,
        /// Sorted numbers of rows.
        keys: Input = DType::U32,
        p: InDType = accumulator(s.table),
        limit: InDType = accumulator(s.table),
        /// The number of no row.
        none: U32,
        row_step: Index = s.rows.index,
        column_step: Index = s.rows.index,
        extent: RowExtent = s.rows.index,
        fault: Fault,
    }
}

impl KernelSpec for Renorm {
    fn name(&self) -> &'static str {
        "embedding_renorm"
    }

    fn write<'b>(&self, b: &'b Builder, p: RenormParameters<'b>) {
        let RenormParameters { table, keys, row_step, column_step, .. } = p;
        let (order, scalar) = (self.order, accumulator(self.table).compute());
        let share = Share::of(b, &self.rows, p.extent, self.table, 1);
        let at = share.place.row;
        let key = keys.load(at);
        let first = b.var(key.lt(p.none) & share.place.valid);
        b.if_(at.gt(0), || first.set(first.get() & keys.load(at - 1).ne(key)));
        let start = key.cast(self.rows.index) * row_step;
        let norm = b.var(order.identity(b, scalar));
        b.if_(first.get(), || {
            b.for_(share.lane, share.n, share.lanes, |k| {
                let term = order.term(table.load(start + k * column_step), p.p);
                norm.set(order.join(norm.get(), term));
            });
        });
        let norm = share.all(&[norm.get()], |x, y| order.join(x, y))[0];
        let factor = factor(order.project(norm, p.p), p.limit);
        b.if_(first.get() & factor.ne(1.0), || {
            if self.expanded {
                return p.fault.report_value();
            }
            b.for_(share.lane, share.n, share.lanes, |k| {
                let place = start + k * column_step;
                table.store(place, table.load(place) * factor);
            });
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
        for (dtype, p, index, expanded) in
            [(DType::F32, 2.0, ScalarType::U32, true), (DType::BF16, 1.5, ScalarType::U64, false)]
        {
            let rows = Rows::of_neighbours(index, 70).0;
            accepted(&Renorm { table: dtype, order: Order::of(p), expanded, rows }.build());
        }
    }
}
