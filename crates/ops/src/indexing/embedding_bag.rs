//! Bags of embeddings: the sum, mean or maximum of some rows of a table, for each bag.
//!
//! A bag is a piece of the list of indices; `offsets` says where bags begin. An invocation has one column of one bag.

use crate::check;
use crate::indexing::embedding::accumulate_rows;
use crate::indexing::index::is_index;
use crate::movement::copy::{as_contiguous, cast, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::{Operator, op};
use crate::primitives::keyed_reduction::{self, Accumulation, Combine};
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::rows::{Rows, Share};
use crate::reduction::sum::accumulator_dtype;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_embedding_bag", forward),
    op("aten::_embedding_bag_forward_only", forward),
    op("aten::_embedding_bag_backward", |c| backward(c, 1, Some(9))),
    op("aten::_embedding_bag_dense_backward", |c| backward(c, 0, None)),
    op("aten::_embedding_bag_per_sample_weights_backward", per_sample_weights_backward),
];

/// What is made of a bag's rows. The codes are PyTorch's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Mode {
    Sum = 0,
    Mean = 1,
    Max = 2,
}

impl Mode {
    fn argument(call: &Call, i: usize) -> Result<Mode> {
        let code = call.int(i)?;
        check!((0..=2).contains(&code), Runtime, "embedding_bag: {code} is not a valid mode");
        Ok([Mode::Sum, Mode::Mean, Mode::Max][code as usize])
    }
}

/// Checks that a tensor holds indices.
fn check_index(t: &Tensor, position: usize, name: &str) -> Result<()> {
    check!(
        is_index(t.dtype),
        Runtime,
        "Expected tensor for argument #{position} '{name}' to have one of the following scalar types: Long, Int; but \
         got {} instead (while checking arguments for embedding_bag)",
        t.dtype
    );
    check!(
        t.dim() == 1,
        Runtime,
        "embedding_bag: {name} must be a row, got a tensor of shape {:?}",
        t.sizes.as_slice()
    );
    Ok(())
}

struct Forward {
    mode: Mode,
    weight: DType,
    /// Of indices and offsets.
    index: DType,
    weighted: bool,
    /// Of offsets into the table.
    wide: Scalar,
}

/// `_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
/// padding_idx) -> (output, offset2bag, bag_size, max_indices)`. `offset2bag` is -1 for indices of no bag; `bag_size` is
/// without padding.
fn forward(call: &mut Call) -> Result<()> {
    let (weight, indices, offsets) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let (mode, each, last) = (Mode::argument(call, 4)?, call.opt_tensor(6)?, call.flag(7)?);
    check_index(indices, 1, "indices")?;
    check_index(offsets, 1, "offsets")?;
    check!(weight.dim() == 2, Runtime, "weight has to be a 2D Tensor, but got Tensor of dimension {}", weight.dim());
    check!(
        weight.dtype.is_float(),
        Runtime,
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, \
         Double; but got {} instead (while checking arguments for embedding_bag)",
        weight.dtype
    );
    check!(!last || offsets.numel() > 0, Runtime, "include_last_offset: numBags should be at least 1");
    if let Some(each) = each {
        check!(mode == Mode::Sum, Runtime, "embedding_bag: per_sample_weights only supported with mode='sum'");
        check!(
            each.dtype == weight.dtype && each.dim() == 1 && each.numel() == indices.numel(),
            Runtime,
            "embedding_bag: expected per_sample_weights of {} and as many as indices, {}, but got {}",
            weight.dtype,
            indices.numel(),
            each.describe()
        );
    }
    let index = if indices.dtype == offsets.dtype { indices.dtype } else { DType::I64 };
    let dense = |t: &Tensor| as_contiguous(call, &cast(call, t, index)?);
    let (indices, offsets) = (dense(indices)?, dense(offsets)?);
    let each = each.map(|t| as_contiguous(call, t)).transpose()?;
    let (bags, width, n) = (offsets.numel() - i64::from(last), weight.sizes[1], indices.numel());
    let out = call.empty(weight.dtype, &[bags, width])?;
    let (bag_of, size) = (call.empty(index, &[n])?, call.empty(index, &[bags])?);
    fill_with(call, &bag_of, Number::Int(-1))?;
    let largest = if mode == Mode::Max {
        call.empty(index, &[bags, width])?
    } else {
        let unused = call.empty(index, &[bags])?;
        fill_with(call, &unused, Number::Int(0))?;
        unused
    };
    if bags > 0 {
        let wide = index_type(weight.reach().max(bags * width.max(1)));
        let shape = Forward { mode, weight: weight.dtype, index, weighted: each.is_some(), wide };
        let key = [mode as u32, weight.dtype as u32, index as u32, u32::from(shape.weighted), wide.bytes(), 0];
        let kernel = call.kernel("embedding_bag", key, || build_forward(&shape))?;
        let launcher = call.launch(kernel).write(&out).write(&bag_of).write(&size).write(&largest);
        let mut launcher = launcher.read(weight).read(&indices).read(&offsets);
        if let Some(each) = &each {
            launcher = launcher.read(each);
        }
        let launcher = launcher.fault().u32(fault::operator(call.name));
        let launcher = launcher.i64(offsets.numel()).i64(n).i64(weight.sizes[0]).i64(call.int(8)?);
        let launcher = launcher.index(wide, bags).index(wide, width);
        let launcher = launcher.index(wide, weight.strides[0]).index(wide, weight.strides[1]);
        launcher.threads((bags * width.max(1)) as u64)?;
    }
    for t in [out, bag_of, size, largest] {
        call.ret(t);
    }
    Ok(())
}

fn build_forward(shape: &Forward) -> Kernel {
    let b = Builder::new("embedding_bag", [GROUP, 1, 1]);
    let (out, bag_of) = (b.pointer("out", shape.weight), b.pointer("bag_of", shape.index));
    let (size, largest) = (b.pointer("bag_size", shape.index), b.pointer("max_indices", shape.index));
    let weight = b.pointer("weight", shape.weight);
    let (indices, offsets) = (b.pointer("indices", shape.index), b.pointer("offsets", shape.index));
    let each = shape.weighted.then(|| b.pointer("per_sample_weights", shape.weight));
    let (fault, operator) = (b.pointer("fault", DType::U32), b.param("operator", Scalar::U32));
    let [count, n, rows, padding] = ["offsets", "n", "rows", "padding"].map(|name| b.param(name, Scalar::I64));
    let [bags, width, row_step, column_step] =
        ["bags", "width", "row_step", "column_step"].map(|name| b.param(name, shape.wide));
    let scalar = accumulator_dtype(shape.weight).compute();
    let thread = linear_id(&b, shape.wide);
    let columns = width.max(1);
    let bag = thread / columns;
    let column = thread - bag * columns;
    b.if_(bag.lt(bags), || {
        let own = bag.cast(Scalar::I64);
        let begin = offsets.load(bag).cast(Scalar::I64);
        let end = b.var(n);
        b.if_((own + 1).lt(count), || end.set(offsets.load(bag + 1).cast(Scalar::I64)));
        // The first bag begins with the first index; none begins before the one before it, or after the last index.
        let limit = own.eq(0).select(b.int(Scalar::I64, 0), end.get().min(n));
        let good = begin.ge(0) & begin.le(limit) & end.get().le(n);
        b.if_(!good, || {
            let wrong = end.get().gt(n).select(end.get(), begin);
            fault::report(&b, fault, operator, wrong, n + 1, 0);
        });
        let first = column.eq(0);
        let result = b.var(b.float(scalar, 0.0));
        let place = b.var(b.int(Scalar::I64, 0));
        let members = b.var(b.int(Scalar::I64, 0));
        let end = good.select(end.get(), begin);
        b.for_(begin, end, 1, |i| {
            b.if_(first, || bag_of.store(i, own));
            let row = indices.load(i).cast(Scalar::I64);
            let exists = row.ge(0) & row.lt(rows);
            b.if_(!exists, || fault::report(&b, fault, operator, row, rows, 0));
            b.if_(exists & row.ne(padding), || {
                b.if_(column.lt(width), || {
                    let x = weight.load(row.cast(shape.wide) * row_step + column * column_step);
                    if shape.mode == Mode::Max {
                        b.if_(members.get().eq(0) | x.gt(result.get()), || {
                            result.set(x);
                            place.set(row);
                        });
                    } else {
                        let x = each.map_or(x, |each| x * each.load(i));
                        result.set(result.get() + x);
                    }
                });
                members.set(members.get() + 1);
            });
        });
        b.if_(first, || size.store(bag, members.get()));
        b.if_(column.lt(width), || {
            let value = match shape.mode {
                Mode::Mean => {
                    let members = members.get();
                    result.get() / members.gt(0).select(members, 1).cast(scalar)
                }
                _ => result.get(),
            };
            out.store(thread, value);
            if shape.mode == Mode::Max {
                largest.store(thread, place.get());
            }
        });
    });
    b.finish()
}

/// `_embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights,
/// scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx)`; the dense form is without offsets and sparse
fn backward(call: &mut Call, skipped: usize, sparse: Option<usize>) -> Result<()> {
    if let Some(i) = sparse {
        check!(!call.flag(i)?, NotImplemented, "embedding_bag: sparse gradients are not supported on dml");
    }
    let (grad, indices) = (call.tensor(0)?, call.tensor(1)?);
    let [bag_of, size, largest] = [2, 3, 4].map(|i| call.tensor(i + skipped));
    let (bag_of, size, largest) = (bag_of?, size?, largest?);
    let (rows, by_frequency) = (call.int(5 + skipped)?, call.flag(6 + skipped)?);
    let mode = Mode::argument(call, 7 + skipped)?;
    let after = 8 + skipped + usize::from(sparse.is_some());
    let (each, padding) = (call.opt_tensor(after)?, call.int(after + 1)?);
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
    let mean = mode == Mode::Mean;
    let dtypes = [grad.dtype, bag_of.dtype, size.dtype];
    let key = [
        grad.dtype as u32,
        bag_of.dtype as u32,
        size.dtype as u32,
        u32::from(mean),
        u32::from(each.is_some()),
        wide.bytes(),
    ];
    let kernel = call.kernel("embedding_bag_parts", key, || build_contributions(dtypes, mean, each.is_some(), wide))?;
    let mut launcher = call.launch(kernel).write(&parts).read(&grad).read(&bag_of).read(&size);
    if let Some(each) = &each {
        launcher = launcher.read(each);
    }
    launcher.index(wide, n).index(wide, width).threads((n * width) as u64)?;
    Ok(parts)
}

fn build_contributions(dtypes: [DType; 3], mean: bool, weighted: bool, wide: Scalar) -> Kernel {
    let b = Builder::new("embedding_bag_parts", [GROUP, 1, 1]);
    let (parts, grad) = (b.pointer("parts", dtypes[0]), b.pointer("grad", dtypes[0]));
    let (bag_of, size) = (b.pointer("bag_of", dtypes[1]), b.pointer("bag_size", dtypes[2]));
    let each = weighted.then(|| b.pointer("per_sample_weights", dtypes[0]));
    let (n, width) = (b.param("n", wide), b.param("width", wide));
    let thread = linear_id(&b, wide);
    let i = thread / width;
    b.if_(i.lt(n), || {
        let bag = bag_of.load(i);
        let value = b.var(b.float(dtypes[0].compute(), 0.0));
        b.if_(bag.ge(0), || {
            let mut x = grad.load(bag.cast(wide) * width + (thread - i * width));
            if mean {
                x = x / size.load(bag.cast(wide)).cast(x.scalar());
            }
            value.set(each.map_or(x, |each| x * each.load(i)));
        });
        parts.store(thread, value.get());
    });
    b.finish()
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
    let (index, counts) = (largest.dtype, size.dtype);
    let kernel =
        call.kernel("embedding_bag_keys", [index as u32, counts as u32, 0, 0, 0, 0], || build_keys(index, counts))?;
    let launcher = call.launch(kernel).write(&keys).read(&largest).read(&size);
    launcher.u32(n as u32).u32(width as u32).u32(none).i64(rows).threads(n as u64)?;
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

fn build_keys(index: DType, counts: DType) -> Kernel {
    let b = Builder::new("embedding_bag_keys", [GROUP, 1, 1]);
    let (keys, largest, size) =
        (b.pointer("keys", DType::U32), b.pointer("max_indices", index), b.pointer("bag_size", counts));
    let [n, width, none] = ["n", "width", "none"].map(|name| b.param(name, Scalar::U32));
    let rows = b.param("rows", Scalar::I64);
    let i = linear_id(&b, Scalar::U32);
    b.if_(i.lt(n), || {
        let bag = i / width;
        let row = largest.load(i.cast(Scalar::U64)).cast(Scalar::I64);
        let key = b.var(none);
        b.if_(size.load(bag).gt(0) & row.ge(0) & row.lt(rows), || {
            key.set(row.cast(Scalar::U32) * width + (i - bag * width));
        });
        keys.store(i.cast(Scalar::U64), key.get());
    });
    b.finish()
}

/// `_embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode, padding_idx)`: of each
/// index, the product of its row and its bag's gradient
fn per_sample_weights_backward(call: &mut Call) -> Result<()> {
    let (grad, weight, indices, bag_of) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.tensor(4)?);
    check!(
        Mode::argument(call, 5)? == Mode::Sum,
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
        let dtypes = [grad.dtype, indices.dtype, bag_of.dtype];
        let key = [dtypes[0] as u32, dtypes[1] as u32, dtypes[2] as u32, rows.code(), 0, 0];
        let kernel = call.kernel("per_sample_weights_backward", key, || build_products(dtypes, &rows))?;
        let launcher = call.launch(kernel).write(&out).read(&grad).read(&weight).read(&indices).read(&bag_of);
        let launcher = launcher.i64(weight.sizes[0]).i64(call.int(6)?);
        rows.run(launcher, n, weight.sizes[1], 1)?;
    }
    call.ret(out);
    Ok(())
}

fn build_products(dtypes: [DType; 3], rows: &Rows) -> Kernel {
    let b = Builder::new("per_sample_weights_backward", [GROUP, 1, 1]);
    write_products(&b, dtypes, rows);
    b.finish()
}

fn write_products(b: &Builder, dtypes: [DType; 3], rows: &Rows) {
    let [out, grad, weight] = ["out", "grad", "weight"].map(|name| b.pointer(name, dtypes[0]));
    let (indices, bag_of) = (b.pointer("indices", dtypes[1]), b.pointer("bag_of", dtypes[2]));
    let (table, padding) = (b.param("table", Scalar::I64), b.param("padding", Scalar::I64));
    let share = Share::new(b, rows, dtypes[0], 1);
    let index = rows.index;
    let row = indices.load(share.place.row).cast(Scalar::I64);
    let bag = bag_of.load(share.place.row).cast(Scalar::I64);
    let counts = row.ge(0) & row.lt(table) & row.ne(padding) & bag.ge(0);
    let sum = b.var(b.float(accumulator_dtype(dtypes[0]).compute(), 0.0));
    b.if_(counts, || {
        let [row, bag]: [Value; 2] = [row, bag].map(|r| r.cast(index) * share.n);
        b.for_(share.lane, share.n, share.lanes, |k| {
            sum.set(sum.get() + grad.load(bag + k) * weight.load(row + k));
        });
    });
    let total = share.sum(sum.get());
    b.if_(share.place.valid & share.place.lane.eq(0), || out.store(share.place.row, total));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (weight, index, wide) in [(DType::F16, DType::I32, Scalar::U32), (DType::F64, DType::I64, Scalar::U64)] {
            for (mode, weighted) in [(Mode::Sum, true), (Mode::Mean, false), (Mode::Max, false)] {
                accepted(&build_forward(&Forward { mode, weight, index, weighted, wide }));
                accepted(&build_contributions([weight, index, index], mode == Mode::Mean, weighted, wide));
            }
            accepted(&build_keys(index, index));
            accepted(&build_products([weight, index, index], &Rows::of_neighbours(wide, 70).0));
        }
    }
}
