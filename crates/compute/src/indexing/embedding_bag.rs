//! Bags of embeddings: the sum, mean or maximum of some rows of a table, for each bag.
//!
//! A bag is a range of the list of indices; `offsets` has the start of each bag. One invocation for
//! each column of each bag.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::segments::parts;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{I64, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The reduction of a bag's rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Their sum.
    Sum = 0,
    /// Their mean.
    Mean = 1,
    /// The largest element of each column.
    Max = 2,
}

/// A table and the indices of its rows in bags. Indices and offsets have one dtype, int32 or int64.
pub struct Bags<'t> {
    /// The table, `[rows, width]`, floats of any strides.
    pub weight: &'t View,
    /// The row indices of all bags, `[n]`, contiguous.
    pub indices: &'t View,
    /// The start of each bag in the list of indices, contiguous; may end with the end of the last
    /// bag.
    pub offsets: &'t View,
    /// A factor for each index, `[n]`, contiguous, in the table's dtype.
    pub per_sample_weights: Option<&'t View>,
    /// Index of the row that is skipped.
    pub padding: i64,
}

/// The results of bags. All except `out` have the dtype of the indices.
pub struct BagResults<'t> {
    /// `[bags, width]`, contiguous, in the table's dtype.
    pub out: &'t View,
    /// The bag of each index, `[n]`.
    pub bag_of: &'t View,
    /// The row of each maximum, `[bags, width]`; written only by [`Mode::Max`].
    pub max_indices: &'t View,
}

/// Computes bags. Returns the sizes of bags without padding, for which `size` (`[bags]`) may be
/// used: a long list of indices is processed in several launches, which write two tensors of sizes
/// alternately.
pub fn bags(cx: &Context, mode: Mode, bags: &Bags, results: &BagResults, mut size: View) -> Result<View> {
    let Bags { weight, indices, offsets, per_sample_weights, padding } = *bags;
    let BagResults { out, bag_of, max_indices } = *results;
    let (index, bags, width, n) = (indices.dtype, out.sizes[0], weight.sizes[1], indices.numel());
    // A single bag may have all indices.
    let ranges: Vec<[u32; 2]> = parts(cx, n.max(1)).collect();
    let mut before = if ranges.len() > 1 { cx.empty(index, &[bags])? } else { size.clone() };
    for (i, &part) in ranges.iter().enumerate().filter(|_| bags > 0) {
        let (continues, ends) = (i > 0, i + 1 == ranges.len());
        std::mem::swap(&mut size, &mut before);
        let offset_type = index_type(weight.reach().max(bags * width.max(1)));
        let weighted = per_sample_weights.is_some();
        let spec = Forward { mode, weight: weight.dtype, index, weighted, continues, ends, offset_type };
        let arguments = ForwardArguments {
            out,
            bag_of,
            bag_size: &size,
            before: continues.then_some(&before),
            part,
            max_indices,
            weight,
            indices,
            offsets,
            per_sample_weights,
            fault: cx.fault_of_index(),
            count: offsets.numel(),
            n,
            rows: weight.sizes[0],
            padding,
            bags,
            width,
            row_step: weight.strides[0],
            column_step: weight.strides[1],
        };
        cx.run_threads(&spec, &arguments, (bags * width.max(1)) as u64)?;
    }
    Ok(size)
}

/// Specialisation of the forward kernel: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Forward {
    mode: Mode,
    weight: DType,
    /// The dtype of indices and offsets.
    index: DType,
    weighted: bool,
    /// The launch continues earlier launches over the bags' indices.
    continues: bool,
    /// The last launch over the bags' indices.
    ends: bool,
    /// Integer type of offsets into the table.
    offset_type: ScalarType,
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
        before: Option<Input> = s.continues.then_some(s.index),
        fault: Fault,
        /// Of each bag's indices, the number processed by earlier launches, and the maximum for
        /// this one.
        part: [U32; 2],
        /// Number of offsets.
        count: I64,
        /// Number of indices.
        n: I64,
        /// Number of the table's rows.
        rows: I64,
        /// Index of the row that is skipped.
        padding: I64,
        bags: Index = s.offset_type,
        /// Columns of the table.
        width: Index = s.offset_type,
        row_step: Index = s.offset_type,
        column_step: Index = s.offset_type,
    }
}

impl KernelSpec for Forward {
    fn name(&self) -> &'static str {
        "embedding_bag"
    }

    fn write<'b>(&self, b: &'b Builder, p: ForwardParameters<'b>) {
        let scalar = accumulator(self.weight).compute();
        let thread = linear_id(b, self.offset_type);
        let columns = p.width.max(1);
        let bag = thread / columns;
        let column = thread - bag * columns;
        b.if_(bag.lt(p.bags), || {
            let own = bag.cast(ScalarType::I64);
            let begin = p.offsets.load(bag).cast(ScalarType::I64);
            let end = b.var(p.n);
            b.if_((own + 1).lt(p.count), || end.set(p.offsets.load(bag + 1).cast(ScalarType::I64)));
            // The first bag begins with the first index; a bag must not begin before the previous
            // one or after the last index.
            let limit = own.eq(0).select(b.int(ScalarType::I64, 0), end.get().min(p.n));
            let good = begin.ge(0) & begin.le(limit) & end.get().le(p.n);
            b.if_(!good, || {
                let wrong = end.get().gt(p.n).select(end.get(), begin);
                p.fault.report(wrong, p.n + 1, 0);
            });
            let first = column.eq(0);
            let result = b.var(b.float(scalar, 0.0));
            let largest_row = b.var(b.int(ScalarType::I64, 0));
            let members = b.var(b.int(ScalarType::I64, 0));
            if let Some(before) = p.before {
                members.set(before.load(bag).cast(ScalarType::I64));
                b.if_(column.lt(p.width), || {
                    result.set(p.out.load(thread));
                    if self.mode == Mode::Max {
                        largest_row.set(p.max_indices.load(thread).cast(ScalarType::I64));
                    }
                });
            }
            let end = good.select(end.get(), begin);
            let [skipped, most] = p.part.map(|n| n.cast(ScalarType::I64));
            let begin = (begin + skipped).min(end);
            let end = (begin + most).min(end);
            b.for_(begin, end, 1, |i| {
                b.if_(first, || p.bag_of.store(i, own));
                let row = p.indices.load(i).cast(ScalarType::I64);
                let exists = row.ge(0) & row.lt(p.rows);
                b.if_(!exists, || p.fault.report(row, p.rows, 0));
                b.if_(exists & row.ne(p.padding), || {
                    b.if_(column.lt(p.width), || {
                        let x = p.weight.load(row.cast(self.offset_type) * p.row_step + column * p.column_step);
                        if self.mode == Mode::Max {
                            b.if_(members.get().eq(0) | x.gt(result.get()), || {
                                result.set(x);
                                largest_row.set(row);
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
                    p.max_indices.store(thread, largest_row.get());
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
        for (weight, index, offset_type) in
            [(DType::F16, DType::I32, ScalarType::U32), (DType::F64, DType::I64, ScalarType::U64)]
        {
            for (mode, weighted) in [(Mode::Sum, true), (Mode::Mean, false), (Mode::Max, false)] {
                for (continues, ends) in [(false, true), (true, false)] {
                    accepted(&Forward { mode, weight, index, weighted, continues, ends, offset_type }.build());
                }
            }
        }
    }
}
