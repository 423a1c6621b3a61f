//! Declarations of a kernel: parameters, values, and memory.

use super::{Inst, PointerId, ValueId};
use crate::dtype::DType;
use crate::types::{ScalarType, Type, Word};

/// A parameter. The block is laid out in order, each member aligned to its size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name, for people.
    pub name: String,
    /// Its kind.
    pub kind: ParamKind,
}

/// The kind of a parameter.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// A tensor, by its 8-byte address.
    #[allow(missing_docs)]
    Pointer {
        pointer: PointerId,
        /// The dtype of its elements. A kernel loads words ([`PointerInfo::word`]) and converts
        /// them.
        dtype: DType,
        /// Whether the kernel may write to it. Launches are not ordered by accesses to tensors that
        /// both only read.
        writable: bool,
    },
    /// A number (never a bool).
    Scalar(ScalarType),
    /// A 64-bit integer as its two 32-bit words, low first.
    Words,
}

impl ParamKind {
    /// Bytes in the block; also its alignment.
    pub const fn bytes(self) -> u32 {
        match self {
            ParamKind::Pointer { .. } | ParamKind::Words => 8,
            ParamKind::Scalar(s) => s.bytes(),
        }
    }
}

/// Offsets of the members of a parameter block, and its size.
pub fn param_offsets(params: &[Param]) -> (Vec<u32>, u32) {
    let mut offset = 0u32;
    let offsets = params
        .iter()
        .map(|p| {
            let bytes = p.kind.bytes();
            offset = offset.next_multiple_of(bytes);
            let at = offset;
            offset += bytes;
            at
        })
        .collect();
    (offsets, offset.next_multiple_of(4))
}

/// A value's type and definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ValueInfo {
    /// Its type.
    pub ty: Type,
    /// Its definition.
    pub inst: Inst,
}

/// A mutable variable of one invocation; `len` above 1 makes it an array.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct VarInfo {
    /// Element type.
    pub ty: Type,
    /// Elements.
    pub len: u32,
}

/// A pointer into a tensor.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PointerInfo {
    /// The word of its elements in memory.
    pub word: Word,
    /// The address that it is derived from.
    pub base: PointerBase,
}

/// The origin of a pointer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum PointerBase {
    /// Member of the parameter block.
    Param(u32),
    /// Another pointer, advanced by a number of elements (u64 or i64).
    Offset(PointerId, ValueId),
    /// The address in a value: two u32, low first. Only [lowered](crate::Target) kernels have such
    /// pointers.
    Address(ValueId),
}

/// An array shared by a workgroup.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedInfo {
    /// Element type.
    pub ty: Type,
    /// Elements.
    pub len: u32,
}
