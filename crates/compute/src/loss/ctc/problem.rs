//! The checked arguments of a CTC loss, and what its kernels share of them.

use crate::context::Context;
use crate::error::Result;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// Checked arguments.
pub struct Problem {
    /// `[frames, batch, labels]`, contiguous.
    pub log_probs: View,
    /// The labels of all examples, contiguous.
    pub targets: View,
    /// For each example: its frames, its labels, and where they begin. int64, `[3, batch]`.
    pub lengths: View,
    /// How large all of it is.
    pub sizes: Sizes,
    /// The most frames of an example.
    pub longest: i64,
}

/// The numbers that kernels take.
#[derive(Copy, Clone)]
pub struct Sizes {
    /// Frames of `log_probs`.
    pub frames: i64,
    /// Examples.
    pub batch: i64,
    /// Labels that there are, with blank.
    pub labels: i64,
    /// The most states of an example.
    pub states: i64,
    /// The label that stands for none.
    pub blank: i64,
}

/// What changes the code of every kernel here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Of log-probabilities.
    pub dtype: DType,
    /// Of targets: int32 or int64.
    pub targets: DType,
    /// The type of indices.
    pub index: ScalarType,
}

/// [`Sizes`] as a kernel's parameter.
pub struct SizesOf;

/// [`Sizes`] in a kernel.
#[derive(Copy, Clone)]
pub struct SizeParams<'b> {
    pub frames: Value<'b>,
    pub batch: Value<'b>,
    pub labels: Value<'b>,
    pub states: Value<'b>,
    pub blank: Value<'b>,
}

impl Parameter for SizesOf {
    /// The type of all.
    type Type = ScalarType;
    type Argument<'a> = Sizes;
    type Declared<'b> = SizeParams<'b>;

    fn declare<'b>(b: &'b Builder, _: &str, index: &ScalarType) -> SizeParams<'b> {
        let [frames, batch, labels, states, blank] =
            ["frames", "batch", "labels", "states", "blank"].map(|name| b.param(name, *index));
        SizeParams { frames, batch, labels, states, blank }
    }

    fn pass(sizes: &Sizes, index: &ScalarType, block: &mut ArgumentBlock) {
        for size in [sizes.frames, sizes.batch, sizes.labels, sizes.states, sizes.blank] {
            Index::pass(&size, index, block);
        }
    }
}

impl Problem {
    /// What the kernels are specialised by.
    pub fn spec(&self) -> Spec {
        let Sizes { frames, batch, states, .. } = self.sizes;
        let index = index_type(self.log_probs.numel().max(batch * frames * states));
        Spec { dtype: self.log_probs.dtype, targets: self.targets.dtype, index }
    }

    /// A tensor of a number for each frame and state of each example.
    pub fn paths(&self, cx: &Context) -> Result<View> {
        cx.empty(self.log_probs.dtype, &[self.sizes.batch, self.sizes.frames, self.sizes.states])
    }
}
