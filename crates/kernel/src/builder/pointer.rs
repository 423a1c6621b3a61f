//! Pointers to tensors.

use super::{Builder, Operand, Value};
use crate::dtype::DType;
use crate::ir::{Atomic, Inst, PointerBase, PointerId, PointerInfo, Stmt};
use crate::types::{ScalarType, Type};

/// A pointer to tensor elements; loads and stores convert between memory and compute types.
#[derive(Copy, Clone)]
pub struct Pointer<'b> {
    pub(super) b: &'b Builder,
    pub(super) id: PointerId,
    pub(super) dtype: DType,
    pub(super) read_only: bool,
}

impl<'b> Pointer<'b> {
    /// Its builder.
    pub fn builder(self) -> &'b Builder {
        self.b
    }

    pub(crate) fn id(self) -> PointerId {
        self.id
    }

    /// Element type in memory.
    pub fn dtype(self) -> DType {
        self.dtype
    }

    /// The pointer advanced by `elements` (any integer).
    pub fn offset(self, elements: Value<'b>) -> Pointer<'b> {
        self.offset_from(self.id, elements.cast(ScalarType::U64))
    }

    /// A pointer of this dtype at `base` advanced by `elements` (u64 or i64) of this dtype.
    fn offset_from(self, base: PointerId, elements: Value<'b>) -> Pointer<'b> {
        let info = PointerInfo { word: self.dtype.word(), base: PointerBase::Offset(base, elements.id) };
        let id = self.b.declare_pointer(info);
        self.b.stmt(Stmt::DefPointer(id));
        Pointer { id, ..self }
    }

    fn assert_writable(self) {
        assert!(!self.read_only, "a kernel writes through a pointer that it declared as an input");
    }

    /// The same address as a pointer to elements of another dtype.
    pub fn retyped(self, dtype: DType) -> Pointer<'b> {
        Pointer { dtype, ..self }.offset_from(self.id, self.b.int(ScalarType::U64, 0))
    }

    /// Loads element `index` without conversion: a word of the dtype, or `lanes` 32-bit words.
    pub(crate) fn load_raw(self, index: Value<'b>, ty: Type) -> Value<'b> {
        self.b.def(ty, Inst::Load { pointer: self.id, index: index.id })
    }

    /// Stores a value that [`Pointer::load_raw`] would yield.
    pub(crate) fn store_raw(self, index: Value<'b>, raw: Value<'b>) {
        self.assert_writable();
        self.b.stmt(Stmt::Store { pointer: self.id, index: index.id, value: raw.id });
    }

    /// Atomic operation on a 32 or 64-bit integer element; yields the old value.
    pub fn atomic(self, op: Atomic, index: impl Operand<'b>, value: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.dtype.compute());
        self.assert_writable();
        assert!(value.scalar().is_integer() && self.dtype.bytes() >= 4, "atomics work on 32 and 64-bit integers");
        self.b.def(value.ty, Inst::Atomic { op, pointer: self.id, index: index.id, value: value.id })
    }

    /// Stores `value` where the element equals `expected`; yields the old value.
    pub fn compare_exchange(
        self,
        index: impl Operand<'b>,
        expected: impl Operand<'b>,
        value: impl Operand<'b>,
    ) -> Value<'b> {
        self.assert_writable();
        let index = index.value(self.b, ScalarType::U32);
        let expected = expected.value(self.b, self.dtype.compute());
        let value = value.value(self.b, self.dtype.compute());
        let inst = Inst::CompareExchange { pointer: self.id, index: index.id, expected: expected.id, value: value.id };
        self.b.def(value.ty, inst)
    }
}
