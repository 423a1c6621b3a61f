//! What `torch.amp.GradScaler` does on the device: gradients are freed of the loss scale and searched for overflows,
//! and the scale is adapted (Micikevicius et al., "Mixed precision training", 2018).

use crate::check;
use crate::lists::multi_tensor::{self, Lists, Row};
use crate::movement::copy;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::tensor::Tensor;
use crate::tensor::layout::{self, Layout};
use dml_kernel::{Atomic, Builder, DType, Kernel, Pointer, Scalar, Value, dense};

/// This family's overloads.
pub const OPERATORS: &[Operator] =
    &[op("aten::_amp_foreach_non_finite_check_and_unscale_", unscale), op("aten::_amp_update_scale_", update)];

/// `_amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale)`: multiplies every tensor of the list by
/// `inv_scale`, and makes `found_inf` 1 if an element was infinite or NaN before.
fn unscale(call: &mut Call) -> Result<()> {
    let (list, found, factor) = (call.tensors(0)?, call.tensor(1)?, call.tensor(2)?);
    for (t, name) in [(factor, "inv_scale"), (found, "found_inf")] {
        check!(t.numel() == 1, Runtime, "{name} must be a 1-element tensor.");
        check!(t.dtype == DType::F32, Runtime, "{name} must be a float tensor.");
    }
    if list.is_empty() {
        return Ok(());
    }
    for t in &list {
        check!(
            t.dtype.is_float(),
            Dtype,
            "\"_amp_foreach_non_finite_check_and_unscale_\" not implemented for '{}'",
            t.dtype
        );
    }
    let rows: Vec<Row> = list.iter().map(|&t| Row::in_place(t)).collect();
    let (batches, singles) = multi_tensor::split(&rows, &[]);
    for batch in batches {
        let (dtype, lanes, words) = (batch.dtype(), batch.lanes(), batch.words());
        let key = [dtype as u32, lanes, 0, 0, 0, 1];
        let kernel = call.kernel("unscale", key, || unscale_lists_kernel(dtype, lanes, words))?;
        batch.launch(call, kernel, |launcher| launcher.write(found).read(factor))?;
    }
    if singles.is_empty() {
        return Ok(());
    }
    // A flag of its own for every tensor: launches that share none need no barrier between them.
    let flags = call.empty(DType::I32, &[singles.len() as i64])?;
    copy::fill_with(call, &flags, Number::Int(0))?;
    for (row, i) in singles.iter().zip(0..) {
        unscale_one(call, row.outs[0], factor, &flags.narrow(0, i, 1))?;
    }
    let kernel = call.kernel("any_flag", [0; 6], any_flag)?;
    call.launch(kernel).write(found).read(&flags).u32(singles.len() as u32).threads(singles.len() as u64)
}

fn unscale_one(call: &Call, t: &Tensor, factor: &Tensor, flag: &Tensor) -> Result<()> {
    let layout = Layout::new(&[t]);
    let (rank, index) = (layout.rank(), layout.index);
    let key = [t.dtype as u32, rank as u32, index.bytes(), 0, 0, 0];
    let kernel = call.kernel("unscale", key, || unscale_kernel(t.dtype, rank, index))?;
    let launcher = call.launch(kernel).write(t).write(flag).read(factor).index(index, t.numel());
    layout.pass(launcher).threads(t.numel() as u64)
}

fn unscale_kernel(dtype: DType, rank: usize, index: Scalar) -> Kernel {
    let b = Builder::new("unscale", [GROUP, 1, 1]);
    let (x, flag, factor) = (b.pointer("x", dtype), b.pointer("flag", DType::I32), b.pointer("factor", DType::F32));
    let n = b.param("numel", index);
    let params = layout::declare(&b, rank, 1, index);
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let at = params.offsets(&b, i)[0];
        let value = x.load(at);
        b.if_(value.is_nan() | value.is_inf(), || {
            flag.atomic(Atomic::Or, 0, 1);
        });
        let factor = factor.load(0).cast(value.scalar());
        x.store(at, value * factor);
    });
    b.finish()
}

fn unscale_lists_kernel(dtype: DType, lanes: u32, words: u32) -> Kernel {
    let b = Builder::new("unscale", [GROUP, 1, 1]);
    let lists = Lists::declare(&b);
    // As bits: 1.0 is above 0.0 and nothing else is there.
    let (found, factor) = (b.pointer("found", DType::U32), b.pointer("factor", DType::F32));
    lists.part(lanes, words, |part| {
        let x = lists.part_of(&part, 0, dtype);
        let overflow = b.var(b.bool(false));
        let factor = factor.load(0).cast(dtype.compute());
        b.for_(0, lists.rounds, 1, |round| {
            let chunk = round * GROUP + b.local_id(0);
            dense::write_chunk(&b, chunk, part.n, lanes, &[x], &[(x, false)], &|v| {
                overflow.set(overflow.get() | v[0].is_nan() | v[0].is_inf());
                vec![v[0] * factor]
            });
        });
        b.if_(overflow.get(), || {
            found.atomic(Atomic::Max, 0, 1f32.to_bits());
        });
    });
    b.finish()
}

fn any_flag() -> Kernel {
    let b = Builder::new("any_flag", [GROUP, 1, 1]);
    // As bits: 1.0 is above 0.0 and nothing else is there.
    let (found, flags) = (b.pointer("found", DType::U32), b.pointer("flags", DType::I32));
    let n = b.param("n", Scalar::U32);
    let i = linear_id(&b, Scalar::U32);
    b.if_(i.lt(n), || {
        b.if_(flags.load(i).ne(0), || {
            found.atomic(Atomic::Max, 0, 1f32.to_bits());
        });
    });
    b.finish()
}

/// `_amp_update_scale_(self, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval)`: the scale
/// shrinks after an overflow, and grows after so many steps without one unless it would overflow itself.
fn update(call: &mut Call) -> Result<()> {
    let (scale, tracker, found) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    for (t, name, dtype, kind) in [
        (tracker, "growth_tracker", DType::I32, "an int"),
        (scale, "current_scale", DType::F32, "a float"),
        (found, "found_inf", DType::F32, "a float"),
    ] {
        check!(t.numel() == 1, Runtime, "{name} must be a 1-element tensor.");
        check!(t.dtype == dtype, Runtime, "{name} must be {kind} tensor.");
    }
    let kernel = call.kernel("update_scale", [0; 6], update_kernel)?;
    let launcher = call.launch(kernel).write(scale).write(tracker).read(found);
    launcher
        .f32(call.double(3)? as f32)
        .f32(call.double(4)? as f32)
        .i32(call.int(5)?.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
        .groups([1, 1, 1])?;
    call.ret(scale.clone());
    Ok(())
}

fn update_kernel() -> Kernel {
    let b = Builder::new("update_scale", [1, 1, 1]);
    let [scale, tracker, found]: [Pointer; 3] =
        [("scale", DType::F32), ("tracker", DType::I32), ("found", DType::F32)].map(|(n, d)| b.pointer(n, d));
    let (growth, backoff) = (b.param("growth", Scalar::F32), b.param("backoff", Scalar::F32));
    let interval = b.param("interval", Scalar::I32);
    let (now, good) = (scale.load(0), tracker.load(0) + 1);
    let overflow = found.load(0).ne(0);
    let grown = now * growth;
    let grows = good.eq(interval) & !(grown.is_inf() | grown.is_nan());
    let next: Value = overflow.select(now * backoff, grows.select(grown, now));
    scale.store(0, next);
    tracker.store(0, (overflow | good.eq(interval)).select(good.like(0.0), good));
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (dtype, rank, index) in [(DType::F16, 2, Scalar::U64), (DType::F64, 1, Scalar::U32)] {
            crate::primitives::validate::accepted(&unscale_kernel(dtype, rank, index));
            crate::primitives::validate::accepted(&unscale_lists_kernel(dtype, 2, 3));
        }
        crate::primitives::validate::accepted(&any_flag());
        crate::primitives::validate::accepted(&update_kernel());
    }
}
