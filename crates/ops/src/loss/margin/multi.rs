//! The loss of one class an example: how far the scores of the other classes come within a margin of its own.

use super::{Problem, check_dtypes, key, pass, rows_of};
use crate::check;
use crate::loss::Reduce;
use crate::movement::copy::{as_contiguous, device_copy};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::primitives::launch::GROUP;
use crate::primitives::rows::{Rows, Share};
use crate::tensor::promote::accumulator;
use dml_kernel::{Builder, DType, Pointer, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::multi_margin_loss", |c| multi_margin(c, None)),
    op("aten::multi_margin_loss.out", |c| multi_margin(c, Some(6))),
    op("aten::multi_margin_loss_backward", |c| multi_margin_backward(c, None)),
    op("aten::multi_margin_loss_backward.grad_input", |c| multi_margin_backward(c, Some(7))),
];

/// How far beyond the margin is counted: `x` or `x^2`; and the margin.
struct Shape {
    squared: bool,
    margin: f64,
}

/// `(self, target, p, margin, weight, reduction)` from argument `first`
fn multi_margin_problem(call: &Call, first: usize) -> Result<(Problem, Shape)> {
    let (input, target, weight) = (call.tensor(first)?, call.tensor(first + 1)?, call.opt_tensor(first + 4)?);
    let p = call.double(first + 2)?;
    check!(p == 1.0 || p == 2.0, Runtime, "only p == 1 and p == 2 supported");
    let [rows, classes] = rows_of(input)?;
    check!(
        target.dim() <= 1 && target.numel() == rows,
        Runtime,
        "inconsistent target size, expected {rows} but got {:?}",
        target.sizes.as_slice()
    );
    check_dtypes("multi_margin_loss_cpu_kernel", input, target)?;
    if let Some(w) = weight {
        check!(
            w.dim() <= 1 && w.numel() == classes,
            Runtime,
            "inconsistent weight size, expected {classes} but got {:?}",
            w.sizes.as_slice()
        );
        check!(w.dtype == input.dtype, Runtime, "expected scalar type {} but found {}", input.dtype, w.dtype);
    }
    let problem = Problem {
        input: as_contiguous(call, input)?,
        target: as_contiguous(call, target)?,
        weight: weight.map(|w| as_contiguous(call, w)).transpose()?,
        reduction: Reduce::argument(call, first + 5)?,
        rows,
        classes,
        sizes: target.sizes.clone(),
    };
    Ok((problem, Shape { squared: p == 2.0, margin: call.double(first + 3)? }))
}

/// The target's class of a row, its score and its weight. A class that does not exist is reported; its row counts
/// nothing.
struct Target<'b> {
    class: Value<'b>,
    exists: Value<'b>,
    score: Value<'b>,
    weight: Option<Value<'b>>,
}

impl<'b> Target<'b> {
    #[allow(clippy::too_many_arguments)]
    fn load(
        b: &'b Builder,
        [input, target]: [Pointer<'b>; 2],
        weight: Option<Pointer<'b>>,
        fault: Pointer<'b>,
        operator: Value<'b>,
        row: Value<'b>,
        classes: Value<'b>,
    ) -> Target<'b> {
        let given = target.load(row);
        let n = classes.cast(Scalar::I64);
        let exists = given.ge(0) & given.lt(n);
        b.if_(!exists, || fault::report(b, fault, operator, given, n, 1));
        // All ones would be far outside; 0 is inside, and what it gives is not used.
        let class = b.var(classes.like(0.0));
        b.if_(exists, || class.set(given.cast(classes.scalar())));
        let class = class.get();
        let weight = weight.map(|w| w.load(class));
        Target { class, exists, score: input.load(row * classes + class), weight }
    }
}

/// `multi_margin_loss(self, target, p, margin, weight, reduction[, out])`
fn multi_margin(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (p, shape) = multi_margin_problem(call, 0)?;
    let out = structured::out(call, out, p.input.dtype, &p.result_sizes())?;
    let losses = call.empty(accumulator(p.input.dtype), &[p.rows])?;
    if p.rows > 0 {
        let (rows, _) = Rows::of_neighbours(p.index(), p.classes);
        let mut key = key(&p, u32::from(shape.squared));
        key[3] = rows.code();
        let kernel = call.kernel("multi_margin_loss", key, || {
            let b = Builder::new("multi_margin_loss", [GROUP, 1, 1]);
            write_multi_margin(&b, p.input.dtype, p.weight.is_some(), shape.squared, &rows);
            b.finish()
        })?;
        let mut launcher = call.launch(kernel).write(&losses).read(&p.input).read(&p.target);
        if let Some(w) = &p.weight {
            launcher = launcher.read(w);
        }
        rows.run(pass(launcher, call, &p, &[shape.margin]), p.rows, p.classes, 1)?;
    }
    p.finish(call, &losses, &out)?;
    call.ret(out);
    Ok(())
}

fn write_multi_margin(b: &Builder, dtype: DType, weighted: bool, squared: bool, rows: &Rows) {
    let losses = b.pointer("losses", accumulator(dtype));
    let pointers = [b.pointer("input", dtype), b.pointer("target", DType::I64)];
    let weight = weighted.then(|| b.pointer("weight", dtype));
    let (fault, operator) = (b.pointer("fault", DType::U32), b.param("operator", Scalar::U32));
    let margin = b.param("margin", accumulator(dtype).compute());
    let share = Share::new(b, rows, dtype, 1);
    let target = Target::load(b, pointers, weight, fault, operator, share.place.row, share.n);
    let sum = b.var(margin.like(0.0));
    b.for_(share.lane, share.n, share.lanes, |k| {
        let beyond = margin - target.score + pointers[0].load(share.offset(k));
        let term = if squared { beyond * beyond } else { beyond };
        b.if_(k.ne(target.class) & beyond.gt(0.0), || sum.set(sum.get() + term));
    });
    let mut loss = share.sum(sum.get()) / share.n.cast(margin.scalar());
    if let Some(w) = target.weight {
        loss = loss * w;
    }
    let zero = loss.like(0.0);
    let first = share.place.lane.eq(0) & share.place.valid;
    b.if_(first, || losses.store(share.place.row, target.exists.select(loss, zero)));
}

/// `multi_margin_loss_backward(grad_output, self, target, p, margin, weight, reduction[, grad_input])`
fn multi_margin_backward(call: &mut Call, out: Option<usize>) -> Result<()> {
    let (p, shape) = multi_margin_problem(call, 1)?;
    let grad = as_contiguous(call, call.tensor(0)?)?;
    p.check_gradient(&grad)?;
    let out = structured::out(call, out, p.input.dtype, &p.input.sizes)?;
    let dense = if out.is_contiguous() { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
    if p.rows > 0 {
        let (rows, _) = Rows::of_neighbours(p.index(), p.classes);
        let mut key = key(&p, u32::from(shape.squared));
        key[3] = rows.code();
        let single = p.reduction != Reduce::None;
        let kernel = call.kernel("multi_margin_loss_backward", key, || {
            let b = Builder::new("multi_margin_loss_backward", [GROUP, 1, 1]);
            write_multi_margin_backward(&b, p.input.dtype, p.weight.is_some(), shape.squared, single, &rows);
            b.finish()
        })?;
        let mut launcher = call.launch(kernel).write(&dense).read(&grad).read(&p.input).read(&p.target);
        if let Some(w) = &p.weight {
            launcher = launcher.read(w);
        }
        let launcher = pass(launcher, call, &p, &[shape.margin, 1.0 / p.divisor()]);
        rows.run(launcher, p.rows, p.classes, 1)?;
    }
    if dense.data != out.data {
        device_copy(call, &dense, &out)?;
    }
    call.ret(out);
    Ok(())
}

fn write_multi_margin_backward(b: &Builder, dtype: DType, weighted: bool, squared: bool, single: bool, rows: &Rows) {
    let (out, grad) = (b.pointer("grad_input", dtype), b.pointer("grad_output", dtype));
    let pointers = [b.pointer("input", dtype), b.pointer("target", DType::I64)];
    let weight = weighted.then(|| b.pointer("weight", dtype));
    let (fault, operator) = (b.pointer("fault", DType::U32), b.param("operator", Scalar::U32));
    let scalar = accumulator(dtype).compute();
    let (margin, share_of_mean) = (b.param("margin", scalar), b.param("share", scalar));
    let share = Share::new(b, rows, dtype, 1);
    let target = Target::load(b, pointers, weight, fault, operator, share.place.row, share.n);
    let grad = if single { grad.load(0) } else { grad.load(share.place.row) };
    let mut unit = grad * share_of_mean;
    if let Some(w) = target.weight {
        unit = unit * w;
    }
    let unit = target.exists.select(unit, 0.0);
    let sum = b.var(margin.like(0.0));
    b.for_(share.lane, share.n, share.lanes, |k| {
        let beyond = margin - target.score + pointers[0].load(share.offset(k));
        let slope = if squared { 2.0 * beyond * unit } else { unit };
        let slope = beyond.gt(0.0).select(slope, 0.0);
        b.if_(k.ne(target.class), || {
            sum.set(sum.get() + slope);
            share.store(out, k, slope);
        });
    });
    // The target's score lowers every term.
    let total = share.sum(sum.get());
    b.if_(share.place.lane.eq(0), || share.store(out, target.class, -total));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index, n) in [(DType::BF16, Scalar::U32, 2), (DType::F64, Scalar::U64, 3000)] {
            let (rows, _) = Rows::of_neighbours(index, n);
            let kernel = |write: &dyn Fn(&Builder)| {
                let b = Builder::new("margin", [GROUP, 1, 1]);
                write(&b);
                accepted(&b.finish());
            };
            kernel(&|b| write_multi_margin(b, dtype, true, n > 2, &rows));
            kernel(&|b| write_multi_margin_backward(b, dtype, n > 2, true, n == 2, &rows));
        }
    }
}
