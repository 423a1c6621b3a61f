//! Elements that are not zero: where they are, and moving the elements under a mask.
//!
//! Each workgroup counts its block of elements, the counts are summed up, and each workgroup writes what it found from
//! its sum on. The number of results is read back: it is a size.

use crate::check;
use crate::movement::copy::{as_contiguous, device_copy};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise;
use crate::pointwise::kernel::{self, Input};
use crate::primitives::launch::{GROUP, Launcher, linear_id};
use crate::primitives::prefix_sum;
use crate::tensor::layout::{self, Layout};
use crate::tensor::overlap;
use crate::tensor::{Dims, Tensor};
use dml_kernel::{Builder, DType, Kernel, Scalar, Value};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::nonzero", |c| nonzero(c, None)),
    op("aten::nonzero.out", |c| nonzero(c, Some(1))),
    op("aten::nonzero_static", |c| nonzero_static(c, None)),
    op("aten::nonzero_static.out", |c| nonzero_static(c, Some(3))),
    op("aten::masked_select", |c| masked_select(c, None)),
    op("aten::masked_select.out", |c| masked_select(c, Some(2))),
    op("aten::masked_scatter_", masked_scatter),
];

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
        let (dtype, rank, index) = (mask.dtype, layout.rank(), layout.index);
        let key = [dtype as u32, rank as u32, index.bytes(), u32::from(blocks == 1), 0, 0];
        let kernel = call.kernel("mask_count", key, || build_count(dtype, rank, index, blocks == 1))?;
        let launcher = call.launch(kernel).write(&before).read(mask).u32(n as u32);
        layout.pass(launcher).threads(blocks * u64::from(GROUP))?;
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

    /// Starts the kernel that visits the elements that are set, with an operand that is walked beside the mask.
    fn visit<'c, 'a>(
        &self,
        call: &'c Call<'a>,
        visit: Visit,
        other: Option<&Tensor>,
    ) -> Result<(Launcher<'c, 'a>, Layout)> {
        let mut strides: SmallVec<[&[i64]; 2]> = smallvec![self.mask.strides.as_slice()];
        strides.extend(other.map(|t| t.strides.as_slice()));
        let layout = if visit == Visit::Coordinates {
            // Each dimension is a column of the result: none may be merged.
            let reverse = |d: &[i64]| d.iter().rev().copied().collect::<Dims>();
            let index = Layout::row_major(&self.mask.sizes, &strides).index;
            Layout { sizes: reverse(&self.mask.sizes), strides: smallvec![reverse(&self.mask.strides)], index }
        } else {
            Layout::row_major(&self.mask.sizes, &strides)
        };
        let moved = other.map_or(DType::I64, |t| t.dtype.bits());
        let (dtype, rank, index) = (self.mask.dtype, layout.rank(), layout.index);
        let key = [visit as u32, dtype as u32, moved as u32, rank as u32, index.bytes(), 0];
        let kernel = call.kernel("mask_visit", key, || build_visit(visit, dtype, moved, rank, index))?;
        Ok((call.launch(kernel), layout))
    }

    fn go(&self, launcher: Launcher, layout: &Layout, limit: i64) -> Result<()> {
        let n = self.mask.numel() as u32;
        let launcher = launcher.read(self.mask).read(&self.before).u32(n).u32(limit.min(i64::from(u32::MAX)) as u32);
        layout.pass(launcher).threads(self.blocks * u64::from(GROUP))
    }
}

/// What is done with the elements that are set; the `r`-th of them in row-major order.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Visit {
    /// Its coordinates are row `r` of the result.
    Coordinates,
    /// The other operand's element goes to place `r` of a row.
    Select,
    /// The other operand's element gets element `r` of a row.
    Scatter,
}

/// This invocation's elements: loads their flags, given the position and the offsets of each.
fn flags<'b>(
    b: &'b Builder,
    mask: dml_kernel::Pointer<'b>,
    params: &layout::LayoutParams<'b>,
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

fn build_count(dtype: DType, rank: usize, index: Scalar, only: bool) -> Kernel {
    let b = Builder::new("mask_count", [GROUP, 1, 1]);
    let (before, mask) = (b.pointer("before", DType::U32), b.pointer("mask", dtype));
    let n = b.param("n", Scalar::U32);
    let params = layout::declare(&b, rank, 1, index);
    let sum = flags(&b, mask, &params, n, index).into_iter().fold(b.u32(0), |sum, (_, flag, _)| sum + flag);
    let (_, total) = prefix_sum::workgroup(&b, prefix_sum::scratch(&b, Scalar::U32), sum);
    let block = block_of(&b);
    b.if_(b.local_id(0).eq(0) & (block * (GROUP * EACH)).lt(n), || {
        if only {
            before.store(0, 0);
            before.store(1, total);
        } else {
            before.store(block, total);
        }
    });
    b.finish()
}

fn build_visit(visit: Visit, dtype: DType, moved: DType, rank: usize, index: Scalar) -> Kernel {
    let b = Builder::new("mask_visit", [GROUP, 1, 1]);
    let row = b.pointer("row", moved);
    let other = if visit == Visit::Coordinates { None } else { Some(b.pointer("other", moved)) };
    let step = if visit == Visit::Coordinates { Some([(); 2].map(|()| b.param("step", Scalar::I64))) } else { None };
    let (mask, before) = (b.pointer("mask", dtype), b.pointer("before", DType::U32));
    let (n, limit) = (b.param("n", Scalar::U32), b.param("limit", Scalar::U32));
    let params = layout::declare(&b, rank, if other.is_some() { 2 } else { 1 }, index);
    let elements = flags(&b, mask, &params, n, index);
    let sum = elements.iter().fold(b.u32(0), |sum, (_, flag, _)| sum + *flag);
    let (inclusive, _) = prefix_sum::workgroup(&b, prefix_sum::scratch(&b, Scalar::U32), sum);
    let block = block_of(&b);
    b.if_((block * (GROUP * EACH)).lt(n), || {
        let mut r = before.load(block) + inclusive - sum;
        for (i, flag, offsets) in &elements {
            b.if_(flag.ne(0) & r.lt(limit), || match (visit, other, step) {
                (Visit::Select, Some(other), _) => row.store(r.cast(index), other.load(offsets[1])),
                (Visit::Scatter, Some(other), _) => other.store(offsets[1], row.load(r.cast(index))),
                (_, _, step) => {
                    let mut rest = i.cast(index);
                    let place = step.map_or(b.int(Scalar::I64, 0), |s| r.cast(Scalar::I64) * s[0]);
                    for d in 0..rank {
                        let quotient = rest / params.size(d);
                        let column = step.map_or(place, |s| place + s[1] * (rank - 1 - d) as i64);
                        row.store(column, rest - quotient * params.size(d));
                        rest = quotient;
                    }
                }
            });
            r = r + *flag;
        }
    });
    b.finish()
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
    let (launcher, layout) = count.visit(call, Visit::Coordinates, None)?;
    count.go(launcher.write(out).i64(out.strides[0]).i64(out.strides[1]), &layout, out.sizes[0])
}

/// `nonzero(self[, out])`
fn nonzero(call: &mut Call, out: Option<usize>) -> Result<()> {
    let t = call.tensor(0)?;
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(
            given == DType::I64,
            Runtime,
            "nonzero: Expected out tensor to have scalar type Long but got scalar type {given}"
        );
    }
    let result = if out.is_none() || t.numel() == 0 {
        let found = coordinates(call, t)?;
        if out.is_some() { call.out(out, DType::I64, &found.sizes)? } else { found }
    } else {
        let count = Count::new(call, t)?;
        let result = call.out(out, DType::I64, &[count.total(call)?, t.dim() as i64])?;
        write_coordinates(call, &count, &result)?;
        result
    };
    call.ret(result);
    Ok(())
}

/// `nonzero_static(self, *, size, fill_value[, out])`: the first `size`, and `fill_value` in what is left. Waits for
/// nothing.
fn nonzero_static(call: &mut Call, out: Option<usize>) -> Result<()> {
    let t = call.tensor(0)?;
    let (size, fill) = (call.int(1)?, call.scalar(2)?);
    check!(size >= 0, Runtime, "nonzero_static: 'size' must be an non-negative integer");
    let out = call.out(out, DType::I64, &[size, t.dim() as i64])?;
    crate::movement::copy::fill_with(call, &out, fill)?;
    if t.numel() > 0 {
        let count = Count::new(call, t)?;
        write_coordinates(call, &count, &out)?;
    }
    call.ret(out);
    Ok(())
}

/// `masked_select(self, mask[, out])`
fn masked_select(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (t, mask) = (call.tensor(0)?, call.tensor(1)?);
    check!(mask.dtype == DType::Bool, Runtime, "masked_select: expected BoolTensor for mask");
    if let Some(i) = out {
        let given = call.tensor(i)?.dtype;
        check!(given == t.dtype, Runtime, "masked_select(): self and result must have the same scalar type");
    }
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    let (t, mask) = (t.expand(&sizes), mask.expand(&sizes));
    if mask.numel() == 0 {
        let out = call.out(out, t.dtype, &[0])?;
        call.ret(out);
        return Ok(());
    }
    let count = Count::new(call, &mask)?;
    let total = count.total(call)?;
    let out = call.out(out, t.dtype, &[total])?;
    overlap::check_none(&out, &[&t, &mask])?;
    if total > 0 {
        let row = if out.is_contiguous() { out.clone() } else { call.empty(t.dtype, &[total])? };
        let (launcher, layout) = count.visit(call, Visit::Select, Some(&t))?;
        count.go(launcher.write(&row).read(&t), &layout, total)?;
        if row.data != out.data {
            device_copy(call, &row, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

/// `masked_scatter_(self, mask, source)`
fn masked_scatter(call: &mut Call) -> Result<()> {
    let (t, mask, source) = (call.tensor(0)?.clone(), call.tensor(1)?, call.tensor(2)?);
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
    elementwise::check_no_self_overlap(&t)?;
    if t.numel() > 0 {
        let mask = overlap::apart(call, &t, &mask.expand(&sizes))?;
        let source = overlap::apart(call, &t, &as_contiguous(call, source)?)?;
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
        let (launcher, layout) = count.visit(call, Visit::Scatter, Some(&t))?;
        count.go(launcher.read(&source).write(&t), &layout, source.numel())?;
    }
    call.ret(t);
    Ok(())
}

/// A number under a mask that broadcasts to `t`: no count is needed.
pub fn fill_under_mask(call: &Call, t: &Tensor, mask: Tensor, value: Input) -> Result<()> {
    let inputs = [Input::Tensor(t.clone()), Input::Tensor(mask), value];
    kernel::run(call, "masked_fill", 0, &[t], &inputs, t.dtype, |_, v| vec![v[1].ne(0).select(v[2], v[0])])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::Bool, Scalar::U32), (DType::F16, Scalar::U64), (DType::F64, Scalar::U32)] {
            accepted(&build_count(dtype, 2, index, dtype == DType::Bool));
            accepted(&build_visit(Visit::Coordinates, dtype, DType::I64, 3, index));
            accepted(&build_visit(Visit::Select, DType::Bool, dtype.bits(), 0, index));
            accepted(&build_visit(Visit::Scatter, DType::Bool, dtype.bits(), 1, index));
        }
    }
}
