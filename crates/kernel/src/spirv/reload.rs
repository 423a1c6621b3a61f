//! Parameters that are loaded again in each iteration of a loop, for adapters with few registers:
//! there, a value that all invocations share takes a register for as long as it is kept, like any
//! other value.

use super::code::{Id, aligned};
use super::emitter::Emitter;
use super::type_key::TypeKey;
use crate::ir::*;
use crate::types::ScalarType;
use rspirv::spirv::{Op, StorageClass};

/// The parameter block in memory.
pub(super) struct ParamBlock {
    /// Its address.
    pub(super) base: Id,
    /// The types of its members.
    pub(super) members: Vec<Id>,
    /// Their positions in bytes.
    pub(super) offsets: Vec<u32>,
}

/// What a loop replaced: the ids of values before it.
pub(super) type Replaced = Vec<(ValueId, Id)>;

impl Emitter<'_> {
    /// Loads the scalar parameters that a loop's body uses. The ids that they had before are
    /// returned, for [`restore`](Self::restore) after the body.
    pub(super) fn reload_params(&mut self, body: &Block) -> Replaced {
        let Some(ParamBlock { base, members, offsets }) = &self.reloaded else { return Vec::new() };
        let (base, members, offsets) = (*base, members.clone(), offsets.clone());
        let mut is_used = vec![false; self.k.values.len()];
        mark(body, self.k, &mut is_used);
        let mut replaced = Vec::new();
        for (id, value) in self.k.values.iter().enumerate() {
            let Inst::Param(p) = value.inst else { continue };
            if is_used[id] {
                let (class, member) = (StorageClass::PhysicalStorageBuffer, members[p as usize]);
                let value = match self.unknown_zero {
                    Some(zero) if self.narrow_offsets => {
                        let pointer = self.code.ty(TypeKey::Pointer(class, member));
                        let address = self.address(base, pointer, offsets[p as usize], zero);
                        self.load(member, address, aligned(self.k.params[p as usize].kind.bytes()))
                    }
                    _ => self.load_param(base, class, member, p, true),
                };
                replaced.push((id as ValueId, std::mem::replace(&mut self.values[id], value)));
            }
        }
        replaced
    }

    /// Ends the use of reloaded parameters.
    pub(super) fn restore(&mut self, replaced: Replaced) {
        for (id, before) in replaced {
            self.values[id as usize] = before;
        }
    }

    /// A pointer of a type to `offset` bytes behind `base`. The offset is a sum of 32 bits with a
    /// zero that compilers do not know: as a constant it would be kept from before the loops.
    fn address(&mut self, base: Id, pointer: Id, offset: u32, zero: Id) -> Id {
        let (word, wide) = (self.code.scalar(ScalarType::U32), self.code.scalar(ScalarType::U64));
        let offset = self.code.u32(offset);
        let offset = self.code.op(Op::BitwiseOr, word, &[offset, zero]);
        let offset = self.code.op(Op::UConvert, wide, &[offset]);
        let base = self.code.op(Op::ConvertPtrToU, wide, &[base]);
        let sum = self.code.op(Op::IAdd, wide, &[base, offset]);
        self.code.op(Op::ConvertUToPtr, pointer, &[sum])
    }

    /// Loads parameter `p`, a member of the block at `base`.
    pub(super) fn load_param(&mut self, base: Id, class: StorageClass, member: Id, p: u32, indirect: bool) -> Id {
        let ty = self.code.ty(TypeKey::Pointer(class, member));
        let index = self.code.u32(p);
        let chain = self.code.op(Op::AccessChain, ty, &[base, index]);
        let bytes = self.k.params[p as usize].kind.bytes();
        let alignment = indirect.then(|| aligned(bytes));
        self.load(member, chain, alignment.into_iter().flatten())
    }
}

/// Marks values that statements use. Those of statements on matrices are left out.
fn mark(block: &Block, k: &Kernel, is_used: &mut [bool]) {
    for stmt in &block.0 {
        let mut mark_one = |id: ValueId| is_used[id as usize] = true;
        match stmt {
            Stmt::Def(id) => {
                k.values[*id as usize].inst.map(|operand| {
                    mark_one(operand);
                    operand
                });
            }
            Stmt::DefPointer(id) => {
                if let PointerBase::Offset(_, by) = k.pointers[*id as usize].base {
                    mark_one(by);
                }
            }
            Stmt::SetVar { index, value, .. } => {
                index.iter().copied().for_each(&mut mark_one);
                mark_one(*value);
            }
            Stmt::Store { index, value, .. } => [*index, *value].into_iter().for_each(mark_one),
            Stmt::StoreShared { index, lane, value, .. } => {
                [*index, *value].into_iter().chain(*lane).for_each(mark_one);
            }
            Stmt::If { cond, then, otherwise } => {
                mark_one(*cond);
                mark(then, k, is_used);
                mark(otherwise, k, is_used);
            }
            Stmt::While { test, cond, body, .. } => {
                mark_one(*cond);
                mark(test, k, is_used);
                mark(body, k, is_used);
            }
            Stmt::Call(call) => mark(&call.body, k, is_used),
            Stmt::Barrier | Stmt::SubgroupBarrier | Stmt::Matrix(_) | Stmt::Return => {}
        }
    }
}
