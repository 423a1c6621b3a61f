//! Parameters that are loaded again in each iteration of a loop, for adapters with few registers:
//! there, a value that all invocations share takes a register for as long as it is kept, like any
//! other value.

use super::code::{Id, aligned};
use super::emitter::Emitter;
use super::type_key::TypeKey;
use crate::ir::*;
use crate::types::{ScalarType, Word};
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
        let Some(ParamBlock { base, members, .. }) = &self.reloaded else { return Vec::new() };
        if self.code.late_zero.is_some() {
            return Vec::new(); // Each statement loads what it uses.
        }
        let (base, members) = (*base, members.clone());
        let mut is_used = vec![false; self.k.values.len()];
        mark(body, self.k, &mut is_used);
        let mut replaced = Vec::new();
        for (id, value) in self.k.values.iter().enumerate() {
            let Inst::Param(p) = value.inst else { continue };
            if is_used[id] {
                let narrow = self.unknown_zero.filter(|_| self.narrow_offsets);
                let value = match narrow.and_then(|zero| self.reloaded_param(p, zero)) {
                    Some(value) => value,
                    None => self.load_param(base, StorageClass::PhysicalStorageBuffer, members[p as usize], p, true),
                };
                replaced.push((id as ValueId, std::mem::replace(&mut self.values[id], value)));
            }
        }
        replaced
    }

    /// Loads parameter `p` from an address with an offset of 32 bits, if parameters are in memory.
    pub(super) fn reloaded_param(&mut self, p: u32, zero: Id) -> Option<Id> {
        let ParamBlock { base, members, offsets } = self.reloaded.as_ref()?;
        let (base, member, offset) = (*base, members[p as usize], offsets[p as usize]);
        let ty = self.code.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, member));
        let address = self.address(base, ty, offset, zero);
        Some(self.load(member, address, aligned(self.k.params[p as usize].kind.bytes())))
    }

    /// Loads the address of a pointer again, if it is a parameter and the open loop makes its
    /// constants: such a loop needs all registers.
    pub(super) fn reloaded_pointer(&mut self, pointer: PointerId) -> Option<Id> {
        let info = self.k.pointers[pointer as usize];
        let PointerBase::Param(p) = info.base else { return None };
        let value = self.reloaded_param(p, self.code.late_zero?)?;
        Some(if info.word == Word::Full(ScalarType::U32) { value } else { self.retyped(value, info.word, 1) })
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
