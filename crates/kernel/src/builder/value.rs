//! Values.

use super::{Builder, Operand};
use crate::ir::{Inst, Subgroup, ValueId};
use crate::types::{ScalarType, Type};

/// A number, a bool or a short vector inside the kernel.
#[derive(Copy, Clone)]
pub struct Value<'b> {
    pub(crate) b: &'b Builder,
    pub(crate) id: ValueId,
    pub(super) ty: Type,
}

impl Builder {
    /// A vector of 2 or 4 values of one type.
    pub fn vector<'b>(&'b self, lanes: &[Value<'b>]) -> Value<'b> {
        let ty = Type { scalar: lanes[0].ty.scalar, lanes: lanes.len() as u8 };
        self.def(ty, Inst::Vector(lanes.iter().map(|v| v.id).collect()))
    }
}

impl<'b> Value<'b> {
    /// Its builder.
    pub fn builder(self) -> &'b Builder {
        self.b
    }

    /// Its scalar type.
    pub fn scalar(self) -> ScalarType {
        self.ty.scalar
    }

    pub(crate) fn ty(self) -> Type {
        self.ty
    }

    pub(super) fn with(self, other: impl Operand<'b>) -> Value<'b> {
        let other = other.value(self.b, self.ty.scalar);
        assert_eq!(self.ty, other.ty, "operands of one type");
        other
    }

    /// A constant of this value's type.
    pub fn like(self, x: f64) -> Value<'b> {
        self.b.constant_of(self.scalar(), x)
    }

    /// Lane `i` of a vector.
    pub fn lane(self, i: u8) -> Value<'b> {
        self.b.def(Type::scalar(self.ty.scalar), Inst::Extract(self.id, i))
    }

    /// Reduction over the subgroup. The driver chooses the order of float additions, so results are
    /// not reproducible.
    pub fn subgroup(self, op: Subgroup) -> Value<'b> {
        self.b.def(self.ty, Inst::Subgroup(op, self.id))
    }

    /// The value of the lane whose index is this lane's index exclusive-or `mask`.
    pub fn shuffle_xor(self, mask: u32) -> Value<'b> {
        self.b.def(self.ty, Inst::ShuffleXor(self.id, mask))
    }
}
