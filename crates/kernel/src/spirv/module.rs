//! Emitted modules.

use crate::group_counts::GroupCounts;
use crate::matrix_type::MatrixType;

/// Largest parameter block that is passed as push constants, in bytes: the least size that Vulkan
/// guarantees (`maxPushConstantsSize`).
pub const MAX_PUSH_BYTES: u32 = 128;

/// An emitted kernel.
#[derive(Clone, Debug)]
pub struct Module {
    /// SPIR-V words; the entry point is `main`.
    pub words: Vec<u32>,
    /// The kernel's name.
    pub name: String,
    /// Bytes of push constants.
    pub push_bytes: u32,
    /// Bytes of the parameter block.
    pub param_bytes: u32,
    /// Whether the parameter block is in memory and the push constant is its 8-byte address.
    pub indirect: bool,
    /// Invocations in a workgroup, per dimension.
    pub workgroup_size: [u32; 3],
    /// The features that an adapter must support to run the module.
    pub needs: Needs,
    /// Types of the matrices that are multiplied on matrix units: left, right, sum. Each
    /// combination is listed once.
    pub products: Vec<[MatrixType; 3]>,
    /// The dimensions along which a launch may be split.
    pub counts: GroupCounts,
}

/// The features and limits that an adapter must have to run a module.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Needs {
    pub f64: bool,
    pub i64: bool,
    pub i16: bool,
    pub i8: bool,
    pub f16_storage: bool,
    pub i8_storage: bool,
    pub atomics_i64: bool,
    pub subgroup_arithmetic: bool,
    pub subgroup_shuffle: bool,
    /// 16-bit floats.
    pub f16: bool,
    /// Matrix units; [`Module::products`] lists the types.
    pub matrix: bool,
    /// Matrix units that multiply bf16.
    pub bf16_matrix: bool,
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
    /// Invocations in a workgroup.
    pub workgroup_invocations: u32,
}
