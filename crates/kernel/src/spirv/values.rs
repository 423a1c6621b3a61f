//! Emission of values: one instruction of the language each.

use super::arithmetic::compare;
use super::code::{Ext, Id};
use super::emitter::Emitter;
use super::group_operations::atomic;
use super::type_key::TypeKey;
use crate::ir::*;
use rspirv::spirv::{Op, Scope};

impl Emitter<'_> {
    /// Emits a value's instruction; returns the id of its result.
    pub(super) fn value(&mut self, id: ValueId) -> Id {
        let k = self.k;
        let ValueInfo { ty, ref inst } = k.values[id as usize];
        let t = self.code.ty(TypeKey::Plain(ty));
        match *inst {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Placeholder(_) => self.v(id),
            Inst::Address(pointer) => self.code.op(Op::Bitcast, t, &[self.pointers[pointer as usize]]),
            Inst::Unary(op, a) => self.code.unary(op, t, ty.scalar, self.v(a)),
            Inst::Binary(op, a, b) => self.code.binary(op, t, ty, self.v(a), self.v(b)),
            Inst::Compare(op, a, b) => {
                let scalar = k.values[a as usize].ty.scalar;
                self.code.op(compare(op, scalar), t, &[self.v(a), self.v(b)])
            }
            Inst::Select(c, a, b) => self.code.op(Op::Select, t, &[self.v(c), self.v(a), self.v(b)]),
            Inst::Cast(a) => self.code.cast(k.values[a as usize].ty.scalar, ty.scalar, self.v(a)),
            Inst::Bitcast(a) => self.code.op(Op::Bitcast, t, &[self.v(a)]),
            Inst::Fma(a, b, c) => self.code.ext(Ext::Fma, t, &[self.v(a), self.v(b), self.v(c)]),
            Inst::GetVar { var, index } => self.load_var(t, var, index),
            Inst::Load { pointer, index } => self.load_element(pointer, index, ty),
            Inst::LoadShared { shared, index } => self.load_shared(t, shared, index),
            Inst::Extract(a, lane) => self.code.extract(ty.scalar, self.v(a), lane),
            Inst::Vector(ref lanes) => {
                let lanes: Vec<Id> = lanes.iter().map(|&lane| self.v(lane)).collect();
                self.code.op(Op::CompositeConstruct, t, &lanes)
            }
            Inst::Atomic { op, pointer, index, value } => {
                let address = self.atomic_element(pointer, index, ty);
                let (scope, relaxed) = self.code.device_scope();
                self.code.op(atomic(op, ty.scalar), t, &[address, scope, relaxed, self.v(value)])
            }
            Inst::AtomicShared { op, shared, index, value } => {
                let address = self.shared_address(shared, index);
                let scope = self.code.scope(Scope::Workgroup);
                let relaxed = self.code.u32(0);
                self.code.op(atomic(op, ty.scalar), t, &[address, scope, relaxed, self.v(value)])
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                let address = self.atomic_element(pointer, index, ty);
                let (scope, relaxed) = self.code.device_scope();
                let operands = [address, scope, relaxed, relaxed, self.v(value), self.v(expected)];
                self.code.op(Op::AtomicCompareExchange, t, &operands)
            }
            Inst::Subgroup(op, a) => self.code.subgroup(op, t, ty.scalar, self.v(a)),
            Inst::ShuffleXor(a, mask) => self.code.shuffle_xor(t, self.v(a), mask),
            Inst::Component { matrix, component } => self.component(matrix, component),
            Inst::Larger(a, b) => self.code.ext(Ext::FMax, t, &[self.v(a), self.v(b)]),
            Inst::Halves(low, high) => {
                let parts = [self.v(low), self.v(high)];
                if self.floats.halves { self.code.halves(parts) } else { self.code.halves_by_integers(parts) }
            }
            Inst::Half(word, half) => {
                let word = self.v(word);
                if self.floats.halves { self.code.half(word, half) } else { self.code.half_by_integers(word, half) }
            }
        }
    }
}
