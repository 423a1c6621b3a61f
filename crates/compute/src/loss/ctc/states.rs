//! States of examples, as kernels find them.

use crate::loss::ctc::problem::SizeParams;
use dml_kernel::{Builder, Pointer, ScalarType, Value, math};

/// What kernels can ask of examples and their states.
pub struct Scope<'b> {
    pub b: &'b Builder,
    pub log_probs: Pointer<'b>,
    pub targets: Pointer<'b>,
    pub lengths: Pointer<'b>,
    pub sizes: SizeParams<'b>,
}

/// An example.
#[derive(Copy, Clone)]
pub struct Example<'b> {
    pub number: Value<'b>,
    pub frames: Value<'b>,
    pub labels: Value<'b>,
    /// Where its labels begin among the targets.
    pub start: Value<'b>,
}

impl<'b> Scope<'b> {
    /// The example of this number, which must exist.
    pub fn example(&self, number: Value<'b>) -> Example<'b> {
        let index = self.sizes.frames.scalar();
        let row = |k: u32| self.lengths.load(self.sizes.batch * k + number).cast(index);
        Example { number, frames: row(0), labels: row(1), start: row(2) }
    }

    /// The label of an odd state, and blank of an even one; blank too for a label that does not
    /// exist.
    pub fn label(&self, e: &Example<'b>, state: Value<'b>) -> Value<'b> {
        let label = self.b.var(self.sizes.blank);
        self.b.if_((state & 1).eq(1), || {
            let given = self.targets.load(e.start + (state >> 1)).cast(ScalarType::I64);
            let exists = given.ge(0) & given.lt(self.sizes.labels.cast(ScalarType::I64));
            self.b.if_(exists, || label.set(given.cast(self.sizes.blank.scalar())));
        });
        label.get()
    }

    /// The log-probability of a label at a frame.
    pub fn log_prob(&self, e: &Example<'b>, frame: Value<'b>, label: Value<'b>) -> Value<'b> {
        self.log_probs.load((frame * self.sizes.batch + e.number) * self.sizes.labels + label)
    }

    /// Where a frame's states of an example begin.
    pub fn frame(&self, e: &Example<'b>, frame: Value<'b>) -> Value<'b> {
        (e.number * self.sizes.frames + frame) * self.sizes.states
    }
}

/// The logarithm of the sum of exponentials.
pub fn log_sum<'b>(terms: &[Value<'b>]) -> Value<'b> {
    let largest = terms.iter().skip(1).fold(terms[0], |m, &x| m.max(x));
    // Of nothing but minus infinities, minus infinity.
    let pivot = largest.is_inf().select(largest.like(0.0), largest);
    let sum = terms.iter().map(|&x| math::exp(x - pivot)).reduce(|x, y| x + y);
    sum.map_or(largest, |sum| math::log(sum) + pivot)
}
