//! Bags of embeddings: the sum, mean or maximum of some rows of a table, for each bag.
//!
//! A bag is a piece of the list of indices; `offsets` says where bags begin. An invocation has one column of one bag.

use super::arguments::is_index;
use crate::movement::copy::{as_contiguous, cast, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::segments::parts;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::tensor::promote::accumulator;
use crate::{check, operators};
use dml_engine::interface::{I64, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx) {
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    }
}

/// What is made of a bag's rows. The codes are PyTorch's.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Their sum.
    Sum = 0,
    /// Their mean.
    Mean = 1,
    /// The largest element of each column.
    Max = 2,
}

impl Mode {
    /// The mode of a code.
    pub fn of(code: i64) -> Result<Mode> {
        check!((0..=2).contains(&code), Runtime, "embedding_bag: {code} is not a valid mode");
        Ok([Mode::Sum, Mode::Mean, Mode::Max][code as usize])
    }
}

/// Checks that a tensor is a row of indices.
pub fn check_index(t: &Tensor, position: usize, name: &str) -> Result<()> {
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

/// What the kernel of the forward pass is specialised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Forward {
    mode: Mode,
    weight: DType,
    /// Of indices and offsets.
    index: DType,
    weighted: bool,
    /// The bags' earlier indices have been walked.
    further: bool,
    /// Their last ones are.
    ends: bool,
    /// Of offsets into the table.
    wide: ScalarType,
}

parameters! {
    Forward as s => ForwardArguments, ForwardParameters {
        out: Output = s.weight,
        bag_of: Output = s.index,
        bag_size: Output = s.index,
        max_indices: Output = s.index,
        weight: Input = s.weight,
        indices: Input = s.index,
        offsets: Input = s.index,
        per_sample_weights: Option<Input> = s.weighted.then_some(s.weight),
        /// The bags' sizes so far.
        before: Option<Input> = s.further.then_some(s.index),
        fault: Fault,
        /// Of each bag's indices, how many were walked before, and how many are at most.
        part: [U32; 2],
        /// Offsets.
        count: I64,
        /// Indices.
        n: I64,
        /// Rows of the table.
        rows: I64,
        /// The row that does not count.
        padding: I64,
        bags: Index = s.wide,
        /// Columns of the table.
        width: Index = s.wide,
        row_step: Index = s.wide,
        column_step: Index = s.wide,
    }
}

/// Returns the bags' values, the bag of each index (-1 for indices of no bag), the bags' sizes without padding, and the rows of the
/// maxima.
#[allow(clippy::too_many_arguments)]
fn forward(
    call: &mut Call,
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    mode: i64,
    each: Option<&Tensor>,
    last: bool,
    padding: i64,
) -> Result<()> {
    let mode = Mode::of(mode)?;
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
    let (bag_of, mut size) = (call.empty(index, &[n])?, call.empty(index, &[bags])?);
    fill_with(call, &bag_of, Number::Int(-1))?;
    let largest = if mode == Mode::Max {
        call.empty(index, &[bags, width])?
    } else {
        let unused = call.empty(index, &[bags])?;
        fill_with(call, &unused, Number::Int(0))?;
        unused
    };
    // All indices may be one bag's.
    let walks: Vec<[u32; 2]> = parts(call, n.max(1)).collect();
    let mut before = if walks.len() > 1 { call.empty(index, &[bags])? } else { size.clone() };
    for (i, &part) in walks.iter().enumerate().filter(|_| bags > 0) {
        let (further, ends) = (i > 0, i + 1 == walks.len());
        std::mem::swap(&mut size, &mut before);
        let wide = index_type(weight.reach().max(bags * width.max(1)));
        let spec = Forward { mode, weight: weight.dtype, index, weighted: each.is_some(), further, ends, wide };
        let arguments = ForwardArguments {
            out: &out,
            bag_of: &bag_of,
            bag_size: &size,
            before: further.then_some(&before),
            part,
            max_indices: &largest,
            weight,
            indices: &indices,
            offsets: &offsets,
            per_sample_weights: each.as_ref(),
            fault: call.fault_of_index(),
            count: offsets.numel(),
            n,
            rows: weight.sizes[0],
            padding,
            bags,
            width,
            row_step: weight.strides[0],
            column_step: weight.strides[1],
        };
        call.run_threads(&spec, &arguments, (bags * width.max(1)) as u64)?;
    }
    for t in [out, bag_of, size, largest] {
        call.ret(t);
    }
    Ok(())
}

impl KernelSpec for Forward {
    fn name(&self) -> &'static str {
        "embedding_bag"
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let scalar = accumulator(self.weight).compute();
        let thread = linear_id(b, self.wide);
        let columns = p.width.max(1);
        let bag = thread / columns;
        let column = thread - bag * columns;
        b.if_(bag.lt(p.bags), || {
            let own = bag.cast(ScalarType::I64);
            let begin = p.offsets.load(bag).cast(ScalarType::I64);
            let end = b.var(p.n);
            b.if_((own + 1).lt(p.count), || end.set(p.offsets.load(bag + 1).cast(ScalarType::I64)));
            // The first bag begins with the first index; none begins before the one before it, or after the last index.
            let limit = own.eq(0).select(b.int(ScalarType::I64, 0), end.get().min(p.n));
            let good = begin.ge(0) & begin.le(limit) & end.get().le(p.n);
            b.if_(!good, || {
                let wrong = end.get().gt(p.n).select(end.get(), begin);
                p.fault.report(wrong, p.n + 1, 0);
            });
            let first = column.eq(0);
            let result = b.var(b.float(scalar, 0.0));
            let place = b.var(b.int(ScalarType::I64, 0));
            let members = b.var(b.int(ScalarType::I64, 0));
            if let Some(before) = p.before {
                members.set(before.load(bag).cast(ScalarType::I64));
                b.if_(column.lt(p.width), || {
                    result.set(p.out.load(thread));
                    if self.mode == Mode::Max {
                        place.set(p.max_indices.load(thread).cast(ScalarType::I64));
                    }
                });
            }
            let end = good.select(end.get(), begin);
            let [walked, most] = p.part.map(|n| n.cast(ScalarType::I64));
            let begin = (begin + walked).min(end);
            let end = (begin + most).min(end);
            b.for_(begin, end, 1, |i| {
                b.if_(first, || p.bag_of.store(i, own));
                let row = p.indices.load(i).cast(ScalarType::I64);
                let exists = row.ge(0) & row.lt(p.rows);
                b.if_(!exists, || p.fault.report(row, p.rows, 0));
                b.if_(exists & row.ne(p.padding), || {
                    b.if_(column.lt(p.width), || {
                        let x = p.weight.load(row.cast(self.wide) * p.row_step + column * p.column_step);
                        if self.mode == Mode::Max {
                            b.if_(members.get().eq(0) | x.gt(result.get()), || {
                                result.set(x);
                                place.set(row);
                            });
                        } else {
                            let x = p.per_sample_weights.map_or(x, |each| x * each.load(i));
                            result.set(result.get() + x);
                        }
                    });
                    members.set(members.get() + 1);
                });
            });
            b.if_(first, || p.bag_size.store(bag, members.get()));
            b.if_(column.lt(p.width), || {
                let value = match self.mode {
                    Mode::Mean if self.ends => {
                        let members = members.get();
                        result.get() / members.gt(0).select(members, 1).cast(scalar)
                    }
                    _ => result.get(),
                };
                p.out.store(thread, value);
                if self.mode == Mode::Max {
                    p.max_indices.store(thread, place.get());
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (weight, index, wide) in
            [(DType::F16, DType::I32, ScalarType::U32), (DType::F64, DType::I64, ScalarType::U64)]
        {
            for (mode, weighted) in [(Mode::Sum, true), (Mode::Mean, false), (Mode::Max, false)] {
                for (further, ends) in [(false, true), (true, false)] {
                    accepted(&Forward { mode, weight, index, weighted, further, ends, wide }.build());
                }
            }
        }
    }
}
