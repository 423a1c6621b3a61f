//! Declarations, and the values that `main` loads first: builtins and parameters.

use super::code::Id;
use super::emitter::Emitter;
use super::reload::ParamBlock;
use super::type_key::TypeKey;
use crate::ir::*;
use crate::types::{ScalarType, Type, Word};
use rspirv::spirv::{BuiltIn, Op, StorageClass};
use rustc_hash::FxHashMap;

/// The type of an address as a value: two u32, low first.
const WORDS: Type = Type { scalar: ScalarType::U32, lanes: 2 };

impl Emitter<'_> {
    pub(super) fn declare_shared(&mut self) {
        for s in &self.k.shared {
            let element = self.code.ty(TypeKey::Plain(s.ty));
            let array = self.code.array(element, s.len);
            let ty = self.code.ty(TypeKey::Pointer(StorageClass::Workgroup, array));
            self.shared.push(self.code.global(ty, StorageClass::Workgroup));
            self.code.needs.shared_bytes += s.len * s.ty.scalar.bytes() * u32::from(s.ty.lanes);
        }
    }

    pub(super) fn declare_constants(&mut self) {
        for (id, value) in self.k.values.iter().enumerate() {
            let bits = match value.inst {
                Inst::ConstBool(x) => u64::from(x),
                Inst::ConstInt(x) | Inst::ConstFloat(x) => x,
                _ => continue,
            };
            self.values[id] = self.code.constant(value.ty.scalar, bits);
        }
    }

    pub(super) fn declare_variables(&mut self) {
        for v in &self.k.vars {
            let element = self.code.ty(TypeKey::Plain(v.ty));
            let whole = if v.len > 1 { self.code.array(element, v.len) } else { element };
            self.vars.push(self.code.variable(whole));
        }
    }

    pub(super) fn load_builtins(&mut self, indirect: bool) {
        let mut loaded: FxHashMap<BuiltIn, Id> = FxHashMap::default();
        for (id, value) in self.k.values.iter().enumerate() {
            let Inst::Builtin(builtin) = value.inst else { continue };
            let (which, lane) = match builtin {
                Builtin::Group(d) => (BuiltIn::WorkgroupId, Some(d)),
                Builtin::Local(d) => (BuiltIn::LocalInvocationId, Some(d)),
                Builtin::Groups(d) => (BuiltIn::NumWorkgroups, Some(d)),
                Builtin::SubgroupLane => (BuiltIn::SubgroupLocalInvocationId, None),
                Builtin::SubgroupSize => (BuiltIn::SubgroupSize, None),
                Builtin::SubgroupIndex => (BuiltIn::SubgroupId, None),
            };
            if lane.is_none() {
                self.code.needs.subgroup_shuffle = true;
            }
            let ty = Type { scalar: ScalarType::U32, lanes: if lane.is_some() { 3 } else { 1 } };
            let ty = self.code.ty(TypeKey::Plain(ty));
            let whole = *loaded.entry(which).or_insert_with(|| {
                let variable = self.code.builtin(which, ty);
                self.code.op(Op::Load, ty, &[variable])
            });
            self.values[id] = match lane {
                Some(lane) => self.code.extract(ScalarType::U32, whole, lane),
                None => whole,
            };
        }
        if self.makes_constants || indirect && self.narrow_offsets {
            // No axis has 2^31 workgroups.
            let word = self.code.scalar(ScalarType::U32);
            let group = self.code.ty(TypeKey::Plain(Type { scalar: ScalarType::U32, lanes: 3 }));
            let group = *loaded.entry(BuiltIn::WorkgroupId).or_insert_with(|| {
                let variable = self.code.builtin(BuiltIn::WorkgroupId, group);
                self.code.op(Op::Load, group, &[variable])
            });
            let (group, bit) = (self.code.extract(ScalarType::U32, group, 0), self.code.u32(31));
            self.unknown_zero = Some(self.code.op(Op::ShiftRightLogical, word, &[group, bit]));
        }
    }

    pub(super) fn load_params(&mut self, offsets: &[u32], indirect: bool, zero: Id) {
        if self.k.params.is_empty() {
            return;
        }
        let members: Vec<Id> = self.k.params.iter().map(|param| self.member_type(param.kind)).collect();
        let block = self.code.block_struct(&members, offsets);
        let (base, class) = if indirect {
            let address = self.code.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, block));
            let outer = self.code.block_struct(&[address], &[0]);
            let var = self.push_variable(outer);
            let member = self.code.ty(TypeKey::Pointer(StorageClass::PushConstant, address));
            let chain = self.code.op(Op::AccessChain, member, &[var, zero]);
            (self.code.op(Op::Load, address, &[chain]), StorageClass::PhysicalStorageBuffer)
        } else {
            (self.push_variable(block), StorageClass::PushConstant)
        };
        if !indirect {
            self.of_branches.clear();
        }
        let late = self.of_branches.concat();
        let mut loaded = vec![None; members.len()];
        for i in (0..members.len() as u32).filter(|i| !late.contains(i)) {
            loaded[i as usize] = Some(self.first_load(base, class, members[i as usize], i, indirect));
        }
        self.set_params(&loaded);
        if !late.is_empty() {
            self.late_params = Some((base, members.clone()));
        }
        if indirect && self.reloads_params {
            self.reloaded = Some(ParamBlock { base, members, offsets: offsets.to_vec() });
        }
    }

    /// Loads parameter `p`, a member of the block at `base`. If it is a pointer, it is this one
    /// from here on.
    pub(super) fn first_load(&mut self, base: Id, class: StorageClass, member: Id, p: u32, indirect: bool) -> Id {
        let value = self.load_param(base, class, member, p, indirect);
        if let ParamKind::Pointer { pointer, .. } = self.k.params[p as usize].kind {
            let word = self.k.pointers[pointer as usize].word;
            self.pointers[pointer as usize] =
                if word == Word::Full(ScalarType::U32) { value } else { self.retyped(value, word, 1) };
        }
        value
    }

    /// Sets the parameters among values from here on; those that are `None` stay.
    pub(super) fn set_params(&mut self, loaded: &[Option<Id>]) {
        for (id, value) in self.k.values.iter().enumerate() {
            if let Inst::Param(p) = value.inst {
                self.values[id] = loaded[p as usize].unwrap_or(self.values[id]);
            }
        }
    }

    /// The type of a member of the parameter block. All addresses have one type there: a block may
    /// not mention 8 and 16-bit types, not even behind a pointer.
    fn member_type(&mut self, kind: ParamKind) -> Id {
        self.code.ty(match kind {
            ParamKind::Pointer { .. } => TypeKey::Buffer(Word::Full(ScalarType::U32), 1),
            ParamKind::Scalar(scalar) => TypeKey::Plain(Type::scalar(scalar)),
            ParamKind::Words => TypeKey::Plain(WORDS),
        })
    }

    fn push_variable(&mut self, block: Id) -> Id {
        let ty = self.code.ty(TypeKey::Pointer(StorageClass::PushConstant, block));
        self.code.global(ty, StorageClass::PushConstant)
    }
}
