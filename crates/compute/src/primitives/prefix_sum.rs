//! Prefix sums of integers.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::{GROUP, linear_id};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Shared, Value};

/// Adjacent elements of one invocation.
const ELEMENTS_PER_INVOCATION: u32 = 8;

/// Elements of one step of a workgroup.
const STEP: u32 = GROUP * ELEMENTS_PER_INVOCATION;

/// Up to this number of steps, one workgroup does all of them; with more, each step has its own
/// workgroup.
const MAX_STEPS: i64 = 8;

/// Exclusive prefix sum in place: replaces each of the first `n` elements of a contiguous integer
/// tensor by the sum of those before it, and sets element `n` to the total. For fewer than 2^31
/// elements.
pub fn exclusive(cx: &Context, t: &View, n: i64) -> Result<()> {
    let dtype = t.dtype;
    let steps = (n as u64).div_ceil(u64::from(STEP)) as i64;
    if steps <= MAX_STEPS {
        return cx.run(&SingleWorkgroupScan { dtype }, &WholeArguments { data: t, n: n as u32 }, [1, 1, 1]);
    }
    // First the prefix sums within each step, then the totals of the steps before are added.
    let totals = &cx.empty(dtype, &[steps + 1])?;
    let threads = steps as u64 * u64::from(GROUP);
    cx.run_threads(&Steps { dtype }, &StepsArguments { data: t, totals, n: n as u32 }, threads)?;
    exclusive(cx, totals, steps)?;
    cx.run_threads(&Add { dtype }, &AddArguments { data: t, totals, n: n as u32 }, n as u64 + 1)
}

/// All steps in one workgroup, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SingleWorkgroupScan {
    dtype: DType,
}

parameters! {
    SingleWorkgroupScan as s => WholeArguments, WholeParameters {
        data: Output = s.dtype,
        n: U32,
    }
}

/// Each step in its own workgroup, with its total.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Steps {
    dtype: DType,
}

parameters! {
    Steps as s => StepsArguments, StepsParameters {
        data: Output = s.dtype,
        totals: Output = s.dtype,
        n: U32,
    }
}

/// Adds the totals of the steps before to each step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Add {
    dtype: DType,
}

parameters! {
    Add as s => AddArguments, AddParameters {
        data: Output = s.dtype,
        totals: Input = s.dtype,
        n: U32,
    }
}

/// The exclusive prefix sum of the step from `start` on, plus `before`; returns the total.
fn step<'b>(
    b: &'b Builder,
    data: Pointer<'b>,
    sums: Shared<'b>,
    n: Value<'b>,
    start: Value<'b>,
    before: Value<'b>,
) -> Value<'b> {
    let first = start + b.local_id(0) * ELEMENTS_PER_INVOCATION;
    let mut total = before.like(0.0);
    let values: Vec<Value> = (0..ELEMENTS_PER_INVOCATION)
        .map(|k| {
            let value = b.var(before.like(0.0));
            b.if_((first + k).lt(n), || value.set(data.load(first + k)));
            let value = value.get();
            total = total + value;
            value
        })
        .collect();
    let (inclusive, all) = workgroup(b, sums, total);
    let mut running = before + inclusive - total;
    for (k, &value) in values.iter().enumerate() {
        let i = first + k as u32;
        b.if_(i.lt(n), || data.store(i, running));
        running = running + value;
    }
    all
}

impl KernelSpec for SingleWorkgroupScan {
    fn name(&self) -> &'static str {
        "prefix"
    }

    fn write<'b>(&self, b: &'b Builder, WholeParameters { data, n }: WholeParameters<'b>) {
        let scalar = self.dtype.compute();
        let sums = scratch(b, scalar);
        let before = b.var(b.int(scalar, 0));
        b.for_(0u32, n, STEP, |start| {
            let begun = before.get();
            before.set(begun + step(b, data, sums, n, start, begun));
        });
        b.if_(b.local_id(0).eq(0), || data.store(n, before.get()));
    }
}

impl KernelSpec for Steps {
    fn name(&self) -> &'static str {
        "prefix_steps"
    }

    fn write<'b>(&self, b: &'b Builder, StepsParameters { data, totals, n }: StepsParameters<'b>) {
        let scalar = self.dtype.compute();
        let block = b.group_id(0) + b.group_id(1) * b.group_count(0);
        let all = step(b, data, scratch(b, scalar), n, block * STEP, b.int(scalar, 0));
        b.if_(b.local_id(0).eq(0) & (block * STEP).lt(n), || totals.store(block, all));
    }
}

impl KernelSpec for Add {
    fn name(&self) -> &'static str {
        "prefix_add"
    }

    fn write<'b>(&self, b: &'b Builder, AddParameters { data, totals, n }: AddParameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(n), || data.store(i, data.load(i) + totals.load(i / STEP)));
        b.if_(i.eq(n), || data.store(n, totals.load((n + (STEP - 1)) / STEP)));
    }
}

/// Workgroup memory for [`workgroup`].
pub fn scratch(b: &Builder, scalar: ScalarType) -> Shared<'_> {
    b.shared(scalar, 1, 2 * GROUP)
}

/// The inclusive prefix sum of `value` over a workgroup of [`GROUP`] invocations, and the total.
/// Every invocation has to call it.
pub fn workgroup<'b>(b: &'b Builder, scratch: Shared<'b>, value: Value<'b>) -> (Value<'b>, Value<'b>) {
    let result = scan_groups(b, scratch, value, GROUP);
    b.barrier();
    result
}

/// The same within every `threads` consecutive invocations of a workgroup, a power of two. The
/// scratch memory may be written again after a barrier.
///
/// Hillis and Steele, "Data parallel algorithms", CACM 29, 1986, with four sums added at a time,
/// which takes half the barriers.
pub fn scan_groups<'b>(b: &'b Builder, scratch: Shared<'b>, value: Value<'b>, threads: u32) -> (Value<'b>, Value<'b>) {
    const REDUCTION_WIDTH: u32 = 4;
    let local = b.local_id(0);
    let me = local & (threads - 1);
    scratch.store(local, value);
    b.barrier();
    let (mut from, mut step, mut sum) = (0, 1, value);
    while step < threads {
        for before in (1..REDUCTION_WIDTH.min(threads / step)).map(|k| k * step) {
            let other = scratch.load(((local - before) & (GROUP - 1)) + from);
            sum = sum + me.ge(before).select(other, value.like(0.0));
        }
        from = GROUP - from;
        scratch.store(local + from, sum);
        b.barrier();
        step *= REDUCTION_WIDTH;
    }
    (sum, scratch.load((local | (threads - 1)) + from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::U32, DType::I64] {
            accepted(&SingleWorkgroupScan { dtype }.build());
            accepted(&Steps { dtype }.build());
            accepted(&Add { dtype }.build());
        }
    }
}
