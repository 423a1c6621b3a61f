//! The gradients of bags of embeddings: of the table, and of the weights of the indices.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::indexing::embedding_bag::Mode;
use crate::movement::copy::as_contiguous;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::primitives::rows::{RowExtent, Rows, Share};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{I64, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// What each index contributes: `[indices, width]`.
pub fn contributions(
    cx: &Context,
    mode: Mode,
    grad: &View,
    bag_of: &View,
    size: &View,
    each: Option<&View>,
) -> Result<View> {
    let (n, width) = (bag_of.numel(), grad.sizes[1]);
    let parts = cx.empty(grad.dtype, &[n, width])?;
    let dense = |t: &View| as_contiguous(cx, t);
    let (grad, bag_of, size) = (dense(grad)?, dense(bag_of)?, dense(size)?);
    let each = each.map(dense).transpose()?;
    let wide = index_type(parts.numel().max(grad.numel()));
    let spec = Contributions {
        grad: grad.dtype,
        bag_of: bag_of.dtype,
        bag_size: size.dtype,
        mean: mode == Mode::Mean,
        weighted: each.is_some(),
        wide,
    };
    let arguments = ContributionsArguments {
        parts: &parts,
        grad: &grad,
        bag_of: &bag_of,
        bag_size: &size,
        per_sample_weights: each.as_ref(),
        n,
        width,
    };
    cx.run_threads(&spec, &arguments, (n * width) as u64)?;
    Ok(parts)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Contributions {
    grad: DType,
    bag_of: DType,
    bag_size: DType,
    /// They are divided by the sizes of their bags.
    mean: bool,
    weighted: bool,
    /// Of offsets into the contributions.
    wide: ScalarType,
}

parameters! {
    Contributions as s => ContributionsArguments, ContributionsParameters {
        parts: Output = s.grad,
        grad: Input = s.grad,
        bag_of: Input = s.bag_of,
        bag_size: Input = s.bag_size,
        per_sample_weights: Option<Input> = s.weighted.then_some(s.grad),
        n: Index = s.wide,
        width: Index = s.wide,
    }
}

impl KernelSpec for Contributions {
    fn name(&self) -> &'static str {
        "embedding_bag_parts"
    }

    fn write<'b>(&self, b: &'b Builder, p: ContributionsParameters<'b>) {
        let wide = self.wide;
        let thread = linear_id(b, wide);
        let i = thread / p.width;
        b.if_(i.lt(p.n), || {
            let bag = p.bag_of.load(i);
            let value = b.var(b.float(self.grad.compute(), 0.0));
            b.if_(bag.ge(0), || {
                let mut x = p.grad.load(bag.cast(wide) * p.width + (thread - i * p.width));
                if self.mean {
                    x = x / p.bag_size.load(bag.cast(wide)).cast(x.scalar());
                }
                value.set(p.per_sample_weights.map_or(x, |each| x * each.load(i)));
            });
            p.parts.store(thread, value.get());
        });
    }
}

/// Every element of the gradient goes to the row its maximum came from.
pub fn of_maxima(cx: &Context, grad: &View, size: &View, largest: &View, out: &View) -> Result<()> {
    let n = grad.numel();
    let (rows, width) = (out.sizes[0], out.sizes[1]);
    let none = keyed_reduction::no_key(cx.name, &[rows, width])?;
    if n == 0 {
        return Ok(());
    }
    check!(n < i64::from(i32::MAX), TooLarge, "{}: {n} contributions are more than dml can sort", cx.name);
    let (grad, size, largest) = (as_contiguous(cx, grad)?, as_contiguous(cx, size)?, as_contiguous(cx, largest)?);
    let keys = cx.empty(DType::U32, &[n])?;
    let spec = Keys { max_indices: largest.dtype, bag_size: size.dtype };
    let arguments = KeysArguments {
        keys: &keys,
        max_indices: &largest,
        bag_size: &size,
        n: n as u32,
        width: width as u32,
        none,
        rows,
    };
    cx.run_threads(&spec, &arguments, n as u64)?;
    let sizes = [rows, width];
    keyed_reduction::run(
        cx,
        &Accumulation {
            dst: out,
            key_sizes: &sizes,
            key_strides: &[width, 1],
            keys: &keys,
            src: &grad,
            part_sizes: &[n],
            part_strides: &[1],
            slice_sizes: &[],
            dst_strides: &[],
            src_strides: &[],
            combine: Combine::Add,
            include_self: false,
            skip: None,
        },
    )
}

/// Numbers the place in the table that each maximum came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Keys {
    max_indices: DType,
    bag_size: DType,
}

parameters! {
    Keys as s => KeysArguments, KeysParameters {
        keys: Output = DType::U32,
        max_indices: Input = s.max_indices,
        bag_size: Input = s.bag_size,
        n: U32,
        width: U32,
        /// The number of no place.
        none: U32,
        rows: I64,
    }
}

impl KernelSpec for Keys {
    fn name(&self) -> &'static str {
        "embedding_bag_keys"
    }

    fn write<'b>(&self, b: &'b Builder, p: KeysParameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.n), || {
            let bag = i / p.width;
            let row = p.max_indices.load(i.cast(ScalarType::U64)).cast(ScalarType::I64);
            let key = b.var(p.none);
            b.if_(p.bag_size.load(bag).gt(0) & row.ge(0) & row.lt(p.rows), || {
                key.set(row.cast(ScalarType::U32) * p.width + (i - bag * p.width));
            });
            p.keys.store(i.cast(ScalarType::U64), key.get());
        });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Products {
    /// Of the gradient, the table and the result.
    pub grad: DType,
    pub indices: DType,
    pub bag_of: DType,
    pub rows: Rows,
}

parameters! {
    pub Products as s => ProductsArguments, ProductsParameters {
        out: Output = s.grad,
        grad: Input = s.grad,
        weight: Input = s.grad,
        indices: Input = s.indices,
        bag_of: Input = s.bag_of,
        /// Rows of the table.
        table: I64,
        /// The row that does not count.
        padding: I64,
        extent: RowExtent = s.rows.index,
    }
}

impl KernelSpec for Products {
    fn name(&self) -> &'static str {
        "per_sample_weights_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: ProductsParameters<'b>) {
        let share = Share::of(b, &self.rows, p.extent, self.grad, 1);
        let index = self.rows.index;
        let row = p.indices.load(share.place.row).cast(ScalarType::I64);
        let bag = p.bag_of.load(share.place.row).cast(ScalarType::I64);
        let counts = row.ge(0) & row.lt(p.table) & row.ne(p.padding) & bag.ge(0);
        let sum = b.var(b.float(accumulator(self.grad).compute(), 0.0));
        b.if_(counts, || {
            let [row, bag]: [Value; 2] = [row, bag].map(|r| r.cast(index) * share.n);
            b.for_(share.lane, share.n, share.lanes, |k| {
                sum.set(sum.get() + p.grad.load(bag + k) * p.weight.load(row + k));
            });
        });
        let total = share.sum(sum.get());
        b.if_(share.place.valid & share.place.lane.eq(0), || p.out.store(share.place.row, total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (grad, index, wide) in
            [(DType::F16, DType::I32, ScalarType::U32), (DType::F64, DType::I64, ScalarType::U64)]
        {
            for (mean, weighted) in [(false, true), (true, false), (false, false)] {
                let spec = Contributions { grad, bag_of: index, bag_size: index, mean, weighted, wide };
                accepted(&spec.build());
            }
            accepted(&Keys { max_indices: index, bag_size: index }.build());
            let rows = Rows::of_neighbours(wide, 70).0;
            accepted(&Products { grad, indices: index, bag_of: index, rows }.build());
        }
    }
}
