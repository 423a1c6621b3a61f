//! The arguments of a CTC loss, and the common parameters of its kernels.

use crate::context::Context;
use crate::error::Result;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, DType, ScalarType, Value};

/// The arguments.
pub struct Problem {
    /// `[frames, batch, labels]`, contiguous.
    pub log_probs: View,
    /// The labels of all examples, contiguous.
    pub targets: View,
    /// For each example: number of frames, number of labels, and start of its labels. int64,
    /// `[3, batch]`.
    pub lengths: View,
    /// The sizes.
    pub sizes: Sizes,
    /// Maximum number of frames of an example.
    pub max_length: i64,
}

/// Sizes, as kernel parameters.
#[derive(Copy, Clone)]
pub struct Sizes {
    /// Frames of `log_probs`.
    pub frames: i64,
    /// Number of examples.
    pub batch: i64,
    /// Number of different labels, including blank.
    pub labels: i64,
    /// Maximum number of states of an example.
    pub states: i64,
    /// The blank label.
    pub blank: i64,
}

/// Specialisation common to these kernels: everything that changes their code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spec {
    /// The dtype of log-probabilities.
    pub(super) dtype: DType,
    /// The dtype of targets: int32 or int64.
    pub(super) targets: DType,
    /// Integer type of indices.
    pub(super) index: ScalarType,
}

/// Kernel parameter: [`Sizes`].
pub(super) struct SizesOf;

/// [`Sizes`] in a kernel.
#[derive(Copy, Clone)]
pub(super) struct SizeParams<'b> {
    pub(super) frames: Value<'b>,
    pub(super) batch: Value<'b>,
    pub(super) labels: Value<'b>,
    pub(super) states: Value<'b>,
    pub(super) blank: Value<'b>,
}

impl Parameter for SizesOf {
    /// Integer type of all sizes.
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
    /// The kernels' specialisation.
    pub(super) fn spec(&self) -> Spec {
        let Sizes { frames, batch, states, .. } = self.sizes;
        let index = index_type(self.log_probs.numel().max(batch * frames * states));
        Spec { dtype: self.log_probs.dtype, targets: self.targets.dtype, index }
    }

    /// Allocates a tensor with a number for each frame and state of each example.
    pub fn paths(&self, cx: &Context) -> Result<View> {
        cx.empty(self.log_probs.dtype, &[self.sizes.batch, self.sizes.frames, self.sizes.states])
    }
}
