//! Dynamic loss scaling: gradients are divided by the loss scale and checked for infinities and
//! NaN, and the scale is adapted (Micikevicius et al., "Mixed precision training", 2018).

use crate::context::Context;
use crate::error::Result;
use crate::lists::multi_tensor;
use crate::lists::multi_tensor::batch::Row;
use crate::movement::copy;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::list_table::ListTable;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::{Layout, LayoutParameter, LayoutSpec};
use dml_engine::interface::{F32, I32, Index, U32, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP, linear_id};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};
use smallvec::SmallVec;

/// Multiplies tensors of floats by `factor`, in place, and makes `found` 1 if an element was
/// infinite or NaN before. Both are one float32.
pub fn unscale(cx: &Context, list: &[&View], found: &View, factor: &View) -> Result<()> {
    let rows: SmallVec<[Row; 8]> = list.iter().map(|&t| Row::in_place(t)).collect();
    let (batches, singles) = multi_tensor::split(&rows, &[]);
    for batch in batches {
        let spec = UnscaleLists { dtype: batch.dtype(), lanes: batch.lanes(), words: batch.words() };
        batch.launch(|lists, groups| {
            cx.run(&spec, &UnscaleListsArguments { lists, found: found.range(), factor }, groups)
        })?;
    }
    if singles.is_empty() {
        return Ok(());
    }
    // A flag of its own for every tensor: launches that share none need no barrier between them.
    let flags = cx.empty(DType::I32, &[singles.len() as i64])?;
    copy::fill_with(cx, &flags, Number::Int(0))?;
    for (row, i) in singles.iter().zip(0..) {
        unscale_one(cx, row.outs[0], factor, &flags.narrow(0, i, 1))?;
    }
    let arguments = AnyFlagArguments { found: found.range(), flags: &flags, n: singles.len() as u32 };
    cx.run_threads(&AnyFlag, &arguments, singles.len() as u64)
}

/// How a loss scale is adapted.
#[derive(Copy, Clone, Debug)]
pub struct Adaption {
    /// Its factor after as many steps without an overflow as `interval`, unless it would overflow
    /// itself.
    pub growth: f32,
    /// Its factor after an overflow.
    pub backoff: f32,
    /// Steps.
    pub interval: i32,
}

impl Adaption {
    /// Adapts `scale` (one float32), given what [`unscale`] found; `tracker` (one int32) counts the
    /// steps without an overflow.
    pub fn run(self, cx: &Context, scale: &View, tracker: &View, found: &View) -> Result<()> {
        let Adaption { growth, backoff, interval } = self;
        cx.run(&Update, &UpdateArguments { scale, tracker, found, growth, backoff, interval }, [1, 1, 1])
    }
}

fn unscale_one(cx: &Context, t: &View, factor: &View, flag: &View) -> Result<()> {
    let layout = Layout::new(&[t]);
    let spec = Unscale { dtype: t.dtype, layout: layout.spec() };
    let arguments = UnscaleArguments { x: t, flag, factor, numel: t.numel(), layout: &layout };
    cx.run_threads(&spec, &arguments, t.numel() as u64)
}

/// The kernel of one tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unscale {
    dtype: DType,
    layout: LayoutSpec,
}

parameters! {
    Unscale as s => UnscaleArguments, UnscaleParameters {
        x: Output = s.dtype,
        flag: Output = DType::I32,
        factor: Input = DType::F32,
        numel: Index = s.layout.index,
        layout: LayoutParameter = s.layout,
    }
}

impl KernelSpec for Unscale {
    fn name(&self) -> &'static str {
        "unscale"
    }

    fn write<'b>(&self, b: &'b Builder, p: UnscaleParameters<'b>) {
        let i = linear_id(b, self.layout.index);
        b.if_(i.lt(p.numel), || {
            let at = p.layout.offsets(b, i)[0];
            let value = p.x.load(at);
            b.if_(value.is_nan() | value.is_inf(), || {
                p.flag.atomic(Atomic::Or, 0, 1);
            });
            let factor = p.factor.load(0).cast(value.scalar());
            p.x.store(at, value * factor);
        });
    }
}

/// The kernel of many tensors of one dtype.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UnscaleLists {
    dtype: DType,
    /// Elements of one access (vector width).
    lanes: u32,
    /// Words of a tensor's entry in the table.
    words: u32,
}

parameters! {
    UnscaleLists as s => UnscaleListsArguments, UnscaleListsParameters {
        lists: ListTable,
        /// The flag, a float32, as bits for an atomic maximum: its only values are 0.0 and 1.0.
        found: WriteRange = DType::U32,
        factor: Input = DType::F32,
    }
}

impl KernelSpec for UnscaleLists {
    fn name(&self) -> &'static str {
        "unscale"
    }

    fn write<'b>(&self, b: &'b Builder, p: UnscaleListsParameters<'b>) {
        let UnscaleListsParameters { lists, found, factor } = p;
        lists.part(self.lanes, self.words, |part| {
            let x = lists.part_of(&part, 0, self.dtype);
            let overflow = b.var(b.bool(false));
            let factor = factor.load(0).cast(self.dtype.compute());
            b.for_(0, lists.rounds, 1, |round| {
                let chunk = round * GROUP + b.local_id(0);
                dense::write_chunk(b, chunk, part.n, self.lanes, &[x], &[(x, false)], &|v| {
                    overflow.set(overflow.get() | v[0].is_nan() | v[0].is_inf());
                    vec![v[0] * factor]
                });
            });
            b.if_(overflow.get(), || {
                found.atomic(Atomic::Max, 0, 1f32.to_bits());
            });
        });
    }
}

/// The kernel that reduces the flags of tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct AnyFlag;

parameters! {
    AnyFlag as s => AnyFlagArguments, AnyFlagParameters {
        /// The flag, a float32, as bits for an atomic maximum: its only values are 0.0 and 1.0.
        found: WriteRange = DType::U32,
        flags: Input = DType::I32,
        n: U32,
    }
}

impl KernelSpec for AnyFlag {
    fn name(&self) -> &'static str {
        "any_flag"
    }

    fn write<'b>(&self, b: &'b Builder, p: AnyFlagParameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.n), || {
            b.if_(p.flags.load(i).ne(0), || {
                p.found.atomic(Atomic::Max, 0, 1f32.to_bits());
            });
        });
    }
}

/// The kernel that adapts the scale.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Update;

parameters! {
    Update as s => UpdateArguments, UpdateParameters {
        scale: Output = DType::F32,
        tracker: Output = DType::I32,
        found: Input = DType::F32,
        growth: F32,
        backoff: F32,
        interval: I32,
    }
}

impl KernelSpec for Update {
    fn name(&self) -> &'static str {
        "update_scale"
    }

    fn workgroup(&self) -> [u32; 3] {
        [1, 1, 1]
    }

    fn write<'b>(&self, _: &'b Builder, p: UpdateParameters<'b>) {
        let (now, good) = (p.scale.load(0), p.tracker.load(0) + 1);
        let overflow = p.found.load(0).ne(0);
        let grown = now * p.growth;
        let grows = good.eq(p.interval) & !(grown.is_inf() | grown.is_nan());
        let next: Value = overflow.select(now * p.backoff, grows.select(grown, now));
        p.scale.store(0, next);
        p.tracker.store(0, (overflow | good.eq(p.interval)).select(good.like(0.0), good));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, rank, index) in [(DType::F16, 2, ScalarType::U64), (DType::F64, 1, ScalarType::U32)] {
            accepted(&Unscale { dtype, layout: LayoutSpec { rank, operands: 1, index } }.build());
            accepted(&UnscaleLists { dtype, lanes: 2, words: 3 }.build());
        }
        accepted(&AnyFlag.build());
        accepted(&Update.build());
    }
}
