//! Norms of all tensors of a list, as gradient clipping needs them: two launches for the whole
//! list.
//!
//! Every workgroup reduces its part of a tensor; then one workgroup for each tensor reduces the
//! results of its parts.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::list_table::{Grid, ListArgument, ListTable, MAX_TENSORS};
use crate::reduction::axes::Axes;
use crate::reduction::norm::{Order, norms};
use crate::view::View;
use crate::view::layout::Layout;
use dml_engine::{AddressRange, parameters};
use dml_environment::FOREACH_SINGLE;
use dml_kernel::dense::{GROUP, folded, write_chunk};
use dml_kernel::{Builder, DType, Value, convert};
use smallvec::SmallVec;

/// Words of a tensor's entry in the table: number of elements, address in elements, and index in
/// the list.
const WORDS: usize = 3;

/// Writes the norms of tensors of one dtype: `out` is a contiguous row with an element for each of
/// them, of the dtype that they are computed for. Dense tensors go in two launches together.
pub fn list_norms(cx: &Context, p: f64, list: &[&View], out: &View) -> Result<()> {
    let order = Order::of(p);
    let at_once = order != Order::General && FOREACH_SINGLE.get().is_none();
    let mut together = Vec::with_capacity(list.len());
    for (index, &t) in list.iter().enumerate() {
        if at_once && t.numel() > 0 && Layout::new(&[t]).is_dense(0) {
            together.push((t, index));
        } else {
            norms(cx, p, t, &out.as_strided(&[], &[], index as i64), Axes::all(false))?;
        }
    }
    together.chunks(MAX_TENSORS).try_for_each(|part| launch(cx, order, part, out))
}

/// Of dense tensors of one dtype, each with the index of its norm.
fn launch(cx: &Context, order: Order, list: &[(&View, usize)], out: &View) -> Result<()> {
    let dtype = list[0].0.dtype;
    let bytes = dtype.bytes();
    let lanes = if list.iter().all(|(t, _)| t.data.is_multiple_of(16)) { 16 / bytes as u32 } else { 1 };
    let mut entries: Vec<u64> = Vec::with_capacity(WORDS * list.len());
    let mut reads: SmallVec<[AddressRange; 64]> = SmallVec::with_capacity(list.len());
    for (t, index) in list {
        entries.extend([t.numel() as u64, t.data / bytes, *index as u64]);
        reads.push(t.range());
    }
    let Grid { first_workgroups, groups, rounds } = Grid::new(entries.iter().step_by(WORDS).copied(), lanes);
    let partial = cx.empty(accumulator(out.dtype), &[groups as i64])?;
    let (first_workgroups, entries, rounds) = (&first_workgroups[..], &entries[..], rounds as u32);
    let parts = PartialNorms { order, dtype, result: out.dtype, lanes };
    let lists = ListArgument { first_workgroups, entries, rounds, reads: &reads, writes: &[] };
    cx.run(&parts, &PartsArguments { lists, partial: &partial }, folded(groups))?;
    let join = CombineNorms { order, result: out.dtype };
    let lists = ListArgument { first_workgroups, entries, rounds, reads: &[], writes: &[] };
    cx.run(&join, &JoinArguments { lists, partial: &partial, out }, [list.len() as u32, 1, 1])
}

/// Reduces the workgroup's part of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PartialNorms {
    order: Order,
    dtype: DType,
    /// The dtype of the norms.
    result: DType,
    /// Elements of one access (vector width).
    lanes: u32,
}

parameters! {
    PartialNorms as s => PartsArguments, PartsParameters {
        lists: ListTable,
        partial: Output = accumulator(s.result),
    }
}

impl KernelSpec for PartialNorms {
    fn name(&self) -> &'static str {
        "norms of parts"
    }

    fn write<'b>(&self, b: &'b Builder, p: PartsParameters<'b>) {
        let (scalar, lists) = (accumulator(self.result).compute(), p.lists);
        lists.part(self.lanes, WORDS as u32, |part| {
            let x = lists.part_of(&part, 0, self.dtype);
            let lone = lists.numel(&part).eq(1);
            let sum = b.var(self.order.identity(b, scalar));
            b.for_(0, lists.rounds, 1, |round| {
                let chunk = round * GROUP + b.local_id(0);
                write_chunk(b, chunk, part.n, self.lanes, &[], &[(x, false)], &|v| {
                    let x = if self.result == self.dtype { v[0] } else { convert(v[0], self.result) };
                    let x = x.cast(scalar);
                    let term = self.order.of_lone(lone, x.abs(), self.order.term(x, x));
                    sum.set(self.order.join(sum.get(), term));
                    Vec::new()
                });
            });
            let group = b.group_id(0) + b.group_id(1) * b.group_count(0);
            let total = joined(b, self.order, sum.get());
            b.if_(b.local_id(0).eq(0), || p.partial.store(group, total));
        });
    }
}

/// Reduces the partial results of each tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CombineNorms {
    order: Order,
    result: DType,
}

parameters! {
    CombineNorms as s => JoinArguments, JoinParameters {
        lists: ListTable,
        partial: Input = accumulator(s.result),
        out: Output = s.result,
    }
}

impl KernelSpec for CombineNorms {
    fn name(&self) -> &'static str {
        "norms"
    }

    fn write<'b>(&self, b: &'b Builder, p: JoinParameters<'b>) {
        let scalar = accumulator(self.result).compute();
        let tensor = b.group_id(0);
        let [first, next] = p.lists.groups_of(tensor);
        let sum = b.var(self.order.identity(b, scalar));
        b.for_(first + b.local_id(0), next, GROUP, |group| {
            sum.set(self.order.join(sum.get(), p.partial.load(group)));
        });
        let total = joined(b, self.order, sum.get());
        b.if_(b.local_id(0).eq(0), || {
            let lone = p.lists.numel_of(tensor, WORDS as u32).eq(1);
            let offset = p.lists.word_of(tensor, WORDS as u32, 1);
            p.out.store(offset, self.order.of_lone(lone, total, self.order.project(total, total)));
        });
    }
}

/// Reduces a value over the workgroup. Every invocation has to call it.
fn joined<'b>(b: &'b Builder, order: Order, value: Value<'b>) -> Value<'b> {
    let shared = b.shared(value.scalar(), 1, GROUP);
    let lane = b.local_id(0);
    shared.store(lane, value);
    let mut half = GROUP / 2;
    while half > 0 {
        b.barrier();
        b.if_(lane.lt(half), || shared.store(lane, order.join(shared.load(lane), shared.load(lane + half))));
        half /= 2;
    }
    b.barrier();
    shared.load(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for order in [Order::Count, Order::One, Order::Two, Order::Largest, Order::Smallest] {
            for (dtype, result, lanes) in [
                (DType::F32, DType::F32, 4),
                (DType::F16, DType::F32, 1),
                (DType::BF16, DType::BF16, 8),
                (DType::F64, DType::F64, 2),
            ] {
                accepted(&PartialNorms { order, dtype, result, lanes }.build());
                accepted(&CombineNorms { order, result }.build());
            }
        }
    }
}
