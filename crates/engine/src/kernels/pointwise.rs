//! Descriptions of pointwise kernels, for fusion.

use dml_kernel::{DType, Element, ScalarType};
use smallvec::SmallVec;

/// The description of a dense pointwise kernel that the queue may fuse with others. The kernel has
/// [`PointwiseParameters`](crate::PointwiseParameters) and counts its elements in 32 bits.
#[derive(Debug)]
pub struct Pointwise {
    /// The computation on one element.
    pub element: Element,
    /// The dtypes of its results.
    pub outs: SmallVec<[DType; 2]>,
    /// Its inputs, in the order of the element's inputs.
    pub inputs: SmallVec<[PointwiseInput; 4]>,
}

/// An input of a pointwise kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PointwiseInput {
    /// A tensor, or one element that is used for all.
    Tensor {
        /// Its dtype.
        dtype: DType,
        /// Whether it is one element.
        constant: bool,
    },
    /// A number of the compute type; a bool is passed as u32.
    Number(ScalarType),
}
