//! What a pointwise kernel says of itself, so that it can be fused with others.

use dml_kernel::{DType, Element, ScalarType};
use smallvec::SmallVec;

/// What the queue must know of a dense pointwise kernel to fuse it with others. It takes [`PointwiseParameters`](crate::PointwiseParameters) and counts its
/// elements in 32 bits.
#[derive(Debug)]
pub struct Pointwise {
    /// What it computes of one element.
    pub element: Element,
    /// The dtypes of its results.
    pub outs: SmallVec<[DType; 2]>,
    /// Its inputs, in the order of the element's.
    pub inputs: SmallVec<[PointwiseInput; 4]>,
}

/// An input of a pointwise kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PointwiseInput {
    /// A tensor; a constant one is one element for all.
    Tensor {
        /// Its dtype.
        dtype: DType,
        /// Whether it is one element.
        constant: bool,
    },
    /// A number of the compute type; a bool travels as u32.
    Number(ScalarType),
}
