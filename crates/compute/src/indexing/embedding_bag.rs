//! Bags of embeddings: the sum, mean or maximum of some rows of a table, for each bag.
//!
//! A bag is a piece of the list of indices; `offsets` says where bags begin. An invocation has one
//! column of one bag.

use crate::dtype::accumulator;
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use dml_engine::interface::{I64, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

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

/// What the kernel of the forward pass is specialised by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    pub mode: Mode,
    pub weight: DType,
    /// Of indices and offsets.
    pub index: DType,
    pub weighted: bool,
    /// The bags' earlier indices have been walked.
    pub further: bool,
    /// Their last ones are.
    pub ends: bool,
    /// Of offsets into the table.
    pub wide: ScalarType,
}

parameters! {
    pub Forward as s => ForwardArguments, ForwardParameters {
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
            // The first bag begins with the first index; none begins before the one before it, or
            // after the last index.
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
