//! What the tensors of one launch have in common.

use dml_kernel::DType;
use smallvec::SmallVec;

/// How a kernel gets an input.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A tensor of the results' shape, dense like them.
    Dense(DType),
    /// A tensor of one element.
    One(DType),
    /// A number of each tensor of the list.
    Number,
    /// A tensor of one element for the whole list.
    SharedTensor(DType),
    /// A number for the whole list.
    SharedNumber,
}

/// What the rows of one launch have in common: everything that changes the kernel's code beside the
/// body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The dtypes of the results.
    pub outs: SmallVec<[DType; 4]>,
    /// The rows' inputs, then the shared ones.
    pub inputs: SmallVec<[Kind; 16]>,
    /// The dtype in which values reach the body.
    pub common: DType,
    /// Elements of one access.
    pub lanes: u32,
}

impl Signature {
    /// The words of a tensor's entry in the table.
    pub fn words(&self) -> u32 {
        (1 + self.outs.len() + self.inputs.len() - self.shared().count()) as u32
    }

    /// The inputs that are the same for all tensors.
    pub fn shared(&self) -> impl Iterator<Item = Kind> {
        self.inputs.iter().copied().filter(|kind| matches!(kind, Kind::SharedTensor(_) | Kind::SharedNumber))
    }

    /// Whether its kernel can take a row of single elements of this signature: neither broadcasting
    /// nor alignment matters there.
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
