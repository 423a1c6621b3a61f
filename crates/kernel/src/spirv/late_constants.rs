//! 64-bit constants that loops make where they use them, for adapters with few registers: compilers
//! for these load such a constant before the loops, for no instruction but a move takes it as an
//! operand, and it keeps two registers until the loops end.
//!
//! One half is joined with a zero that compilers do not know, or they would find the constant
//! again.

use super::code::{Code, Id};
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

impl Code {
    /// A constant of f64. In a loop that makes them, it is new each time.
    pub(super) fn wide_constant(&mut self, bits: u64) -> Id {
        let Some(zero) = self.late_zero else { return self.constant(ScalarType::F64, bits) };
        let (word, wide) = (self.scalar(ScalarType::U32), self.scalar(ScalarType::F64));
        let words = self.ty(TypeKey::Plain(Type { scalar: ScalarType::U32, lanes: 2 }));
        let (low, high) = (self.u32(bits as u32), self.u32((bits >> 32) as u32));
        let high = self.op(Op::BitwiseOr, word, &[high, zero]);
        let both = self.op(Op::CompositeConstruct, words, &[low, high]);
        self.op(Op::Bitcast, wide, &[both])
    }
}

impl Emitter<'_> {
    /// Makes the constants of f64 among the operands of a statement, and loads its parameters
    /// again, if it is in a loop that makes constants. The ids that they had before are returned,
    /// for [`restore`](Self::restore) after the statement.
    pub(super) fn make_operands(&mut self, stmt: &Stmt) -> Replaced {
        let mut used = Vec::new();
        let Some(zero) = self.code.late_zero else { return used };
        let k = self.k;
        let mut add = |operand: ValueId| {
            let is_param = matches!(k.values[operand as usize].inst, Inst::Param(_));
            if (is_param || is_wide_constant(k, operand)) && used.iter().all(|&(other, _)| other != operand) {
                used.push((operand, 0));
            }
            operand
        };
        match *stmt {
            Stmt::Def(id) => {
                k.values[id as usize].inst.map(add);
            }
            Stmt::SetVar { value, .. } => {
                add(value);
            }
            _ => {}
        }
        for (operand, before) in &mut used {
            let made = match k.values[*operand as usize].inst {
                Inst::ConstFloat(bits) => Some(self.code.wide_constant(bits)),
                Inst::Param(p) => self.reloaded_param(p, zero),
                _ => None,
            };
            let id = &mut self.values[*operand as usize];
            *before = std::mem::replace(id, made.unwrap_or(*id));
        }
        used
    }
}
