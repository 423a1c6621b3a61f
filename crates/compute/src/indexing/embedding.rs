//! The gradient of an embedding, and the normalisation of its rows. (The embedding itself is
//! `index_select`.)

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::fault::Fault;
use crate::movement::copy::as_contiguous;
use crate::normalization::renorm::factor;
use crate::primitives::combine::Combine;
use crate::primitives::indexed_access::{self, Action, IndexIteration, Selector};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, KeyedContributions};
use crate::primitives::radix_sort;
use crate::primitives::rows::{Extent, RowExtent, RowPart, Rows};
use crate::reduction::norm::Order;
use crate::scalar::Scalar as Number;
use crate::view::layout::index_type;
use crate::view::{Dims, View};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::{Builder, DType};

/// Adds `parts`, one row per index, to the rows of `out` with these indices, except row `padding`.
/// Each is divided by the number of occurrences of its row if `by_frequency`. `out` is contiguous
/// and zero.
pub fn accumulate_rows(
    cx: &Context,
    parts: &View,
    indices: &View,
    out: &View,
    padding: i64,
    by_frequency: bool,
) -> Result<()> {
    let (rows, width, n) = (out.sizes[0], out.sizes[1], indices.numel());
    if n == 0 || width == 0 {
        return Ok(());
    }
    let row = row_numbers(cx, indices, out)?;
    let parts: View = as_contiguous(cx, parts)?;
    keyed_reduction::run(
        cx,
        &KeyedContributions {
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

/// Indices of rows of a table as a vector of u32; an index out of range, which is reported, becomes
/// the number of rows.
pub fn row_numbers(cx: &Context, indices: &View, table: &View) -> Result<View> {
    let rows = table.sizes[0];
    let row = cx.empty(DType::U32, &[indices.numel()])?;
    let none = keyed_reduction::invalid_key(cx.name, &[rows])?;
    let own = Dims::from_elem(0, indices.dim());
    let selectors = [Selector { index: indices.clone(), size: rows, stride: 1, dim: 0 }];
    let iteration =
        IndexIteration { sizes: &indices.sizes, base: table, strides: &own, selectors: &selectors, negative: false };
    indexed_access::run(cx, &iteration, &Action::Number { row: &row, none })?;
    Ok(row)
}

/// Scales the rows of `table` (`[rows, width]`, floats, any strides) with these `indices` down to a
/// `p`-norm of `limit`. The elements of an expanded row share memory: `refusal` is the error if
/// such a row needs scaling.
pub fn renorm(cx: &Context, table: &View, indices: &View, limit: f64, p: f64, refusal: &'static str) -> Result<()> {
    let (n, width) = (indices.numel(), table.sizes[1]);
    if n == 0 || width == 0 {
        return Ok(());
    }
    let none = keyed_reduction::invalid_key(cx.name, &table.sizes[..1])?;
    // Sorted, so that the first of equal indices processes the row.
    let (keys, _) = radix_sort::sort(cx, &row_numbers(cx, indices, table)?, none)?;
    let index = index_type(table.reach().max(n * width));
    let (rows, _) = Rows::of_contiguous(index, width);
    let spec = Renorm { table: table.dtype, order: Order::of(p), expanded: width > 1 && table.strides[1] == 0, rows };
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
        fault: cx.fault_of_value(refusal),
    };
    cx.run(&spec, &arguments, rows.groups(&extent))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Renorm {
    table: DType,
    order: Order,
    /// The elements of a row share memory: such a row cannot be scaled.
    expanded: bool,
    rows: Rows,
}

parameters! {
    Renorm as s => RenormArguments, RenormParameters {
        table: Output = s.table,
        /// Sorted indices of rows.
        keys: Input = DType::U32,
        p: InDType = accumulator(s.table),
        limit: InDType = accumulator(s.table),
        /// The index of an invalid row.
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
        let share = RowPart::of(b, &self.rows, p.extent, self.table, 1);
        let at = share.position.row;
        let key = keys.load(at);
        let first = b.var(key.lt(p.none) & share.position.valid);
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
                let offset = start + k * column_step;
                table.store(offset, table.load(offset) * factor);
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
            let rows = Rows::of_contiguous(index, 70).0;
            accepted(&Renorm { table: dtype, order: Order::of(p), expanded, rows }.build());
        }
    }
}
