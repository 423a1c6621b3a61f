//! Connectionist temporal classification (A. Graves et al., ICML 2006): the probability of all ways in which a sequence of
//! frames can spell a shorter sequence of labels.
//!
//! A target of L labels has 2L + 1 states: blanks around the labels. `alpha[t, s]` is the log-probability of all ways to
//! be in state `s` at frame `t`, and `beta` the same from the end; both are one kernel, read from either side. A
//! workgroup has one example and keeps the last frame's states in workgroup memory; where they do not fit, every frame is
//! a launch of its own.

use crate::check;
use crate::movement::copy::{as_contiguous, fill_with};
use crate::operator::call::{Arg, Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault;
use crate::operator::host;
use crate::operator::{Operator, op};
use crate::primitives::launch::{GROUP, Launcher, linear_id};
use crate::tensor::layout::index_type;
use crate::tensor::{Place, Tensor};
use dml_kernel::{Builder, DType, Kernel, Pointer, Scalar, Value, math};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_ctc_loss", forward),
    op("aten::_ctc_loss.Tensor", forward),
    op("aten::_ctc_loss_backward", backward),
    op("aten::_ctc_loss_backward.Tensor", backward),
];

/// Bytes of workgroup memory for the states of two frames.
const STATES_BYTES: i64 = 16 << 10;

/// Checked arguments.
struct Problem {
    /// `[frames, batch, labels]`, contiguous.
    log_probs: Tensor,
    targets: Tensor,
    /// For each example: its frames, its labels, and where they begin. int64, `[3, batch]`.
    lengths: Tensor,
    frames: i64,
    batch: i64,
    labels: i64,
    /// The most states of an example.
    states: i64,
    /// The most frames of an example.
    longest: i64,
    blank: i64,
}

/// A list of integers at argument `i`, which may also be a tensor on any device.
fn integers(call: &Call, i: usize) -> Result<Vec<i64>> {
    if !matches!(call.args.get(i), Some(Arg::Tensor(_))) {
        return Ok(call.ints(i)?.to_vec());
    }
    let t = call.any_tensor(i)?;
    check!(t.dtype.is_integer(), Runtime, "{}: lengths must be integral", call.name);
    let bytes = if t.place == Place::Cpu {
        host::bytes_in_order(t)?
    } else {
        call.check_place(t)?;
        let dense = as_contiguous(call, t)?;
        let mut bytes = vec![0; dense.numel() as usize * dense.element_size() as usize];
        call.device.download(dense.data, &mut bytes)?;
        bytes
    };
    let size = t.element_size() as usize;
    Ok(bytes
        .chunks_exact(size)
        .map(|b| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(b);
            host::decode(t.dtype, wide).to_i64()
        })
        .collect())
}

impl Problem {
    /// `(log_probs, targets, input_lengths, target_lengths)` from argument `first`, and `blank`.
    fn new(call: &Call, first: usize, blank: usize) -> Result<Problem> {
        let (log_probs, targets, blank) = (call.tensor(first)?, call.tensor(first + 1)?, call.int(blank)?);
        check!(
            matches!(log_probs.dtype, DType::F32 | DType::F64),
            NotImplemented,
            "\"ctc_loss_cpu\" not implemented for '{}'",
            log_probs.dtype
        );
        check!(
            log_probs.dim() == 3,
            Runtime,
            "ctc_loss: expected log_probs [frames, batch, labels], got {}",
            log_probs.describe()
        );
        check!(
            matches!(targets.dtype, DType::I64 | DType::I32),
            Runtime,
            "ctc_loss: targets must be of dtype Long or Int, but got {}",
            targets.dtype
        );
        let (frames, batch, labels) = (log_probs.sizes[0], log_probs.sizes[1], log_probs.sizes[2]);
        check!((0..labels).contains(&blank), Runtime, "blank must be in label range");
        let (inputs, counts) = (integers(call, first + 2)?, integers(call, first + 3)?);
        check!(inputs.len() as i64 == batch, Runtime, "input_lengths must be of size batch_size");
        check!(counts.len() as i64 == batch, Runtime, "target_lengths must be of size batch_size");
        for &n in &inputs {
            check!(
                (0..=frames).contains(&n),
                Runtime,
                "Expected input_lengths to have value at most {frames}, but got value {n} (while checking arguments for \
                 ctc_loss)"
            );
        }
        for &n in &counts {
            check!(n >= 0, Runtime, "Expected target_lengths to have value at least 0, but got value {n}");
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let starts: Vec<i64> = if targets.dim() == 1 {
            let starts = counts.iter().scan(0, |at, &n| {
                *at += n;
                Some(*at - n)
            });
            let (starts, total) = (starts.collect(), counts.iter().sum::<i64>());
            check!(
                targets.numel() == total,
                Runtime,
                "Expected tensor to have size {total} at dimension 0, but got size {} for argument #2 'targets' (while \
                 checking arguments for ctc_loss)",
                targets.numel()
            );
            starts
        } else {
            check!(
                targets.dim() == 2 && targets.sizes[0] == batch && targets.sizes[1] >= most,
                Runtime,
                "Expected tensor to have size at least {most} at dimension 1, but got size {:?} for argument #2 'targets' \
                 (while checking arguments for ctc_loss)",
                targets.sizes.as_slice()
            );
            (0..batch).map(|b| b * targets.sizes[1]).collect()
        };
        let lengths = call.empty(DType::I64, &[3, batch])?;
        let bytes: Vec<u8> = inputs.iter().chain(&counts).chain(&starts).flat_map(|n| n.to_le_bytes()).collect();
        if batch > 0 {
            call.device.upload(lengths.data, &bytes)?;
        }
        Ok(Problem {
            log_probs: as_contiguous(call, log_probs)?,
            targets: as_contiguous(call, targets)?,
            lengths,
            frames,
            batch,
            labels,
            states: 2 * most + 1,
            longest: inputs.iter().copied().max().unwrap_or(0),
            blank,
        })
    }

    fn index(&self) -> Scalar {
        index_type(self.log_probs.numel().max(self.batch * self.frames * self.states))
    }

    fn key(&self, flags: u32) -> [u32; 6] {
        [self.log_probs.dtype as u32, self.targets.dtype as u32, self.index() as u32, flags, 0, 0]
    }

    /// The numbers of the gradient's kernels.
    fn numbers<'c, 'a>(&self, zero: bool, launcher: Launcher<'c, 'a>) -> Launcher<'c, 'a> {
        let index = self.index();
        let launcher = launcher.index(index, self.frames).index(index, self.batch).index(index, self.labels);
        launcher.index(index, self.states).index(index, self.blank).u32(u32::from(zero))
    }

    /// A tensor of a number for each frame and state of each example.
    fn paths(&self, call: &Call) -> Result<Tensor> {
        call.empty(self.log_probs.dtype, &[self.batch, self.frames, self.states])
    }

    /// Fills `paths` from the first frame on, or from the last.
    fn walk(&self, call: &Call, paths: &Tensor, from_end: bool) -> Result<()> {
        if self.batch == 0 {
            return Ok(());
        }
        let room = STATES_BYTES / 2 / self.log_probs.element_size() as i64;
        let fits = self.states <= room;
        let (dtypes, index) = ([self.log_probs.dtype, self.targets.dtype], self.index());
        let flags = u32::from(from_end) | u32::from(fits) << 1;
        let kernel = call.kernel("ctc_paths", self.key(flags), || build_paths(dtypes, index, from_end, fits))?;
        let launch = |step: i64| {
            let launcher = call.launch(kernel).write(paths).read(&self.log_probs).read(&self.targets);
            let launcher = launcher.read(&self.lengths).fault().u32(fault::operator(call.name));
            let launcher = launcher.index(index, self.frames).index(index, self.batch).index(index, self.labels);
            launcher.index(index, self.states).index(index, self.blank).index(index, step)
        };
        if fits {
            return launch(0).groups([self.batch.min(65_535) as u32, (self.batch as u64).div_ceil(65_535) as u32, 1]);
        }
        (0..self.longest).try_for_each(|step| launch(step).threads((self.batch * self.states) as u64))
    }
}

/// Parameters of every kernel here, and what can be asked of them.
struct Scope<'b> {
    b: &'b Builder,
    log_probs: Pointer<'b>,
    targets: Pointer<'b>,
    lengths: Pointer<'b>,
    frames: Value<'b>,
    batch: Value<'b>,
    labels: Value<'b>,
    states: Value<'b>,
    blank: Value<'b>,
}

/// An example.
#[derive(Copy, Clone)]
struct Example<'b> {
    number: Value<'b>,
    frames: Value<'b>,
    labels: Value<'b>,
    /// Where its labels begin among the targets.
    start: Value<'b>,
}

impl<'b> Scope<'b> {
    fn example(&self, number: Value<'b>) -> Example<'b> {
        let index = self.frames.scalar();
        let row = |k: u32| self.lengths.load(self.batch * k + number).cast(index);
        Example { number, frames: row(0), labels: row(1), start: row(2) }
    }

    /// The label of an odd state, and blank of an even one; blank too for a label that does not exist.
    fn label(&self, e: &Example<'b>, state: Value<'b>) -> Value<'b> {
        let label = self.b.var(self.blank);
        self.b.if_((state & 1).eq(1), || {
            let given = self.targets.load(e.start + (state >> 1)).cast(Scalar::I64);
            let exists = given.ge(0) & given.lt(self.labels.cast(Scalar::I64));
            self.b.if_(exists, || label.set(given.cast(self.blank.scalar())));
        });
        label.get()
    }

    fn log_prob(&self, e: &Example<'b>, frame: Value<'b>, label: Value<'b>) -> Value<'b> {
        self.log_probs.load((frame * self.batch + e.number) * self.labels + label)
    }

    /// Where a frame's states of an example begin.
    fn frame(&self, e: &Example<'b>, frame: Value<'b>) -> Value<'b> {
        (e.number * self.frames + frame) * self.states
    }
}

/// The logarithm of the sum of exponentials.
fn log_sum<'b>(terms: &[Value<'b>]) -> Value<'b> {
    let largest = terms.iter().skip(1).fold(terms[0], |m, &x| m.max(x));
    // Of nothing but minus infinities, minus infinity.
    let pivot = largest.is_inf().select(largest.like(0.0), largest);
    let sum = terms.iter().map(|&x| math::exp(x - pivot)).reduce(|x, y| x + y);
    sum.map_or(largest, |sum| math::log(sum) + pivot)
}

fn build_paths(dtypes: [DType; 2], index: Scalar, from_end: bool, fits: bool) -> Kernel {
    let b = Builder::new("ctc_paths", [GROUP, 1, 1]);
    write_paths(&b, dtypes, index, from_end, fits);
    b.finish()
}

fn write_paths<'b>(b: &'b Builder, dtypes: [DType; 2], index: Scalar, from_end: bool, fits: bool) {
    let (paths, log_probs) = (b.pointer("paths", dtypes[0]), b.pointer("log_probs", dtypes[0]));
    let (targets, lengths) = (b.pointer("targets", dtypes[1]), b.pointer("lengths", DType::I64));
    let (fault, operator) = (b.pointer("fault", DType::U32), b.param("operator", Scalar::U32));
    let [frames, batch, labels, states, blank, step] =
        ["frames", "batch", "labels", "states", "blank", "step"].map(|name| b.param(name, index));
    let s = Scope { b, log_probs, targets, lengths, frames, batch, labels, states, blank };
    let scalar = dtypes[0].compute();
    // Places count from the side on which the walk begins.
    let frame = |e: &Example<'b>, step: Value<'b>| if from_end { e.frames - 1 - step } else { step };
    let state = |e: &Example<'b>, place: Value<'b>| if from_end { 2 * e.labels - place } else { place };
    let never = b.float(scalar, f64::NEG_INFINITY);
    let next = |e: &Example<'b>, step: Value<'b>, place: Value<'b>, before: &dyn Fn(Value<'b>) -> Value<'b>| {
        let own = state(e, place);
        let label = s.label(e, own);
        let ways = b.var(never);
        b.if_else(
            step.eq(0),
            || b.if_(place.le(1), || ways.set(0.0)),
            || {
                let (one, two) = (b.var(never), b.var(never));
                b.if_(place.ge(1), || one.set(before(place - 1)));
                b.if_(place.ge(2), || {
                    let other = s.label(e, state(e, place - 2));
                    b.if_(other.ne(label), || two.set(before(place - 2)));
                });
                ways.set(log_sum(&[before(place), one.get(), two.get()]));
            },
        );
        let value = ways.get() + s.log_prob(e, frame(e, step), label);
        paths.store(s.frame(e, frame(e, step)) + own, value);
        value
    };
    if fits {
        let room = (STATES_BYTES / 2 / dtypes[0].bytes() as i64) as u32;
        let held = b.shared(scalar, 1, 2 * room);
        let number = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        let good = number.lt(batch);
        let e = s.example(number.min(batch - 1));
        // A label that does not exist is reported once.
        b.for_(b.local_id(0).cast(index), e.labels, GROUP, |k| {
            let label = targets.load(e.start + k).cast(Scalar::I64);
            let n = labels.cast(Scalar::I64);
            b.if_(label.lt(0) | label.ge(n), || fault::report(b, fault, operator, label, n, 2));
        });
        let count = good.select(2 * e.labels + 1, 0);
        b.for_(count.like(0.0), e.frames, 1, |step| {
            let even = (step & 1).cast(Scalar::U32) * room;
            b.for_(b.local_id(0).cast(index), count, GROUP, |place| {
                let before = |at: Value<'b>| held.load((room - even) + at.cast(Scalar::U32));
                let value = next(&e, step, place, &before);
                held.store(even + place.cast(Scalar::U32), value);
            });
            b.barrier();
        });
    } else {
        let thread = linear_id(b, index);
        let number = thread / states;
        b.if_(number.lt(batch), || {
            let e = s.example(number);
            let place = thread - number * states;
            let n = labels.cast(Scalar::I64);
            b.if_(step.eq(0) & place.lt(e.labels), || {
                let label = targets.load(e.start + place).cast(Scalar::I64);
                b.if_(label.lt(0) | label.ge(n), || fault::report(b, fault, operator, label, n, 2));
            });
            b.if_(step.lt(e.frames) & place.le(2 * e.labels), || {
                let before = |at: Value<'b>| paths.load(s.frame(&e, frame(&e, step - 1)) + state(&e, at));
                next(&e, step, place, &before);
            });
        });
    }
}

/// `_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity) -> (neg_log_likelihood, log_alpha)`
fn forward(call: &mut Call) -> Result<()> {
    let p = Problem::new(call, 0, 4)?;
    let (loss, alpha) = (call.empty(p.log_probs.dtype, &[p.batch])?, p.paths(call)?);
    fill_with(call, &alpha, Number::Double(f64::NEG_INFINITY))?;
    p.walk(call, &alpha, false)?;
    if p.batch > 0 {
        let (dtype, index) = (p.log_probs.dtype, p.index());
        let kernel = call.kernel("ctc_loss", p.key(0), || build_loss(dtype, index))?;
        let launcher = call.launch(kernel).write(&loss).read(&alpha).read(&p.lengths);
        launcher.index(index, p.frames).index(index, p.batch).index(index, p.states).threads(p.batch as u64)?;
    }
    call.ret(loss);
    call.ret(alpha);
    Ok(())
}

/// The ways that end in one of the last two states.
fn build_loss(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("ctc_loss", [GROUP, 1, 1]);
    let (loss, alpha, lengths) =
        (b.pointer("loss", dtype), b.pointer("alpha", dtype), b.pointer("lengths", DType::I64));
    let [frames, batch, states] = ["frames", "batch", "states"].map(|name| b.param(name, index));
    let i = linear_id(&b, index);
    b.if_(i.lt(batch), || {
        let (own, labels) = (lengths.load(i).cast(index), lengths.load(batch + i).cast(index));
        let none = b.float(dtype.compute(), f64::NEG_INFINITY);
        let (last, before) = (b.var(none), b.var(none));
        b.if_else(
            own.eq(0),
            // No frames spell no labels.
            || b.if_(labels.eq(0), || last.set(0.0)),
            || {
                let at = (i * frames + own - 1) * states + 2 * labels;
                last.set(alpha.load(at));
                b.if_(labels.gt(0), || before.set(alpha.load(at - 1)));
            },
        );
        loss.store(i, -log_sum(&[last.get(), before.get()]));
    });
    b.finish()
}

/// `_ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank,
/// zero_infinity)`: the gradient by log-probabilities that came out of log_softmax (it is that of log_softmax's input)
fn backward(call: &mut Call) -> Result<()> {
    let p = Problem::new(call, 1, 7)?;
    let zero = call.opt_scalar(8)?.is_some_and(|z| z.to_i64() != 0);
    let (grad, loss, alpha) = (call.tensor(0)?, call.tensor(5)?, call.tensor(6)?);
    check!(
        grad.numel() == p.batch && loss.numel() == p.batch && alpha.sizes.as_slice() == [p.batch, p.frames, p.states],
        Runtime,
        "ctc_loss: gradient {}, loss {} and log_alpha {} do not belong together",
        grad.describe(),
        loss.describe(),
        alpha.describe()
    );
    let out = call.empty(p.log_probs.dtype, &p.log_probs.sizes)?;
    if out.numel() > 0 {
        let (grad, loss, alpha) = (as_contiguous(call, grad)?, as_contiguous(call, loss)?, as_contiguous(call, alpha)?);
        let beta = p.paths(call)?;
        p.walk(call, &beta, true)?;
        let (dtype, index) = (p.log_probs.dtype, p.index());
        let kernel = call.kernel("ctc_gradient_rest", p.key(0), || build_rest(dtype, index))?;
        let launcher = call.launch(kernel).write(&out).read(&grad).read(&loss).read(&p.log_probs).read(&p.lengths);
        p.numbers(zero, launcher).threads(out.numel() as u64)?;

        let most = (p.states - 1) / 2;
        let next = call.empty(DType::I64, &[p.batch, most])?;
        let dtypes = [dtype, p.targets.dtype];
        if most > 0 {
            let kernel = call.kernel("ctc_links", p.key(0), || build_links(dtypes[1], index))?;
            let launcher = call.launch(kernel).write(&next).read(&p.targets).read(&p.lengths);
            launcher.index(index, p.batch).index(index, most).threads((p.batch * most) as u64)?;
        }
        let kernel = call.kernel("ctc_gradient", p.key(0), || build_gradient(dtypes, index))?;
        let launcher = call.launch(kernel).write(&out).read(&grad).read(&loss).read(&alpha).read(&beta);
        let launcher = launcher.read(&next).read(&p.log_probs).read(&p.targets).read(&p.lengths);
        p.numbers(zero, launcher).threads((p.frames * p.batch * (most + 1)) as u64)?;
    }
    call.ret(out);
    Ok(())
}

/// The gradient of labels that no state has, of frames beyond an example's, and of examples that cannot be spelled.
fn build_rest(dtype: DType, index: Scalar) -> Kernel {
    let b = Builder::new("ctc_gradient_rest", [GROUP, 1, 1]);
    let [out, grad, loss, log_probs] = ["out", "grad", "loss", "log_probs"].map(|name| b.pointer(name, dtype));
    let lengths = b.pointer("lengths", DType::I64);
    let [frames, batch, labels, _, _] =
        ["frames", "batch", "labels", "states", "blank"].map(|name| b.param(name, index));
    let zero = b.param("zero", Scalar::U32);
    let i = linear_id(&b, index);
    let row = i / labels;
    b.if_(row.lt(frames * batch), || {
        let frame = row / batch;
        let example = row - frame * batch;
        let value = b.var(b.float(dtype.compute(), 0.0));
        b.if_(frame.lt(lengths.load(example).cast(index)), || {
            let lost = loss.load(example).is_inf();
            let usual = math::exp(log_probs.load(i)) * grad.load(example);
            let impossible = zero.ne(0).select(usual.like(0.0), usual.like(f64::NAN));
            value.set(lost.select(impossible, usual));
        });
        out.store(i, value.get());
    });
    b.finish()
}

/// For each label of an example: the place of the next equal one (or the number of labels), and -1 minus it where an
/// earlier one is equal.
fn build_links(targets: DType, index: Scalar) -> Kernel {
    let b = Builder::new("ctc_links", [GROUP, 1, 1]);
    let (next, targets, lengths) =
        (b.pointer("next", DType::I64), b.pointer("targets", targets), b.pointer("lengths", DType::I64));
    let (batch, most) = (b.param("batch", index), b.param("most", index));
    let i = linear_id(&b, index);
    let example = i / most;
    let place = i - example * most;
    b.if_(example.lt(batch), || {
        let count = lengths.load(batch + example).cast(index);
        b.if_(place.lt(count), || {
            let start = lengths.load(batch * 2 + example).cast(index);
            let label = targets.load(start + place);
            let (first, k) = (b.var(b.bool(true)), b.var(place.like(0.0)));
            b.while_(
                || first.get() & k.get().lt(place),
                || {
                    first.set(targets.load(start + k.get()).ne(label));
                    k.set(k.get() + 1);
                },
            );
            let (found, k) = (b.var(b.bool(false)), b.var(place + 1));
            b.while_(
                || !found.get() & k.get().lt(count),
                || b.if_else(targets.load(start + k.get()).eq(label), || found.set(true), || k.set(k.get() + 1)),
            );
            let after = k.get().cast(Scalar::I64);
            next.store(i, first.get().select(after, -1 - after));
        });
    });
    b.finish()
}

/// The gradient of the labels that states have: of every label by the invocation of its first place, and of blank.
fn build_gradient(dtypes: [DType; 2], index: Scalar) -> Kernel {
    let b = Builder::new("ctc_gradient", [GROUP, 1, 1]);
    write_gradient(&b, dtypes, index);
    b.finish()
}

fn write_gradient(b: &Builder, dtypes: [DType; 2], index: Scalar) {
    let [out, grad, loss, alpha, beta] =
        ["out", "grad", "loss", "alpha", "beta"].map(|name| b.pointer(name, dtypes[0]));
    let next = b.pointer("next", DType::I64);
    let (log_probs, targets) = (b.pointer("log_probs", dtypes[0]), b.pointer("targets", dtypes[1]));
    let lengths = b.pointer("lengths", DType::I64);
    let [frames, batch, labels, states, blank] =
        ["frames", "batch", "labels", "states", "blank"].map(|name| b.param(name, index));
    b.param("zero", Scalar::U32);
    let s = Scope { b, log_probs, targets, lengths, frames, batch, labels, states, blank };
    let most = states >> 1;
    let thread = linear_id(b, index);
    let row = thread / (most + 1);
    let place = thread - row * (most + 1);
    let frame = row / batch;
    let number = row - frame * batch;
    let of_blank = place.eq(most);
    b.if_(frame.lt(frames), || {
        let e = s.example(number);
        let nll = loss.load(number);
        let wanted = b.var(frame.lt(e.frames) & !nll.is_inf());
        b.if_(wanted.get() & !of_blank, || {
            wanted.set(place.lt(e.labels));
            b.if_(wanted.get(), || wanted.set(next.load(number * most + place).ge(0)));
        });
        b.if_(wanted.get(), || {
            let first = s.frame(&e, frame);
            let total = b.var(b.float(dtypes[0].compute(), f64::NEG_INFINITY));
            // Even states from the first for blank; odd ones from link to link for a label.
            let state = b.var(of_blank.select(place.like(0.0), 2 * place + 1));
            b.while_(
                || state.get().le(2 * e.labels),
                || {
                    let at = state.get();
                    total.set(log_sum(&[total.get(), alpha.load(first + at) + beta.load(first + at)]));
                    state.set(at + 2);
                    b.if_(!of_blank, || {
                        let link = next.load(number * most + (at >> 1));
                        let link = link.lt(0).select(-1 - link, link);
                        state.set(2 * link.cast(index) + 1);
                    });
                },
            );
            let label = b.var(blank);
            b.if_(!of_blank, || label.set(s.label(&e, 2 * place + 1)));
            let log_prob = s.log_prob(&e, frame, label.get());
            let value = math::exp(log_prob) - math::exp(total.get() + nll - log_prob);
            let at = (frame * batch + number) * labels + label.get();
            // A label that does not exist was read as blank, which has its own invocation.
            b.if_(of_blank | label.get().ne(blank), || out.store(at, value * grad.load(number)));
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtypes, index) in [([DType::F32, DType::I32], Scalar::U32), ([DType::F64, DType::I64], Scalar::U64)] {
            for (from_end, fits) in [(false, true), (true, false)] {
                accepted(&build_paths(dtypes, index, from_end, fits));
            }
            accepted(&build_loss(dtypes[0], index));
            accepted(&build_rest(dtypes[0], index));
            accepted(&build_links(dtypes[1], index));
            accepted(&build_gradient(dtypes, index));
        }
    }
}
