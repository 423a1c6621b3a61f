//! Prefix sums of integers.

use crate::call::Call;
use crate::error::Result;
use crate::launch::GROUP;
use crate::tensor::Tensor;
use dml_kernel::{Builder, DType, Kernel, Scalar, Shared, Value};

/// Neighbouring elements that one invocation adds.
const EACH: u32 = 8;

/// Replaces the first `n` elements of a contiguous integer tensor by the sums of those before each, and sets element
/// `n` to the sum of all. One workgroup does it, some 2,000 elements a step: meant for counts of blocks, not for data.
pub fn exclusive(call: &Call, t: &Tensor, n: i64) -> Result<()> {
    let dtype = t.dtype;
    let kernel = call.kernel("prefix", [dtype as u32, 0, 0, 0, 0, 0], || build(dtype))?;
    call.launch(kernel).write(t).u32(n as u32).groups([1, 1, 1])
}

fn build(dtype: DType) -> Kernel {
    let b = Builder::new("prefix", [GROUP, 1, 1]);
    let data = b.pointer("data", dtype);
    let n = b.param("n", Scalar::U32);
    let scalar = dtype.compute();
    let sums = scratch(&b, scalar);
    let zero = b.int(scalar, 0);
    let before = b.var(zero);
    b.for_(0u32, n, GROUP * EACH, |start| {
        let first = start + b.local_id(0) * EACH;
        let mut total = zero;
        let values: Vec<Value> = (0..EACH)
            .map(|k| {
                let value = b.var(zero);
                b.if_((first + k).lt(n), || value.set(data.load(first + k)));
                let value = value.get();
                total = total + value;
                value
            })
            .collect();
        let (inclusive, all) = workgroup(&b, sums, total);
        let mut running = before.get() + inclusive - total;
        for (k, &value) in values.iter().enumerate() {
            let i = first + k as u32;
            b.if_(i.lt(n), || data.store(i, running));
            running = running + value;
        }
        before.set(before.get() + all);
    });
    b.if_(b.local_id(0).eq(0), || data.store(n, before.get()));
    b.finish()
}

/// Workgroup memory for [`workgroup`].
pub fn scratch(b: &Builder, scalar: Scalar) -> Shared<'_> {
    b.shared(scalar, 1, 2 * GROUP)
}

/// The sum of `value` over this and all earlier invocations of a workgroup of [`GROUP`], and over all of them.
/// Every invocation must come here. (Hillis and Steele, "Data parallel algorithms", CACM 29, 1986.)
pub fn workgroup<'b>(b: &'b Builder, scratch: Shared<'b>, value: Value<'b>) -> (Value<'b>, Value<'b>) {
    let me = b.local_id(0);
    scratch.store(me, value);
    b.barrier();
    let (mut from, mut step) = (0, 1);
    while step < GROUP {
        let to = GROUP - from;
        let sum = b.var(scratch.load(me + from));
        b.if_(me.ge(step), || sum.set(sum.get() + scratch.load(me + from - step)));
        scratch.store(me + to, sum.get());
        b.barrier();
        (from, step) = (to, step * 2);
    }
    let result = (scratch.load(me + from), scratch.load(b.u32(from + GROUP - 1)));
    b.barrier();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::U32, DType::I64] {
            accepted(&build(dtype));
        }
    }
}
