//! Memory of one invocation: variables and private arrays.

use super::{Builder, Operand, Value};
use crate::ir::{Inst, Stmt, VarId, VarInfo};
use crate::types::{ScalarType, Type};

/// A mutable variable.
#[derive(Copy, Clone)]
pub struct Var<'b> {
    b: &'b Builder,
    id: VarId,
    ty: Type,
}

/// A private array of one invocation.
#[derive(Copy, Clone)]
pub struct LocalArray<'b> {
    b: &'b Builder,
    id: VarId,
    ty: Type,
}

impl Builder {
    /// A variable with the initial value `init`.
    pub fn var<'b>(&'b self, init: Value<'b>) -> Var<'b> {
        let var = Var { b: self, id: self.declare_var(VarInfo { ty: init.ty, len: 1 }), ty: init.ty };
        var.set(init);
        var
    }

    /// A private array, uninitialised.
    pub fn local_array(&self, scalar: ScalarType, len: u32) -> LocalArray<'_> {
        let ty = Type::scalar(scalar);
        LocalArray { b: self, id: self.declare_var(VarInfo { ty, len }), ty }
    }
}

impl<'b> Var<'b> {
    /// Its current value.
    pub fn get(self) -> Value<'b> {
        self.b.def(self.ty, Inst::GetVar { var: self.id, index: None })
    }

    /// Assigns a value.
    pub fn set(self, value: impl Operand<'b>) {
        let value = value.value(self.b, self.ty.scalar);
        assert_eq!(self.ty, value.ty, "a variable keeps its type");
        self.b.stmt(Stmt::SetVar { var: self.id, index: None, value: value.id });
    }
}

impl<'b> LocalArray<'b> {
    /// Reads element `index` (u32).
    pub fn get(self, index: impl Operand<'b>) -> Value<'b> {
        let index = index.value(self.b, ScalarType::U32);
        self.b.def(self.ty, Inst::GetVar { var: self.id, index: Some(index.id) })
    }

    /// Writes element `index` (u32).
    pub fn set(self, index: impl Operand<'b>, value: impl Operand<'b>) {
        let index = index.value(self.b, ScalarType::U32);
        let value = value.value(self.b, self.ty.scalar);
        self.b.stmt(Stmt::SetVar { var: self.id, index: Some(index.id), value: value.id });
    }
}
