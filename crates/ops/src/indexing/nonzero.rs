//! Elements that are not zero: where they are, and moving the elements under a mask.
//!
//! Each workgroup counts its block of elements, the counts are summed up, and each workgroup writes what it found from
//! its sum on. The number of results is read back: it is a size.

use crate::movement::copy::{apart, as_contiguous, device_copy, fill_with};
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::pointwise::kernel;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::tensor::layout::{Layout, LayoutParams, LayoutSpec, Walked};
use crate::tensor::{Dims, Tensor, overlap};
use crate::{check, operators};
use dml_engine::interface::{I64, ReadRange, U32, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::{GROUP, linear_id};
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};
use smallvec::{SmallVec, smallvec};

operators! {
    nonzero(self, out) {
        "aten::nonzero(Tensor self) -> Tensor",
        "aten::nonzero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    }
    nonzero_static(self, size, fill_value, out) {
        "aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
        "aten::nonzero_static.out(Tensor self, *, SymInt size, int fill_value=-1, Tensor(a!) out) -> Tensor(a!)",
    }
    masked_select(self, mask, out) {
        "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
        "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)",
    }
    masked_scatter(self, mask, source) {
        "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    }
}

/// Neighbouring elements of one invocation.
const EACH: u32 = 8;

/// The elements of a mask, counted block by block.
struct Count<'t> {
    mask: &'t Tensor,
    blocks: u64,
    /// How many are set before each block, and in all.
    before: Tensor,
}

impl<'t> Count<'t> {
    fn new(call: &Call, mask: &'t Tensor) -> Result<Count<'t>> {
        let n = mask.numel();
        check!(n < i64::from(i32::MAX), NotImplemented, "{}: a mask of {n} elements is too large for dml", call.name);
        let blocks = (n as u64).div_ceil(u64::from(GROUP * EACH));
        let before = call.empty(DType::U32, &[blocks as i64 + 1])?;
        let layout = Layout::row_major(&mask.sizes, &[&mask.strides]);
        let spec = CountSpec { mask: mask.dtype, only: blocks == 1, layout: layout.spec() };
        let arguments = CountArguments { before: &before, mask, n: n as u32, layout: &layout };
        call.run_threads(&spec, &arguments, blocks * u64::from(GROUP))?;
        if blocks > 1 {
            prefix_sum::exclusive(call, &before, blocks as i64)?;
        }
        Ok(Count { mask, blocks, before })
    }

    /// Waits for the number of elements that are set.
    fn total(&self, call: &Call) -> Result<i64> {
        let mut bytes = [0u8; 4];
        call.device.download(self.before.data + 4 * self.blocks, &mut bytes)?;
        Ok(i64::from(u32::from_le_bytes(bytes)))
    }

    /// Visits the elements that are set, the first `limit` of them.
    fn visit(&self, call: &Call, visit: Visit, limit: i64) -> Result<()> {
        let (kind, written, read) = match visit {
            Visit::Coordinates { out } => (Kind::Coordinates, out, None),
            Visit::Select { from, row } => (Kind::Select, row, Some(from)),
            Visit::Scatter { row, to } => (Kind::Scatter, to, Some(row)),
        };
        let mut strides: SmallVec<[&[i64]; 2]> = smallvec![self.mask.strides.as_slice()];
        match visit {
            Visit::Coordinates { .. } => {}
            Visit::Select { from: walked, .. } | Visit::Scatter { to: walked, .. } => strides.push(&walked.strides),
        }
        let layout = if kind == Kind::Coordinates {
            // Each dimension is a column of the result: none may be merged.
            let reverse = |d: &[i64]| d.iter().rev().copied().collect::<Dims>();
            let index = Layout::row_major(&self.mask.sizes, &strides).index;
            Layout { sizes: reverse(&self.mask.sizes), strides: smallvec![reverse(&self.mask.strides)], index }
        } else {
            Layout::row_major(&self.mask.sizes, &strides)
        };
        let moved = written.dtype.bits();
        let spec = VisitSpec { kind, mask: self.mask.dtype, moved, layout: layout.spec() };
        let arguments = VisitArguments {
            written: written.range(),
            read: read.map(Tensor::range),
            steps: (kind == Kind::Coordinates).then(|| [written.strides[0], written.strides[1]]),
            mask: self.mask,
            before: &self.before,
            n: self.mask.numel() as u32,
            limit: limit.min(i64::from(u32::MAX)) as u32,
            layout: &layout,
        };
        call.run_threads(&spec, &arguments, self.blocks * u64::from(GROUP))
    }
}

/// What is done with the elements that are set; the `r`-th of them in row-major order.
#[derive(Copy, Clone)]
enum Visit<'t> {
    /// Its coordinates are row `r` of the result (int64).
    Coordinates { out: &'t Tensor },
    /// The element of `from`, of the mask's sizes, goes to place `r` of a row.
    Select { from: &'t Tensor, row: &'t Tensor },
    /// The element of `to`, of the mask's sizes, gets element `r` of a row.
    Scatter { row: &'t Tensor, to: &'t Tensor },
}

/// A [`Visit`] without its tensors.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Coordinates,
    Select,
    Scatter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountSpec {
    mask: DType,
    /// There is one block: the sums are known at once.
    only: bool,
    layout: LayoutSpec,
}

parameters! {
    CountSpec as s => CountArguments, CountParameters {
        before: Output = DType::U32,
        mask: Input = s.mask,
        n: U32,
        layout: Walked = s.layout,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VisitSpec {
    kind: Kind,
    mask: DType,
    moved: DType,
    /// Of the mask, and of the tensor of its sizes.
    layout: LayoutSpec,
}

parameters! {
    VisitSpec as s => VisitArguments, VisitParameters {
        written: WriteRange = s.moved,
        read: Option<ReadRange> = (s.kind != Kind::Coordinates).then_some(s.moved),
        /// Strides of the coordinates.
        steps: Option<[I64; 2]> = (s.kind == Kind::Coordinates).then_some(()),
        mask: Input = s.mask,
        before: Input = DType::U32,
        n: U32,
        limit: U32,
        layout: Walked = s.layout,
    }
}

/// This invocation's elements: loads their flags, given the position and the offsets of each.
fn flags<'b>(
    b: &'b Builder,
    mask: Pointer<'b>,
    params: &LayoutParams<'b>,
    n: Value<'b>,
    index: Scalar,
) -> Vec<(Value<'b>, Value<'b>, Vec<Value<'b>>)> {
    let first = linear_id(b, Scalar::U32) * EACH;
    (0..EACH)
        .map(|k| {
            let i = first + k;
            let offsets = params.offsets(b, i.cast(index));
            let flag = b.var(b.u32(0));
            b.if_(i.lt(n), || flag.set(mask.load(offsets[0]).cast(Scalar::Bool).cast(Scalar::U32)));
            (i, flag.get(), offsets)
        })
        .collect()
}

fn block_of(b: &Builder) -> Value<'_> {
    b.group_id(0) + b.group_id(1) * b.group_count(0)
}

impl KernelSpec for CountSpec {
    fn name(&self) -> &'static str {
        "mask_count"
    }

    fn write<'b>(&self, b: &'b Builder, p: CountParameters<'b>) {
        let sum = flags(b, p.mask, &p.layout, p.n, self.layout.index)
            .into_iter()
            .fold(b.u32(0), |sum, (_, flag, _)| sum + flag);
        let (_, total) = prefix_sum::workgroup(b, prefix_sum::scratch(b, Scalar::U32), sum);
        let block = block_of(b);
        b.if_(b.local_id(0).eq(0) & (block * (GROUP * EACH)).lt(p.n), || {
            if self.only {
                p.before.store(0, 0);
                p.before.store(1, total);
            } else {
                p.before.store(block, total);
            }
        });
    }
}

impl KernelSpec for VisitSpec {
    fn name(&self) -> &'static str {
        "mask_visit"
    }

    fn write<'b>(&self, b: &'b Builder, p: VisitParameters<'b>) {
        let (index, rank) = (self.layout.index, self.layout.rank as usize);
        let elements = flags(b, p.mask, &p.layout, p.n, index);
        let sum = elements.iter().fold(b.u32(0), |sum, (_, flag, _)| sum + *flag);
        let (inclusive, _) = prefix_sum::workgroup(b, prefix_sum::scratch(b, Scalar::U32), sum);
        let block = block_of(b);
        b.if_((block * (GROUP * EACH)).lt(p.n), || {
            let mut r = p.before.load(block) + inclusive - sum;
            for (i, flag, offsets) in &elements {
                b.if_(flag.ne(0) & r.lt(p.limit), || {
                    let place = r.cast(index);
                    match (self.kind, p.read, p.steps) {
                        (Kind::Select, Some(from), _) => p.written.store(place, from.load(offsets[1])),
                        (Kind::Scatter, Some(row), _) => p.written.store(offsets[1], row.load(place)),
                        (_, _, Some([row_step, column_step])) => {
                            let mut rest = i.cast(index);
                            let row = r.cast(Scalar::I64) * row_step;
                            for d in 0..rank {
                                let quotient = rest / p.layout.size(d);
                                let column = row + column_step * (rank - 1 - d) as i64;
                                p.written.store(column, rest - quotient * p.layout.size(d));
                                rest = quotient;
                            }
                        }
                        _ => {}
                    }
                });
                r = r + *flag;
            }
        });
    }
}

/// The coordinates of all elements that are not zero, `[count, rank]`, in row-major order. Waits for the count.
pub fn coordinates(call: &Call, mask: &Tensor) -> Result<Tensor> {
    if mask.numel() == 0 {
        return call.empty(DType::I64, &[0, mask.dim() as i64]);
    }
    let count = Count::new(call, mask)?;
    let total = count.total(call)?;
    let out = call.empty(DType::I64, &[total, mask.dim() as i64])?;
    write_coordinates(call, &count, &out)?;
    Ok(out)
}

fn write_coordinates(call: &Call, count: &Count, out: &Tensor) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    count.visit(call, Visit::Coordinates { out }, out.sizes[0])
}

fn nonzero(call: &mut Call, t: &Tensor, out: Out) -> Result<()> {
    let out = out.given();
    if let Some(out) = out {
        let given = out.dtype;
        check!(
            given == DType::I64,
            Runtime,
            "nonzero: Expected out tensor to have scalar type Long but got scalar type {given}"
        );
    }
    let result = if out.is_none() || t.numel() == 0 {
        let found = coordinates(call, t)?;
        if out.is_some() { call.result(out, DType::I64, &found.sizes)? } else { found }
    } else {
        let count = Count::new(call, t)?;
        let result = call.result(out, DType::I64, &[count.total(call)?, t.dim() as i64])?;
        write_coordinates(call, &count, &result)?;
        result
    };
    call.ret(result);
    Ok(())
}

/// The first `size`, and `fill` in what is left. Waits for nothing.
fn nonzero_static(call: &mut Call, t: &Tensor, size: i64, fill: Number, out: Out) -> Result<()> {
    check!(size >= 0, Runtime, "nonzero_static: 'size' must be an non-negative integer");
    let out = call.result(out.given(), DType::I64, &[size, t.dim() as i64])?;
    fill_with(call, &out, fill)?;
    if t.numel() > 0 {
        let count = Count::new(call, t)?;
        write_coordinates(call, &count, &out)?;
    }
    call.ret(out);
    Ok(())
}

fn masked_select(call: &mut Call, t: &Tensor, mask: &Tensor, out: Out) -> Result<()> {
    let out = out.given();
    check!(mask.dtype == DType::Bool, Runtime, "masked_select: expected BoolTensor for mask");
    if let Some(out) = out {
        let given = out.dtype;
        check!(given == t.dtype, Runtime, "masked_select(): self and result must have the same scalar type");
    }
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    let (t, mask) = (t.expand(&sizes), mask.expand(&sizes));
    if mask.numel() == 0 {
        let out = call.result(out, t.dtype, &[0])?;
        call.ret(out);
        return Ok(());
    }
    let count = Count::new(call, &mask)?;
    let total = count.total(call)?;
    let out = call.result(out, t.dtype, &[total])?;
    overlap::check_none(&out, &[&t, &mask])?;
    if total > 0 {
        let row = if out.is_contiguous() { out.clone() } else { call.empty(t.dtype, &[total])? };
        count.visit(call, Visit::Select { from: &t, row: &row }, total)?;
        if row.data != out.data {
            device_copy(call, &row, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn masked_scatter(call: &mut Call, t: &Tensor, mask: &Tensor, source: &Tensor) -> Result<()> {
    check!(
        t.dtype == source.dtype,
        Runtime,
        "masked_scatter: expected self and source to have same dtypes but got {} and {}",
        t.dtype,
        source.dtype
    );
    check!(
        mask.dtype == DType::Bool,
        Runtime,
        "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype
    );
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    check!(
        sizes == t.sizes,
        Runtime,
        "output with shape {:?} doesn't match the broadcast shape {:?}",
        t.sizes.as_slice(),
        sizes.as_slice()
    );
    overlap::check_internal(t)?;
    if t.numel() > 0 {
        let mask = apart(call, t, &mask.expand(&sizes))?;
        let source = apart(call, t, &as_contiguous(call, source)?)?;
        let count = Count::new(call, &mask)?;
        if source.numel() < mask.numel() {
            let total = count.total(call)?;
            check!(
                total <= source.numel(),
                Runtime,
                "Number of elements of source < number of ones in mask ({} < {total})",
                source.numel()
            );
        }
        count.visit(call, Visit::Scatter { row: &source, to: t }, source.numel())?;
    }
    call.ret(t.clone());
    Ok(())
}

/// A number under a mask that broadcasts to `t`: no count is needed.
pub fn fill_under_mask(call: &Call, t: &Tensor, mask: Tensor, value: kernel::Input) -> Result<()> {
    let inputs = [kernel::Input::Tensor(t.clone()), kernel::Input::Tensor(mask), value];
    kernel::run(call, "masked_fill", 0, &[t], &inputs, t.dtype, |_, v| vec![v[1].ne(0).select(v[2], v[0])])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::Bool, Scalar::U32), (DType::F16, Scalar::U64), (DType::F64, Scalar::U32)] {
            let layout = |rank, operands| LayoutSpec { rank, operands, index };
            accepted(&CountSpec { mask: dtype, only: dtype == DType::Bool, layout: layout(2, 1) }.build());
            for (kind, mask, moved, layout) in [
                (Kind::Coordinates, dtype, DType::I64.bits(), layout(3, 1)),
                (Kind::Select, DType::Bool, dtype.bits(), layout(0, 2)),
                (Kind::Scatter, DType::Bool, dtype.bits(), layout(1, 2)),
            ] {
                accepted(&VisitSpec { kind, mask, moved, layout }.build());
            }
        }
    }
}
