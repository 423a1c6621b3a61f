//! The gradients of bags of embeddings: of the table, and of the weights of indices.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::indexing::embedding_bag::Mode;
use crate::movement::copy::as_contiguous;
use crate::primitives::combine::Combine;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, KeyedContributions};
use crate::primitives::rows::{Extent, RowExtent, RowPart, Rows};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{I64, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The contribution of each index: `[indices, width]`.
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
    let offset_type = index_type(parts.numel().max(grad.numel()));
    let spec = Contributions {
        grad: grad.dtype,
        bag_of: bag_of.dtype,
        bag_size: size.dtype,
        mean: mode == Mode::Mean,
        weighted: each.is_some(),
        offset_type,
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
    /// Contributions are divided by the sizes of their bags.
    mean: bool,
    weighted: bool,
    /// Integer type of offsets into the contributions.
    offset_type: ScalarType,
}

parameters! {
    Contributions as s => ContributionsArguments, ContributionsParameters {
        parts: Output = s.grad,
        grad: Input = s.grad,
        bag_of: Input = s.bag_of,
        bag_size: Input = s.bag_size,
        per_sample_weights: Option<Input> = s.weighted.then_some(s.grad),
        n: Index = s.offset_type,
        width: Index = s.offset_type,
    }
}

impl KernelSpec for Contributions {
    fn name(&self) -> &'static str {
        "embedding_bag_parts"
    }

    fn write<'b>(&self, b: &'b Builder, p: ContributionsParameters<'b>) {
        let offset_type = self.offset_type;
        let thread = linear_id(b, offset_type);
        let i = thread / p.width;
        b.if_(i.lt(p.n), || {
            let bag = p.bag_of.load(i);
            let value = b.var(b.float(self.grad.compute(), 0.0));
            b.if_(bag.ge(0), || {
                let mut x = p.grad.load(bag.cast(offset_type) * p.width + (thread - i * p.width));
                if self.mean {
                    x = x / p.bag_size.load(bag.cast(offset_type)).cast(x.scalar());
                }
                value.set(p.per_sample_weights.map_or(x, |each| x * each.load(i)));
            });
            p.parts.store(thread, value.get());
        });
    }
}

/// Adds every element of the gradient to the row of its maximum.
pub fn of_maxima(cx: &Context, grad: &View, size: &View, largest: &View, out: &View) -> Result<()> {
    let n = grad.numel();
    let (rows, width) = (out.sizes[0], out.sizes[1]);
    let none = keyed_reduction::invalid_key(cx.name, &[rows, width])?;
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
        &KeyedContributions {
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

/// Writes the table index of each maximum.
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
        /// The key of elements without a maximum.
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

/// Writes the gradient of each index's weight: the product of its row of `weight` (`[rows, width]`)
/// and the gradient of its bag (`grad`, `[bags, width]`). Indices and the bag of each, `[n]`;
/// `padding` is the row that is skipped. All are contiguous; `out` is `[n]`, not empty, in the
/// dtype of `grad` and `weight`.
pub fn per_sample_weights(
    cx: &Context,
    grad: &View,
    weight: &View,
    indices: &View,
    bag_of: &View,
    padding: i64,
    out: &View,
) -> Result<()> {
    let n = indices.numel();
    let far = weight.numel().max(grad.numel()).max(n * grad.sizes[1]);
    let (rows, _) = Rows::of_contiguous(index_type(far), weight.sizes[1]);
    let spec = Products { grad: grad.dtype, indices: indices.dtype, bag_of: bag_of.dtype, rows };
    let extent = Extent { rows: n, n: weight.sizes[1], inner: 1 };
    let table = weight.sizes[0];
    let arguments = ProductsArguments { out, grad, weight, indices, bag_of, table, padding, extent };
    cx.run(&spec, &arguments, rows.groups(&extent))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Products {
    /// The dtype of the gradient, the table and the result.
    grad: DType,
    indices: DType,
    bag_of: DType,
    rows: Rows,
}

parameters! {
    Products as s => ProductsArguments, ProductsParameters {
        out: Output = s.grad,
        grad: Input = s.grad,
        weight: Input = s.grad,
        indices: Input = s.indices,
        bag_of: Input = s.bag_of,
        /// Number of the table's rows.
        table: I64,
        /// Index of the row that is skipped.
        padding: I64,
        extent: RowExtent = s.rows.index,
    }
}

impl KernelSpec for Products {
    fn name(&self) -> &'static str {
        "per_sample_weights_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: ProductsParameters<'b>) {
        let share = RowPart::of(b, &self.rows, p.extent, self.grad, 1);
        let index = self.rows.index;
        let row = p.indices.load(share.position.row).cast(ScalarType::I64);
        let bag = p.bag_of.load(share.position.row).cast(ScalarType::I64);
        let counts = row.ge(0) & row.lt(p.table) & row.ne(p.padding) & bag.ge(0);
        let sum = b.var(b.float(accumulator(self.grad).compute(), 0.0));
        b.if_(counts, || {
            let [row, bag]: [Value; 2] = [row, bag].map(|r| r.cast(index) * share.n);
            b.for_(share.lane, share.n, share.lanes, |k| {
                sum.set(sum.get() + p.grad.load(bag + k) * p.weight.load(row + k));
            });
        });
        let total = share.sum(sum.get());
        b.if_(share.position.valid & share.position.lane.eq(0), || p.out.store(share.position.row, total));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (grad, index, offset_type) in
            [(DType::F16, DType::I32, ScalarType::U32), (DType::F64, DType::I64, ScalarType::U64)]
        {
            for (mean, weighted) in [(false, true), (true, false), (false, false)] {
                let spec = Contributions { grad, bag_of: index, bag_size: index, mean, weighted, offset_type };
                accepted(&spec.build());
            }
            accepted(&Keys { max_indices: index, bag_size: index }.build());
            let rows = Rows::of_contiguous(offset_type, 70).0;
            accepted(&Products { grad, indices: index, bag_of: index, rows }.build());
        }
    }
}
