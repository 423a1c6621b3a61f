//! The signature that the tensors of one launch share.

use dml_kernel::DType;
use smallvec::SmallVec;

/// How an input is passed to a kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A tensor with the results' shape and strides, dense.
    Dense(DType),
    /// A tensor of one element.
    One(DType),
    /// A number for each tensor of the list.
    Number,
    /// A tensor of one element, for the whole list.
    SharedTensor(DType),
    /// A number for the whole list.
    ListScalar,
}

/// What the rows of one launch share: everything besides the function that changes the kernel's
/// code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The dtypes of the results.
    pub outs: SmallVec<[DType; 4]>,
    /// The rows' inputs, then the shared inputs.
    pub inputs: SmallVec<[Kind; 16]>,
    /// The dtype to which values are converted for the function.
    pub common: DType,
    /// Elements of one access (vector width).
    pub lanes: u32,
}

impl Signature {
    /// The words of a tensor's entry in the table.
    pub fn words(&self) -> u32 {
        (1 + self.outs.len() + self.inputs.len() - self.shared().count()) as u32
    }

    /// The inputs that all tensors share.
    pub fn shared(&self) -> impl Iterator<Item = Kind> {
        self.inputs.iter().copied().filter(|kind| matches!(kind, Kind::SharedTensor(_) | Kind::ListScalar))
    }

    /// Whether the kernel of this signature can compute a row of one-element tensors: for these
    /// neither broadcasting nor alignment matters.
    pub fn takes_one(&self, row: &Signature) -> bool {
        let alike = |a: Kind, b: Kind| match (a, b) {
            (Kind::Dense(a) | Kind::One(a), Kind::Dense(b) | Kind::One(b)) => a == b,
            _ => a == b,
        };
        let pairs = || self.inputs.iter().zip(&row.inputs);
        self.outs == row.outs
            && self.common == row.common
            && self.inputs.len() == row.inputs.len()
            && pairs().all(|(&a, &b)| alike(a, b))
    }
}
