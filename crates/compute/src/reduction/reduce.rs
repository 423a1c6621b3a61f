//! Enqueues the passes of a fold.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::cost::multiply_adds;
use crate::reduction::fold::{Fold, Reduction};
use crate::reduction::kernel::{Arguments, Spec, partial_dtypes};
use crate::reduction::plan::{Pass, Plan};
use crate::view::View;
use smallvec::SmallVec;

/// Cost model: multiplications and additions for each element, as for a distance.
const OPERATIONS_PER_ELEMENT: u64 = 4;

/// Partial results, one tensor for each accumulator.
type Partials = SmallVec<[View; 3]>;

/// Enqueues a fold.
pub fn reduce(cx: &Context, fold: &impl Fold, r: &Reduction) -> Result<()> {
    let (plan, mut pass) = Plan::new(r, fold.ordered());
    if plan.outputs == 0 {
        return Ok(());
    }
    let mut partials = Partials::new();
    loop {
        partials = run(cx, fold, r, &plan, &pass, &partials)?;
        if pass.parts == 1 {
            return Ok(());
        }
        pass = plan.next(&pass, partials.len());
    }
}

/// Enqueues one pass, which reads the inputs or the previous pass's partial results; returns its
/// own partial results, if there are any.
fn run<F: Fold>(cx: &Context, fold: &F, r: &Reduction, plan: &Plan, pass: &Pass, read: &[View]) -> Result<Partials> {
    let (first, last) = (pass.first, pass.parts == 1);
    let mut partials = Partials::new();
    if !last {
        for dtype in partial_dtypes(fold, plan.index) {
            partials.push(cx.empty(dtype, &[plan.outputs * pass.parts])?);
        }
    }
    // For broadcast tensors, which have few bytes and many elements.
    let operations = r
        .inputs
        .first()
        .filter(|_| first)
        .map_or(0, |t| multiply_adds(t.dtype, OPERATIONS_PER_ELEMENT * t.numel() as u64));
    let inputs = if first { SmallVec::from_slice(r.inputs) } else { read.iter().collect() };
    let outs = if last { SmallVec::from_slice(r.outs) } else { partials.iter().collect() };
    let tables = SmallVec::from_slice(if first { r.tables } else { &[] });
    let dtypes = |tensors: &[&View]| tensors.iter().map(|t| t.dtype).collect();
    let spec = Spec {
        fold: fold.clone(),
        first,
        last,
        inputs: dtypes(&inputs),
        outs: dtypes(&outs),
        tables: dtypes(&tables),
        numbers: r.numbers.iter().map(|&(dtype, _)| dtype).collect(),
        kept_rank: plan.kept.rank() as u32,
        reduced_rank: pass.reduced.rank() as u32,
        index: plan.index,
        lanes: pass.lanes,
        lanes_first: pass.lanes_first,
        width: pass.width,
        constants: pass.constants,
    };
    let arguments = Arguments {
        inputs,
        outs,
        tables,
        faults: spec.refusals().iter().map(|&refusal| cx.fault_of(refusal)).collect(),
        numbers: r.numbers.iter().map(|&(_, number)| number).collect(),
        outputs: plan.outputs,
        extent: pass.extent,
        part_length: pass.part_length,
        part_stride: pass.part_stride,
        blocks: pass.blocks,
        parts: pass.parts as u32,
        kept: &plan.kept(pass),
        reduced: &pass.reduced,
    };
    cx.run_with_cost(&spec, &arguments, pass.groups(), operations)?;
    drop(arguments);
    Ok(partials)
}
