//! What `torch.amp.GradScaler` does on the device: gradients are freed of the loss scale and
//! searched for overflows, and the scale is adapted (Micikevicius et al., "Mixed precision
//! training", 2018).

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::list_table::ListTable;
use crate::view::View;
use crate::view::layout::{Layout, LayoutSpec, Walked};
use dml_engine::interface::{F32, I32, Index, U32, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP, linear_id};
use dml_kernel::{Atomic, Builder, DType, ScalarType, Value};

pub fn unscale_one(cx: &Context, t: &View, factor: &View, flag: &View) -> Result<()> {
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
        layout: Walked = s.layout,
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
pub struct UnscaleLists {
    pub dtype: DType,
    /// Elements of one access.
    pub lanes: u32,
    /// Words of a tensor's entry in the table.
    pub words: u32,
}

parameters! {
    pub UnscaleLists as s => UnscaleListsArguments, UnscaleListsParameters {
        lists: ListTable,
        /// As bits: 1.0 is above 0.0 and nothing else is there.
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

/// The kernel that joins the flags of tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AnyFlag;

parameters! {
    pub AnyFlag as s => AnyFlagArguments, AnyFlagParameters {
        /// As bits: 1.0 is above 0.0 and nothing else is there.
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
pub struct Update;

parameters! {
    pub Update as s => UpdateArguments, UpdateParameters {
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
