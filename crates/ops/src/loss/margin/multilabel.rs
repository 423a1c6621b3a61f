//! The loss of several classes an example: every class that is no target against every target, with a margin of 1.
//! Each element of the gradient is computed on its own.

use super::{Problem, check_dtypes, key, pass, rows_of};
use crate::check;
use crate::loss::Reduce;
use crate::movement::copy::{as_contiguous, device_copy};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, linear_id};
use crate::primitives::rows::{Rows, Share};
use crate::tensor::Dims;
use crate::tensor::promote::accumulator;
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::multilabel_margin_loss_forward", |c| multilabel(c, [None, None])),
    op("aten::multilabel_margin_loss_forward.output", |c| multilabel(c, [Some(3), Some(4)])),
    op("aten::multilabel_margin_loss_backward", |c| multilabel_backward(c, None)),
    op("aten::multilabel_margin_loss_backward.grad_input", |c| multilabel_backward(c, Some(5))),
];

/// `(self, target, reduction)` from argument `first`
fn multilabel_problem(call: &Call, first: usize) -> Result<Problem> {
    let (input, target) = (call.tensor(first)?, call.tensor(first + 1)?);
    let [rows, classes] = rows_of(input)?;
    let fits = target.sizes == input.sizes || input.dim() < 2 && target.dim() < 2 && target.numel() == classes;
    check!(
        fits,
        Runtime,
        "inconsistent target size: {:?} for input of size: {:?}",
        target.sizes.as_slice(),
        input.sizes.as_slice()
    );
    check_dtypes("multilabel_margin_loss_forward_out_frame", input, target)?;
    Ok(Problem {
        input: as_contiguous(call, input)?,
        target: as_contiguous(call, target)?,
        weight: None,
        reduction: Reduce::argument(call, first + 2)?,
        rows,
        classes,
        sizes: if input.dim() < 2 { Dims::new() } else { Dims::from_slice(&[rows]) },
    })
}

/// `multilabel_margin_loss_forward(self, target, reduction[, output, is_target]) -> (output, is_target)`: the classes of
/// a row end before its first negative one.
fn multilabel(call: &mut Call, outs: [Option<usize>; 2]) -> Result<()> {
    let p = multilabel_problem(call, 0)?;
    let out = call.out(outs[0], p.input.dtype, &p.result_sizes())?;
    let flags = call.out(outs[1], p.input.dtype, &p.target.sizes)?;
    let dense = if flags.is_contiguous() { flags.clone() } else { call.empty(flags.dtype, &flags.sizes)? };
    let losses = call.empty(accumulator(p.input.dtype), &[p.rows])?;
    if p.rows > 0 {
        let kernel = call.kernel("multilabel_margin_targets", key(&p, 0), || build_targets(dense.dtype, p.index()))?;
        let launcher = pass(call.launch(kernel).write(&dense).read(&p.target), call, &p, &[]);
        let launcher = launcher.index(p.index(), p.input.numel()).index(p.index(), p.classes);
        launcher.threads(p.input.numel() as u64)?;
        let (rows, _) = Rows::of_neighbours(p.index(), p.classes);
        let mut key = key(&p, 0);
        key[3] = rows.code();
        key[4] = dense.dtype as u32;
        let kernel = call.kernel("multilabel_margin_loss", key, || {
            let b = Builder::new("multilabel_margin_loss", [GROUP, 1, 1]);
            write_multilabel(&b, p.input.dtype, dense.dtype, &rows);
            b.finish()
        })?;
        let launcher = call.launch(kernel).write(&losses).read(&p.input).read(&p.target).read(&dense);
        rows.run(launcher, p.rows, p.classes, 1)?;
    }
    if dense.data != flags.data {
        device_copy(call, &dense, &flags)?;
    }
    p.finish(call, &losses, &out)?;
    call.ret(out);
    call.ret(flags);
    Ok(())
}

/// Runs `body` for each class in a row's list that exists.
fn each_target<'b>(
    b: &'b Builder,
    target: Pointer<'b>,
    first: Value<'b>,
    classes: Value<'b>,
    body: impl FnOnce(Value<'b>),
) {
    let more = b.var(b.bool(true));
    let k = b.var(classes.like(0.0));
    b.while_(
        || more.get() & k.get().lt(classes),
        || {
            let class = target.load(first + k.get());
            more.set(class.ge(0));
            b.if_(class.ge(0) & class.lt(classes.cast(Scalar::I64)), || body(class.cast(classes.scalar())));
            k.set(k.get() + 1);
        },
    );
}

/// 1 for the classes of a row's list, 0 for others. A class that does not exist is reported.
fn build_targets(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("multilabel_margin_targets", [GROUP, 1, 1]);
    let (flags, target) = (b.pointer("is_target", dtype), b.pointer("target", DType::I64));
    let (fault, operator) = (b.pointer("fault", DType::U32), b.param("operator", Scalar::U32));
    let (n, classes) = (b.param("n", index), b.param("classes", index));
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let row = i / classes;
        let own = i - row * classes;
        let found = b.var(b.float(dtype.compute(), 0.0));
        each_target(&b, target, row * classes, classes, |class| b.if_(class.eq(own), || found.set(1.0)));
        flags.store(i, found.get());
        let here = target.load(i);
        let size = classes.cast(Scalar::I64);
        b.if_(here.lt(-1) | here.ge(size), || fault::report(&b, fault, operator, here, size, 1));
    });
    b.finish()
}

/// Losses of rows: over classes that are no targets, each against every target.
fn write_multilabel(b: &Builder, dtype: DType, flag: DType, rows: &Rows) {
    let losses = b.pointer("losses", accumulator(dtype));
    let (input, target) = (b.pointer("input", dtype), b.pointer("target", DType::I64));
    let flags = b.pointer("is_target", flag);
    let share = Share::new(b, rows, dtype, 1);
    let scalar = accumulator(dtype).compute();
    let sum = b.var(b.float(scalar, 0.0));
    b.for_(share.lane, share.n, share.lanes, |k| {
        let at = share.offset(k);
        let score = input.load(at);
        b.if_(flags.load(at).eq(0.0), || {
            each_target(b, target, share.place.first, share.n, |class| {
                let beyond: Value = 1.0 - input.load(share.place.first + class) + score;
                b.if_(beyond.gt(0.0), || sum.set(sum.get() + beyond));
            });
        });
    });
    let loss = share.sum(sum.get()) / share.n.cast(scalar);
    b.if_(share.place.lane.eq(0) & share.place.valid, || losses.store(share.place.row, loss));
}

/// `multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target[, grad_input])`
fn multilabel_backward(call: &mut Call, out: Option<usize>) -> Result<()> {
    let p = multilabel_problem(call, 1)?;
    let (grad, flags) = (as_contiguous(call, call.tensor(0)?)?, as_contiguous(call, call.tensor(4)?)?);
    p.check_gradient(&grad)?;
    check!(
        flags.sizes == p.target.sizes,
        Runtime,
        "inconsistent is_target size: {:?} for target of size: {:?}",
        flags.sizes.as_slice(),
        p.target.sizes.as_slice()
    );
    let out = call.out(out, p.input.dtype, &p.input.sizes)?;
    let dense = if out.is_contiguous() { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
    if p.rows > 0 {
        let mut key = key(&p, 0);
        key[4] = flags.dtype as u32;
        key[5] = dense.dtype as u32;
        let single = p.reduction != Reduce::None;
        let dtypes = [dense.dtype, grad.dtype, p.input.dtype, flags.dtype];
        let kernel = call
            .kernel("multilabel_margin_loss_backward", key, || build_multilabel_backward(dtypes, single, p.index()))?;
        let launcher = call.launch(kernel).write(&dense).read(&grad).read(&p.input).read(&p.target).read(&flags);
        let launcher = launcher.number(accumulator(p.input.dtype), Number::Double(1.0 / p.divisor()));
        let launcher = launcher.index(p.index(), p.input.numel()).index(p.index(), p.classes);
        launcher.threads(p.input.numel() as u64)?;
    }
    if dense.data != out.data {
        device_copy(call, &dense, &out)?;
    }
    call.ret(out);
    Ok(())
}

fn build_multilabel_backward(dtypes: [DType; 4], single: bool, index: Scalar) -> Kernel {
    let b = Builder::new("multilabel_margin_loss_backward", [GROUP, 1, 1]);
    let [out, grad, input] =
        [("grad_input", 0), ("grad_output", 1), ("input", 2)].map(|(n, i)| b.pointer(n, dtypes[i]));
    let (target, flags) = (b.pointer("target", DType::I64), b.pointer("is_target", dtypes[3]));
    let share = b.param("share", accumulator(dtypes[2]).compute());
    let (n, classes) = (b.param("n", index), b.param("classes", index));
    let i = linear_id(&b, index);
    b.if_(i.lt(n), || {
        let row = i / classes;
        let (first, own) = (row * classes, i - row * classes);
        let score = input.load(i);
        let count = b.var(share.like(0.0));
        b.if_else(
            flags.load(i).eq(0.0),
            || {
                each_target(&b, target, first, classes, |class| {
                    let beyond: Value = 1.0 - input.load(first + class) + score;
                    b.if_(beyond.gt(0.0), || count.set(count.get() + 1.0));
                });
            },
            || {
                // As often as the list names it.
                let times = b.var(share.like(0.0));
                each_target(&b, target, first, classes, |class| {
                    b.if_(class.eq(own), || times.set(times.get() + 1.0));
                });
                b.for_(classes.like(0.0), classes, 1, |k| {
                    let beyond: Value = 1.0 - score + input.load(first + k);
                    let counts = flags.load(first + k).eq(0.0) & beyond.gt(0.0);
                    b.if_(counts, || count.set(count.get() - times.get()));
                });
            },
        );
        let unit = if single { grad.load(0) } else { grad.load(row) };
        out.store(i, count.get() * (unit * share));
    });
    b.finish()
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
            kernel(&|b| write_multilabel(b, dtype, dtype, &rows));
            accepted(&build_targets(dtype, index));
            accepted(&build_multilabel_backward([dtype; 4], n > 2, index));
        }
    }
}
