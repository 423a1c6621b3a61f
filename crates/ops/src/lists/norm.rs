//! Norms of all tensors of a list, as gradients are clipped by: two launches for the whole list.
//!
//! Every workgroup folds its part of a tensor; then one workgroup a tensor joins what its parts gave.

use crate::operator::argument::Tensors;
use crate::operator::call::{Call, Ret, Scalar as Number};
use crate::operator::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::list_table::{Grid, ListTable, Listed, MAX_TENSORS};
use crate::reduction::Axes;
use crate::reduction::norm::{Order, check_norm, norms};
use crate::tensor::Tensor;
use crate::tensor::layout::Layout;
use crate::tensor::promote::accumulator;
use crate::{check, operators};
use dml_engine::{AddressRange, parameters};
use dml_environment::FOREACH_SINGLE;
use dml_kernel::dense::{GROUP, folded, write_chunk};
use dml_kernel::{Builder, DType, Value, convert};
use smallvec::SmallVec;

operators! {
    norm(self, ord, dtype) {
        "aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    }
}

/// Words of a tensor in the table: its elements, its address in elements, and its place in the list.
const WORDS: usize = 3;

/// The results are views of one tensor for each dtype, as on CUDA.
fn norm(call: &mut Call, list: Tensors, order: Number, dtype: Option<DType>) -> Result<()> {
    check!(
        matches!(order, Number::Int(_) | Number::Double(_)),
        Runtime,
        "foreach_tensor_norm_slow expects ord to be integer or float"
    );
    let p = order.to_f64();
    for t in &list {
        check!(
            p != f64::INFINITY || t.numel() > 0,
            Runtime,
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an identity"
        );
        check_norm(t, p, dtype, Axes::all(false))?;
    }
    let order = Order::of(p);
    let at_once = order != Order::General && FOREACH_SINGLE.get().is_none();
    let mut results: Vec<Option<Tensor>> = vec![None; list.len()];
    let mut left: Vec<usize> = (0..list.len()).collect();
    while let Some(&first) = left.first() {
        let of = list[first].dtype;
        let (alike, others): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|&i| list[i].dtype == of);
        left = others;
        let all = call.empty(dtype.unwrap_or(of), &[alike.len() as i64])?;
        let mut together = Vec::with_capacity(alike.len());
        for (place, &i) in alike.iter().enumerate() {
            let result = all.as_strided(&[], &[], place as i64);
            let t = list[i];
            if at_once && t.numel() > 0 && Layout::new(&[t]).is_dense(0) {
                together.push((t, place));
            } else {
                norms(call, p, t, &result, Axes::all(false))?;
            }
            results[i] = Some(call.host.view(&all, &result)?);
        }
        for part in together.chunks(MAX_TENSORS) {
            launch(call, order, part, &all)?;
        }
    }
    call.ret_value(Ret::Tensors(results.into_iter().flatten().collect()));
    Ok(())
}

/// Of dense tensors of one dtype, each with the place of its norm.
fn launch(call: &Call, order: Order, list: &[(&Tensor, usize)], out: &Tensor) -> Result<()> {
    let dtype = list[0].0.dtype;
    let bytes = dtype.bytes();
    let lanes = if list.iter().all(|(t, _)| t.data.is_multiple_of(16)) { 16 / bytes as u32 } else { 1 };
    let mut entries: Vec<u64> = Vec::with_capacity(WORDS * list.len());
    let mut reads: SmallVec<[AddressRange; 64]> = SmallVec::with_capacity(list.len());
    for (t, place) in list {
        entries.extend([t.numel() as u64, t.data / bytes, *place as u64]);
        reads.push(t.range());
    }
    let Grid { firsts, groups, rounds } = Grid::new(entries.iter().step_by(WORDS).copied(), lanes);
    let partial = call.empty(accumulator(out.dtype), &[groups as i64])?;
    let (firsts, entries, rounds) = (&firsts[..], &entries[..], rounds as u32);
    let parts = Parts { order, dtype, result: out.dtype, lanes };
    let lists = Listed { firsts, entries, rounds, reads: &reads, writes: &[] };
    call.run(&parts, &PartsArguments { lists, partial: &partial }, folded(groups))?;
    let join = Join { order, result: out.dtype };
    let lists = Listed { firsts, entries, rounds, reads: &[], writes: &[] };
    call.run(&join, &JoinArguments { lists, partial: &partial, out }, [list.len() as u32, 1, 1])
}

/// Folds the workgroup's part of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parts {
    order: Order,
    dtype: DType,
    /// The dtype of the norms.
    result: DType,
    /// Elements of one access.
    lanes: u32,
}

parameters! {
    Parts as s => PartsArguments, PartsParameters {
        lists: ListTable,
        partial: Output = accumulator(s.result),
    }
}

impl KernelSpec for Parts {
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

/// Joins what the workgroups of each tensor gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Join {
    order: Order,
    result: DType,
}

parameters! {
    Join as s => JoinArguments, JoinParameters {
        lists: ListTable,
        partial: Input = accumulator(s.result),
        out: Output = s.result,
    }
}

impl KernelSpec for Join {
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
            let place = p.lists.word_of(tensor, WORDS as u32, 1);
            p.out.store(place, self.order.of_lone(lone, total, self.order.project(total, total)));
        });
    }
}

/// The fold of a value over the workgroup. Every invocation must come here.
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
                accepted(&Parts { order, dtype, result, lanes }.build());
                accepted(&Join { order, result }.build());
            }
        }
    }
}
