//! A kernel, and the indices into it.

use super::{Block, Param, PointerInfo, SharedInfo, ValueInfo, VarInfo};
use crate::matrix_type::MatrixType;

/// Index of a value in [`Kernel::values`].
pub type ValueId = u32;
/// Index of a variable in [`Kernel::vars`].
pub type VarId = u32;
/// Index of a pointer in [`Kernel::pointers`].
pub type PointerId = u32;
/// Index of a shared array in [`Kernel::shared`].
pub type SharedId = u32;
/// Index of a matrix register in [`Kernel::matrices`].
pub type MatrixId = u32;

/// One compute kernel. [`text`](crate::text) is its lossless text form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// For error messages and profiles.
    pub name: String,
    /// Invocations in a workgroup, per dimension.
    pub workgroup_size: [u32; 3],
    /// The parameter block, in order.
    pub params: Vec<Param>,
    /// Every value, in the order of creation.
    pub values: Vec<ValueInfo>,
    /// Mutable variables and private arrays.
    pub vars: Vec<VarInfo>,
    /// Pointers: parameters, and parameters moved by an offset.
    pub pointers: Vec<PointerInfo>,
    /// Arrays shared by a workgroup.
    pub shared: Vec<SharedInfo>,
    /// Matrix registers of each subgroup.
    pub matrices: Vec<MatrixType>,
    /// The statements.
    pub body: Block,
}
