//! The gradients of bags of embeddings: of the table, and of the weights of the indices.

use super::embedding::accumulate_rows;
use super::embedding_bag::{Mode, check_index};
use crate::movement::copy::{as_contiguous, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::primitives::rows::{Extent, RowExtent, Rows, Share};
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::{check, operators};
use dml_engine::interface::{I64, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};

operators! {
    backward(
        grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse = false,
        per_sample_weights, padding_idx
    ) {
        "aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
        "aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    }
    per_sample_weights_backward(grad, weight, indices, offset2bag, mode, padding_idx) {
        "aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
    }
}

#[allow(clippy::too_many_arguments)]
fn backward(
    call: &mut Call,
    grad: &Tensor,
    indices: &Tensor,
    bag_of: &Tensor,
    size: &Tensor,
    largest: &Tensor,
    rows: i64,
    by_frequency: bool,
    mode: i64,
    sparse: bool,
    each: Option<&Tensor>,
    padding: i64,
) -> Result<()> {
    if sparse {
        return Err(Error::Fallback(format!("{}: a sparse gradient", call.name)));
    }
    let mode = Mode::of(mode)?;
    check_index(indices, 2, "indices")?;
    check!(grad.dim() == 2 && grad.dtype.is_float(), Runtime, "embedding_bag: a gradient of {}", grad.describe());
    let (bags, width) = (grad.sizes[0], grad.sizes[1]);
    check!(
        size.numel() == bags
            && (mode == Mode::Max && largest.sizes == grad.sizes
                || mode != Mode::Max && bag_of.numel() == indices.numel()),
        Runtime,
        "embedding_bag: a gradient of {} does not belong to bags {}, {}, {}",
        grad.describe(),
        bag_of.describe(),
        size.describe(),
        largest.describe()
    );
    let out = call.empty(grad.dtype, &[rows, width])?;
    fill_with(call, &out, Number::Int(0))?;
    if mode == Mode::Max {
        of_maxima(call, grad, size, largest, &out)?;
    } else if indices.numel() > 0 && width > 0 {
        let parts = contributions(call, mode, grad, bag_of, size, each)?;
        accumulate_rows(call, &parts, indices, &out, padding, by_frequency)?;
    }
    call.ret(out);
    Ok(())
}

/// What each index contributes: `[indices, width]`.
fn contributions(
    call: &Call,
    mode: Mode,
    grad: &Tensor,
    bag_of: &Tensor,
    size: &Tensor,
    each: Option<&Tensor>,
) -> Result<Tensor> {
    let (n, width) = (bag_of.numel(), grad.sizes[1]);
    let parts = call.empty(grad.dtype, &[n, width])?;
    let dense = |t: &Tensor| as_contiguous(call, t);
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
    call.run_threads(&spec, &arguments, (n * width) as u64)?;
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
fn of_maxima(call: &Call, grad: &Tensor, size: &Tensor, largest: &Tensor, out: &Tensor) -> Result<()> {
    let n = grad.numel();
    let (rows, width) = (out.sizes[0], out.sizes[1]);
    let none = keyed_reduction::no_key(call.name, &[rows, width])?;
    if n == 0 {
        return Ok(());
    }
    check!(n < i64::from(i32::MAX), NotImplemented, "{}: {n} contributions are more than dml can sort", call.name);
    let (grad, size, largest) = (as_contiguous(call, grad)?, as_contiguous(call, size)?, as_contiguous(call, largest)?);
    let keys = call.empty(DType::U32, &[n])?;
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
    call.run_threads(&spec, &arguments, n as u64)?;
    let sizes = [rows, width];
    keyed_reduction::run(
        call,
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

/// Of each index, the product of its row and its bag's gradient.
fn per_sample_weights_backward(
    call: &mut Call,
    grad: &Tensor,
    weight: &Tensor,
    indices: &Tensor,
    bag_of: &Tensor,
    mode: i64,
    padding: i64,
) -> Result<()> {
    check!(
        Mode::of(mode)? == Mode::Sum,
        Runtime,
        "embedding_bag_backward: per_sample_weights only supported for mode='sum'"
    );
    check_index(indices, 2, "indices")?;
    check!(
        grad.dim() == 2
            && weight.dim() == 2
            && grad.sizes[1] == weight.sizes[1]
            && grad.dtype == weight.dtype
            && grad.dtype.is_float()
            && bag_of.numel() == indices.numel(),
        Runtime,
        "embedding_bag: a gradient of {} does not belong to weight {} and indices {}",
        grad.describe(),
        weight.describe(),
        bag_of.describe()
    );
    let n = indices.numel();
    let out = call.empty(grad.dtype, &[n])?;
    if n > 0 {
        let dense = |t: &Tensor| as_contiguous(call, t);
        let (grad, weight, indices, bag_of) = (dense(grad)?, dense(weight)?, dense(indices)?, dense(bag_of)?);
        let far = weight.numel().max(grad.numel()).max(n * grad.sizes[1]);
        let wide = index_type(far);
        let (rows, _) = Rows::of_neighbours(wide, weight.sizes[1]);
        let spec = Products { grad: grad.dtype, indices: indices.dtype, bag_of: bag_of.dtype, rows };
        let extent = Extent { rows: n, n: weight.sizes[1], inner: 1 };
        let arguments = ProductsArguments {
            out: &out,
            grad: &grad,
            weight: &weight,
            indices: &indices,
            bag_of: &bag_of,
            table: weight.sizes[0],
            padding,
            extent,
        };
        call.run(&spec, &arguments, rows.groups(&extent))?;
    }
    call.ret(out);
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Products {
    /// Of the gradient, the table and the result.
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
