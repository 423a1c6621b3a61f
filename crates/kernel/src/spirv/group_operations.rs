//! Operations of several invocations: on a subgroup's lanes, and atomic ones.

use super::code::{Code, Id};
use crate::ir::{Atomic, Subgroup};
use crate::types::ScalarType;
use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Scope};

impl Code {
    /// A reduction over the subgroup.
    pub(super) fn subgroup(&mut self, op: Subgroup, t: Id, scalar: ScalarType, a: Id) -> Id {
        self.needs.subgroup_arithmetic = true;
        let scope = self.scope(Scope::Subgroup);
        if op == Subgroup::First {
            return self.op(Op::GroupNonUniformBroadcastFirst, t, &[scope, a]);
        }
        let code = match (op, scalar.is_float(), scalar.is_signed()) {
            (Subgroup::Add, true, _) => Op::GroupNonUniformFAdd,
            (Subgroup::Add, ..) => Op::GroupNonUniformIAdd,
            (Subgroup::Min, true, _) => Op::GroupNonUniformFMin,
            (Subgroup::Min, _, true) => Op::GroupNonUniformSMin,
            (Subgroup::Min, ..) => Op::GroupNonUniformUMin,
            (_, true, _) => Op::GroupNonUniformFMax,
            (_, _, true) => Op::GroupNonUniformSMax,
            _ => Op::GroupNonUniformUMax,
        };
        let reduce = Operand::GroupOperation(spirv::GroupOperation::Reduce);
        self.op_into(code, t, vec![Operand::IdRef(scope), reduce, Operand::IdRef(a)])
    }

    pub(super) fn shuffle_xor(&mut self, t: Id, a: Id, mask: u32) -> Id {
        self.needs.subgroup_shuffle = true;
        let scope = self.scope(Scope::Subgroup);
        let mask = self.u32(mask);
        self.op(Op::GroupNonUniformShuffleXor, t, &[scope, a, mask])
    }
}

/// The instruction of an atomic operation.
pub(super) fn atomic(op: Atomic, scalar: ScalarType) -> Op {
    match (op, scalar.is_signed()) {
        (Atomic::Add, _) => Op::AtomicIAdd,
        (Atomic::Min, true) => Op::AtomicSMin,
        (Atomic::Min, false) => Op::AtomicUMin,
        (Atomic::Max, true) => Op::AtomicSMax,
        (Atomic::Max, false) => Op::AtomicUMax,
        (Atomic::And, _) => Op::AtomicAnd,
        (Atomic::Or, _) => Op::AtomicOr,
        (Atomic::Xor, _) => Op::AtomicXor,
        (Atomic::Exchange, _) => Op::AtomicExchange,
    }
}
