//! The types of a module, as keys of the table of declared types.

use crate::matrix_type::MatrixType;
use crate::types::{Type, Word};
use rspirv::spirv::{self, StorageClass};

#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) enum TypeKey {
    Void,
    Plain(Type),
    U8,
    U16,
    /// Pointer to a struct with a run-time array of the word, `lanes` wide.
    Buffer(Word, u8),
    /// Pointer to one element of such an array.
    Element(Word, u8),
    /// Pointer to a type by its id.
    Pointer(StorageClass, spirv::Word),
    Matrix(MatrixType),
}
