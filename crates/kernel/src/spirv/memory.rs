//! Addresses, loads and stores.

use super::code::{Id, aligned};
use super::emitter::Emitter;
use super::type_key::TypeKey;
use crate::ir::*;
use crate::types::{ScalarType, Type, Word};
use rspirv::dr::Operand;
use rspirv::spirv::{Op, StorageClass};

/// An element of a tensor.
pub(super) struct Element {
    /// A pointer to it.
    pub(super) address: Id,
    /// The alignment of the address, in bytes.
    pub(super) alignment: u32,
    /// Its words in memory.
    word: Word,
}

impl Emitter<'_> {
    // ---- addresses

    /// The element `index` of a tensor, for an access of type `ty`.
    pub(super) fn element(&mut self, pointer: PointerId, index: ValueId, ty: Type) -> Element {
        let declared = self.k.pointers[pointer as usize];
        let narrow = ty.lanes == 1 && declared.word.value() == ty.scalar;
        let (word, lanes) = if narrow { (declared.word, 1) } else { (Word::Full(ty.scalar), ty.lanes) };
        let mut base = self.pointers[pointer as usize];
        if lanes > 1 || word != declared.word {
            base = match declared.base {
                PointerBase::Address(address) => self.at_address(address, word, lanes),
                PointerBase::Param(_) | PointerBase::Offset(..) => self.retyped(base, word, lanes),
            };
        }
        let bytes = word.bytes() * u32::from(lanes);
        let zero = self.code.u32(0);
        let mut at = self.v(index);
        if self.k.values[index as usize].ty.scalar.bytes() == 8 {
            // Computed without an access chain: drivers reduce the offset of an access chain to 32
            // bits even where the index has 64.
            base = self.advanced(base, at, bytes, word, lanes);
            at = zero;
        }
        let element = self.code.ty(TypeKey::Element(word, lanes));
        let address = self.code.op(Op::AccessChain, element, &[base, zero, at]);
        Element { address, alignment: bytes, word }
    }

    /// A pointer advanced by `elements` (a 64-bit value) of `bytes` bytes.
    fn advanced(&mut self, pointer: Id, elements: Id, bytes: u32, word: Word, lanes: u8) -> Id {
        let integer = self.code.scalar(ScalarType::U64);
        let address = self.code.op(Op::ConvertPtrToU, integer, &[pointer]);
        let size = self.code.constant(ScalarType::U64, u64::from(bytes));
        let offset = self.code.op(Op::IMul, integer, &[elements, size]);
        let sum = self.code.op(Op::IAdd, integer, &[address, offset]);
        let ty = self.code.ty(TypeKey::Buffer(word, lanes));
        self.code.op(Op::ConvertUToPtr, ty, &[sum])
    }

    /// The same address as a pointer to another element type. It is converted through an integer
    /// because the validator accepts no bitcast of a pointer to 8 or 16-bit types.
    pub(super) fn retyped(&mut self, pointer: Id, word: Word, lanes: u8) -> Id {
        let integer = self.code.scalar(ScalarType::U64);
        let address = self.code.op(Op::ConvertPtrToU, integer, &[pointer]);
        let ty = self.code.ty(TypeKey::Buffer(word, lanes));
        self.code.op(Op::ConvertUToPtr, ty, &[address])
    }

    /// A pointer to the address in a value.
    fn at_address(&mut self, address: ValueId, word: Word, lanes: u8) -> Id {
        let ty = self.code.ty(TypeKey::Buffer(word, lanes));
        self.code.op(Op::Bitcast, ty, &[self.v(address)])
    }

    /// Evaluates a pointer that is not a parameter.
    pub(super) fn moved_pointer(&mut self, id: PointerId) {
        let PointerInfo { word, base } = self.k.pointers[id as usize];
        self.pointers[id as usize] = match base {
            PointerBase::Param(_) => return,
            PointerBase::Offset(base, elements) => {
                let from = self.reloaded_pointer(base).unwrap_or(self.pointers[base as usize]);
                self.advanced(from, self.v(elements), word.bytes(), word, 1)
            }
            PointerBase::Address(address) => self.at_address(address, word, 1),
        };
    }

    fn var_address(&mut self, var: VarId, index: Option<ValueId>) -> Id {
        let id = self.vars[var as usize];
        let Some(index) = index else { return id };
        let element = self.code.ty(TypeKey::Plain(self.k.vars[var as usize].ty));
        let ty = self.code.ty(TypeKey::Pointer(StorageClass::Function, element));
        self.code.op(Op::AccessChain, ty, &[id, self.v(index)])
    }

    pub(super) fn shared_address(&mut self, shared: SharedId, index: ValueId) -> Id {
        let element = self.code.ty(TypeKey::Plain(self.k.shared[shared as usize].ty));
        let ty = self.code.ty(TypeKey::Pointer(StorageClass::Workgroup, element));
        self.code.op(Op::AccessChain, ty, &[self.shared[shared as usize], self.v(index)])
    }

    // ---- loads and stores

    pub(super) fn load(&mut self, ty: Id, address: Id, access: impl IntoIterator<Item = Operand>) -> Id {
        let operands = [Operand::IdRef(address)].into_iter().chain(access).collect();
        self.code.op_into(Op::Load, ty, operands)
    }

    fn store(&mut self, address: Id, value: Id, access: impl IntoIterator<Item = Operand>) {
        let operands = [address, value].map(Operand::IdRef).into_iter().chain(access).collect();
        self.code.effect(Op::Store, operands);
    }

    pub(super) fn load_element(&mut self, pointer: PointerId, index: ValueId, ty: Type) -> Id {
        let Element { address, alignment, word } = self.element(pointer, index, ty);
        let narrow = self.code.word(word, ty.lanes);
        let loaded = self.load(narrow, address, aligned(alignment));
        if matches!(word, Word::Full(_)) {
            return loaded;
        }
        let wide = self.code.ty(TypeKey::Plain(ty));
        self.code.op(Op::UConvert, wide, &[loaded])
    }

    pub(super) fn store_element(&mut self, pointer: PointerId, index: ValueId, value: ValueId) {
        let mut id = self.v(value);
        let Element { address, alignment, word } = self.element(pointer, index, self.k.values[value as usize].ty);
        if !matches!(word, Word::Full(_)) {
            let narrow = self.code.word(word, 1);
            id = self.code.op(Op::UConvert, narrow, &[id]);
        }
        self.store(address, id, aligned(alignment));
    }

    pub(super) fn load_shared(&mut self, t: Id, shared: SharedId, index: ValueId) -> Id {
        let address = self.shared_address(shared, index);
        self.load(t, address, self.code.workgroup_access())
    }

    pub(super) fn store_shared(&mut self, shared: SharedId, index: ValueId, lane: Option<ValueId>, value: ValueId) {
        let mut address = self.shared_address(shared, index);
        if let Some(lane) = lane {
            let element = self.code.scalar(self.k.shared[shared as usize].ty.scalar);
            let ty = self.code.ty(TypeKey::Pointer(StorageClass::Workgroup, element));
            address = self.code.op(Op::AccessChain, ty, &[address, self.v(lane)]);
        }
        self.store(address, self.v(value), self.code.workgroup_access());
    }

    pub(super) fn load_var(&mut self, t: Id, var: VarId, index: Option<ValueId>) -> Id {
        let address = self.var_address(var, index);
        self.load(t, address, [])
    }

    pub(super) fn store_var(&mut self, var: VarId, index: Option<ValueId>, value: ValueId) {
        let address = self.var_address(var, index);
        self.store(address, self.v(value), []);
    }

    /// A pointer to the element that an atomic operation on a tensor accesses.
    pub(super) fn atomic_element(&mut self, pointer: PointerId, index: ValueId, ty: Type) -> Id {
        self.code.needs.atomics_i64 |= ty.scalar.bytes() == 8;
        self.element(pointer, index, ty).address
    }
}
