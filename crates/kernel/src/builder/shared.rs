//! Workgroup memory.

use super::{Builder, Operand, Value};
use crate::ir::{Atomic, Inst, SharedId, SharedInfo, Stmt};
use crate::types::{ScalarType, Type};

/// An array in workgroup memory. Elements are compute scalars, or vectors of them.
#[derive(Copy, Clone)]
pub struct Shared<'b> {
    b: &'b Builder,
    id: SharedId,
    ty: Type,
}

impl Builder {
    /// A workgroup array of `len` elements, each a vector of `lanes` scalars (1, 2 or 4).
    pub fn shared(&self, scalar: ScalarType, lanes: u8, len: u32) -> Shared<'_> {
        assert!(scalar != ScalarType::Bool, "shared memory holds numbers");
        let ty = Type { scalar, lanes };
        Shared { b: self, id: self.declare_shared(SharedInfo { ty, len }), ty }
    }

    /// The workgroup array of `len` f32 through which emulated matrices exchange components: one
    /// array for each length.
    pub(crate) fn exchange(&self, len: u32) -> Shared<'_> {
        let known = self.state.borrow().exchanges.get(&len).copied();
        if let Some(id) = known {
            return Shared { b: self, id, ty: Type::scalar(ScalarType::F32) };
        }
        let shared = self.shared(ScalarType::F32, 1, len);
        self.state.borrow_mut().exchanges.insert(len, shared.id);
        shared
    }
}

impl<'b> Shared<'b> {
    pub(crate) fn id(self) -> SharedId {
        self.id
    }

    /// Lanes of an element.
    pub fn lanes(self) -> u8 {
        self.ty.lanes
    }

    /// Scalar type of an element.
    pub fn scalar(self) -> ScalarType {
        self.ty.scalar
    }

    /// Reads element `index` (u32): a scalar, or a vector as declared.
    pub fn load(self, index: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        self.b.def(self.ty, Inst::LoadShared { shared: self.id, index: index.id })
    }

    /// Writes element `index` (u32).
    pub fn store(self, index: impl Operand<'b>, value: impl Operand<'b>) {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        assert_eq!(self.ty, value.ty, "shared memory keeps its type");
        self.b.stmt(Stmt::StoreShared { shared: self.id, index: index.id, lane: None, value: value.id });
    }

    /// Atomic operation on element `index` (u32) of an array of 32-bit integers; yields the old
    /// value. It orders no other accesses; a barrier does.
    pub fn atomic(self, op: Atomic, index: impl Operand<'b>, value: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        assert!(self.ty.lanes == 1 && self.ty.scalar.is_integer() && self.ty.scalar.bytes() == 4);
        self.b.def(value.ty, Inst::AtomicShared { op, shared: self.id, index: index.id, value: value.id })
    }

    /// Writes lane `lane` (u32) of the vector element `index` (u32), and leaves its other lanes
    /// unchanged: for transposing a tile while it is stored to shared memory.
    pub fn store_lane(self, index: impl Operand<'b>, lane: impl Operand<'b>, value: impl Operand<'b>) {
        if self.ty.lanes == 1 {
            return self.store(index, value);
        }
        let index = index.value(self.b, ScalarType::U32);
        let lane = lane.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        assert_eq!(Type::scalar(self.ty.scalar), value.ty, "shared memory keeps its type");
        let lane = Some(lane.id);
        self.b.stmt(Stmt::StoreShared { shared: self.id, index: index.id, lane, value: value.id });
    }
}
