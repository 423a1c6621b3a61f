//! States of examples in kernels.

use crate::loss::ctc::problem::SizeParams;
use dml_kernel::{Builder, Pointer, ScalarType, Value, math};

/// Access to examples and their states.
pub(super) struct CtcScope<'b> {
    pub(super) b: &'b Builder,
    pub(super) log_probs: Pointer<'b>,
    pub(super) targets: Pointer<'b>,
    pub(super) lengths: Pointer<'b>,
    pub(super) sizes: SizeParams<'b>,
}

/// An example.
#[derive(Copy, Clone)]
pub(super) struct CtcExample<'b> {
    pub(super) number: Value<'b>,
    pub(super) frames: Value<'b>,
    pub(super) labels: Value<'b>,
    /// Offset of its labels in the targets.
    pub(super) start: Value<'b>,
}

impl<'b> CtcScope<'b> {
    /// The example with this index, which must be valid.
    pub(super) fn example(&self, number: Value<'b>) -> CtcExample<'b> {
        let index = self.sizes.frames.scalar();
        let row = |k: u32| self.lengths.load(self.sizes.batch * k + number).cast(index);
        CtcExample { number, frames: row(0), labels: row(1), start: row(2) }
    }

    /// The label of an odd state, and blank for an even one; blank too for an invalid label.
    pub(super) fn label(&self, e: &CtcExample<'b>, state: Value<'b>) -> Value<'b> {
        let label = self.b.var(self.sizes.blank);
        self.b.if_((state & 1).eq(1), || {
            let given = self.targets.load(e.start + (state >> 1)).cast(ScalarType::I64);
            let exists = given.ge(0) & given.lt(self.sizes.labels.cast(ScalarType::I64));
            self.b.if_(exists, || label.set(given.cast(self.sizes.blank.scalar())));
        });
        label.get()
    }

    /// The log-probability of a label at a frame.
    pub(super) fn log_prob(&self, e: &CtcExample<'b>, frame: Value<'b>, label: Value<'b>) -> Value<'b> {
        self.log_probs.load((frame * self.sizes.batch + e.number) * self.sizes.labels + label)
    }

    /// Offset of a frame's states of an example.
    pub(super) fn frame(&self, e: &CtcExample<'b>, frame: Value<'b>) -> Value<'b> {
        (e.number * self.sizes.frames + frame) * self.sizes.states
    }
}

/// Log-sum-exp of the terms.
pub(super) fn log_sum<'b>(terms: &[Value<'b>]) -> Value<'b> {
    let largest = terms.iter().skip(1).fold(terms[0], |m, &x| m.max(x));
    // If all terms are minus infinity, the result is minus infinity.
    let pivot = largest.is_inf().select(largest.like(0.0), largest);
    let sum = terms.iter().map(|&x| math::exp(x - pivot)).reduce(|x, y| x + y);
    sum.map_or(largest, |sum| math::log(sum) + pivot)
}
