//! The log-probabilities of all paths to each state at each frame. A workgroup processes one
//! example and keeps the last frame's states in workgroup memory; if they do not fit, every frame
//! is a separate launch.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::loss::ctc::problem::{Problem, SizesOf, Spec};
use crate::loss::ctc::states::{CtcExample, CtcScope, log_sum};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::max_loop_iterations;
use crate::view::View;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::{self, GROUP, linear_id};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Bytes of workgroup memory for the states of two frames.
const STATES_BYTES: i64 = 16 << 10;

/// Maximum number of states of a frame in workgroup memory.
fn max_states(dtype: DType) -> i64 {
    STATES_BYTES / 2 / dtype.bytes() as i64
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PathsSpec {
    of: Spec,
    /// From the last frame and state to the first.
    from_end: bool,
    /// States are kept in workgroup memory, in one launch for all frames.
    fits: bool,
}

parameters! {
    PathsSpec as s => Arguments, Parameters {
        paths: Output = s.of.dtype,
        log_probs: Input = s.of.dtype,
        targets: Input = s.of.targets,
        lengths: Input = DType::I64,
        fault: Fault,
        sizes: SizesOf = s.of.index,
        /// The frame of the launch, if every frame is a launch.
        step: Index = s.of.index,
    }
}

/// Fills `paths` from the first frame to the last, or in reverse.
pub(super) fn fill_paths(cx: &Context, p: &Problem, paths: &View, from_end: bool) -> Result<()> {
    let (batch, states) = (p.sizes.batch, p.sizes.states);
    if batch == 0 {
        return Ok(());
    }
    // An invocation has several states of each frame.
    let turns = p.sizes.frames * (2 + states / i64::from(GROUP));
    let fits =
        states <= max_states(p.log_probs.dtype) && max_loop_iterations(cx).is_none_or(|allowed| turns <= allowed);
    let spec = PathsSpec { of: p.spec(), from_end, fits };
    let arguments = |step: i64| Arguments {
        paths,
        log_probs: &p.log_probs,
        targets: &p.targets,
        lengths: &p.lengths,
        fault: cx.fault_of_index(),
        sizes: p.sizes,
        step,
    };
    if fits {
        return cx.run(&spec, &arguments(0), dense::folded(batch as u64));
    }
    (0..p.max_length).try_for_each(|step| cx.run_threads(&spec, &arguments(step), (batch * states) as u64))
}

impl KernelSpec for PathsSpec {
    fn name(&self) -> &'static str {
        "ctc_paths"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        write(b, self, p);
    }
}

fn write<'b>(b: &'b Builder, spec: &PathsSpec, p: Parameters<'b>) {
    let Parameters { paths, log_probs, targets, lengths, fault, sizes, step } = p;
    let &PathsSpec { of: Spec { dtype, index, .. }, from_end, fits } = spec;
    let s = CtcScope { b, log_probs, targets, lengths, sizes };
    let (batch, states) = (sizes.batch, sizes.states);
    let scalar = dtype.compute();
    // Reports an invalid label.
    let check = |label: Value<'b>| {
        let (label, labels) = (label.cast(ScalarType::I64), sizes.labels.cast(ScalarType::I64));
        b.if_(label.lt(0) | label.ge(labels), || fault.report(label, labels, 2));
    };
    // Positions count from the end at which the iteration begins.
    let frame = |e: &CtcExample<'b>, step: Value<'b>| if from_end { e.frames - 1 - step } else { step };
    let state = |e: &CtcExample<'b>, position: Value<'b>| if from_end { 2 * e.labels - position } else { position };
    let never = b.float(scalar, f64::NEG_INFINITY);
    let next = |e: &CtcExample<'b>, step: Value<'b>, position: Value<'b>, before: &dyn Fn(Value<'b>) -> Value<'b>| {
        let own = state(e, position);
        let label = s.label(e, own);
        let ways = b.var(never);
        b.if_else(
            step.eq(0),
            || b.if_(position.le(1), || ways.set(0.0)),
            || {
                let (one, two) = (b.var(never), b.var(never));
                b.if_(position.ge(1), || one.set(before(position - 1)));
                b.if_(position.ge(2), || {
                    let other = s.label(e, state(e, position - 2));
                    b.if_(other.ne(label), || two.set(before(position - 2)));
                });
                ways.set(log_sum(&[before(position), one.get(), two.get()]));
            },
        );
        let value = ways.get() + s.log_prob(e, frame(e, step), label);
        paths.store(s.frame(e, frame(e, step)) + own, value);
        value
    };
    if fits {
        let room = max_states(dtype) as u32;
        let shared_paths = b.shared(scalar, 1, 2 * room);
        let number = b.group_id(0).cast(index) + b.group_id(1).cast(index) * b.group_count(0).cast(index);
        let good = number.lt(batch);
        let e = s.example(number.min(batch - 1));
        // An invalid label is reported once.
        b.for_(b.local_id(0).cast(index), e.labels, GROUP, |k| {
            check(targets.load(e.start + k));
        });
        let count = good.select(2 * e.labels + 1, 0);
        b.for_(count.like(0.0), e.frames, 1, |step| {
            let even = (step & 1).cast(ScalarType::U32) * room;
            b.for_(b.local_id(0).cast(index), count, GROUP, |position| {
                let before = |at: Value<'b>| shared_paths.load((room - even) + at.cast(ScalarType::U32));
                let value = next(&e, step, position, &before);
                shared_paths.store(even + position.cast(ScalarType::U32), value);
            });
            b.barrier();
        });
    } else {
        let thread = linear_id(b, index);
        let number = thread / states;
        b.if_(number.lt(batch), || {
            let e = s.example(number);
            let position = thread - number * states;
            b.if_(step.eq(0) & position.lt(e.labels), || check(targets.load(e.start + position)));
            b.if_(step.lt(e.frames) & position.le(2 * e.labels), || {
                let before = |at: Value<'b>| paths.load(s.frame(&e, frame(&e, step - 1)) + state(&e, at));
                next(&e, step, position, &before);
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, targets, index) in
            [(DType::F32, DType::I32, ScalarType::U32), (DType::F64, DType::I64, ScalarType::U64)]
        {
            for (from_end, fits) in [(false, true), (true, false)] {
                accepted(&PathsSpec { of: Spec { dtype, targets, index }, from_end, fits }.build());
            }
        }
    }
}
