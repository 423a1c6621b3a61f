//! 64-bit constants that loops make where they use them, for adapters with few registers: compilers
//! for these load such a constant before the loops, for no instruction but a move takes it as an
//! operand, and it keeps two registers until the loops end.
//!
//! One half is joined with a zero that compilers do not know, or they would find the constant again.

use super::code::Id;
use super::emitter::Emitter;
use super::reload::Replaced;
use super::type_key::TypeKey;
use crate::ir::*;
use crate::types::{ScalarType, Type};
use rspirv::spirv::Op;

/// So many constants of f64 in loops are worth the instructions that make them: a polynomial or
/// more, such as that of an exponential.
const MANY: usize = 8;

/// Whether the loops of a kernel use many constants of f64.
pub(super) fn are_many(k: &Kernel) -> bool {
    let mut used = vec![false; k.values.len()];
    mark(&k.body, k, false, &mut used);
    used.into_iter().filter(|&is_used| is_used).count() >= MANY
}

/// Marks the constants of f64 that definitions in loops use.
fn mark(block: &Block, k: &Kernel, in_loop: bool, used: &mut [bool]) {
    for stmt in &block.0 {
        match stmt {
            Stmt::Def(id) if in_loop => {
                k.values[*id as usize].inst.map(|operand| {
                    used[operand as usize] |= is_wide_constant(k, operand);
                    operand
                });
            }
            Stmt::If { then, otherwise, .. } => {
                mark(then, k, in_loop, used);
                mark(otherwise, k, in_loop, used);
            }
            Stmt::While { test, body, .. } => {
                mark(test, k, true, used);
                mark(body, k, true, used);
            }
            Stmt::Call(call) => mark(&call.body, k, in_loop, used),
            _ => {}
        }
    }
}

fn is_wide_constant(k: &Kernel, id: ValueId) -> bool {
    let ValueInfo { ty, ref inst } = k.values[id as usize];
    ty.scalar == ScalarType::F64 && matches!(inst, Inst::ConstFloat(_))
}

impl Emitter<'_> {
    /// Makes the constants of f64 that a value in a loop is computed from. The ids that they had
    /// before are returned, for [`restore`](Self::restore) after the value.
    pub(super) fn make_constants(&mut self, id: ValueId) -> Replaced {
        let mut used = Vec::new();
        if self.loops == 0 || !self.makes_constants {
            return used;
        }
        let Some(zero) = self.unknown_zero else { return used };
        let k = self.k;
        k.values[id as usize].inst.map(|operand| {
            if is_wide_constant(k, operand) && used.iter().all(|&(other, _)| other != operand) {
                used.push((operand, 0));
            }
            operand
        });
        for (constant, before) in &mut used {
            let Inst::ConstFloat(bits) = k.values[*constant as usize].inst else { continue };
            let made = self.made(bits, zero);
            *before = std::mem::replace(&mut self.values[*constant as usize], made);
        }
        used
    }

    fn made(&mut self, bits: u64, zero: Id) -> Id {
        let (word, wide) = (self.code.scalar(ScalarType::U32), self.code.scalar(ScalarType::F64));
        let words = self.code.ty(TypeKey::Plain(Type { scalar: ScalarType::U32, lanes: 2 }));
        let (low, high) = (self.code.u32(bits as u32), self.code.u32((bits >> 32) as u32));
        let high = self.code.op(Op::BitwiseOr, word, &[high, zero]);
        let both = self.code.op(Op::CompositeConstruct, words, &[low, high]);
        self.code.op(Op::Bitcast, wide, &[both])
    }
}
