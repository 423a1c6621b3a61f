//! The emitter: buffer addresses, no descriptors.
//!
//! The parameter block travels as push constants while it fits in [`MAX_PUSH_BYTES`], the least
//! that Vulkan promises; a larger one lives in memory and the push constant is its address
//! ([`Module::indirect`]).

use crate::collect::{collect, collect_origin};
use crate::dtype::DType;
use crate::group_counts::GroupCounts;
use crate::hlsl::compiled;
use crate::ir::*;
use crate::lower::{FloatModes, Target};
use crate::matrix_type::MatrixType;
use crate::types::{ScalarType, Type, Word};
use crate::verify::InvalidKernel;
use dml_environment::HLSL_DIR;
use rspirv::binary::Assemble;
use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{self, Capability, Decoration, Op, StorageClass};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Largest parameter block that travels as push constants, in bytes.
pub const MAX_PUSH_BYTES: u32 = 128;

/// An emitted kernel.
#[derive(Clone, Debug)]
pub struct Module {
    /// SPIR-V words; the entry point is `main`.
    pub words: Vec<u32>,
    /// The kernel's name.
    pub name: String,
    /// Bytes of push constants.
    pub push_bytes: u32,
    /// Bytes of the parameter block.
    pub param_bytes: u32,
    /// The parameter block lives in memory and the push constant is its 8-byte address.
    pub indirect: bool,
    /// Invocations in a workgroup.
    pub workgroup_size: [u32; 3],
    /// What an adapter must support to run it.
    pub needs: Needs,
    /// Types of the matrices that are multiplied on matrix units: left, right, sum. Each is listed
    /// once.
    pub products: Vec<[MatrixType; 3]>,
    /// Along which dimensions its launches may be cut.
    pub counts: GroupCounts,
}

/// What an adapter must support.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Needs {
    pub f64: bool,
    pub i64: bool,
    pub i16: bool,
    pub i8: bool,
    pub f16_storage: bool,
    pub i8_storage: bool,
    pub atomics_i64: bool,
    pub subgroup_arithmetic: bool,
    pub subgroup_shuffle: bool,
    /// Floats of 16 bits.
    pub f16: bool,
    /// Matrix units: for which types, [`Module::products`] says.
    pub matrix: bool,
    /// Matrix units that multiply bf16.
    pub bf16_matrix: bool,
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
    /// Invocations in a workgroup.
    pub workgroup_invocations: u32,
}

pub(super) type Id = spirv::Word;

/// The type of an address in a register, where it is a value.
const WORDS: Type = Type { scalar: ScalarType::U32, lanes: 2 };

// Instruction numbers of GLSL.std.450.
const EXT_ROUND_EVEN: u32 = 2;
const EXT_TRUNC: u32 = 3;
const EXT_FABS: u32 = 4;
const EXT_FLOOR: u32 = 8;
const EXT_CEIL: u32 = 9;
const EXT_EXP2: u32 = 29;
const EXT_UMIN: u32 = 38;
const EXT_SMIN: u32 = 39;
const EXT_FMAX: u32 = 40;
const EXT_UMAX: u32 = 41;
const EXT_SMAX: u32 = 42;
const EXT_FMA: u32 = 50;
const EXT_FIND_UMSB: u32 = 75;

impl Kernel {
    /// The kernel as SPIR-V for any adapter. Takes tens to hundreds of microseconds. A copy is kept
    /// where `TORCH_DML_SPIRV_DIR` says.
    ///
    /// # Errors
    /// [`InvalidKernel`] of a kernel that is not [well typed](Kernel::verify).
    pub fn emit(&self) -> Result<Module, InvalidKernel> {
        self.emit_for(&Target::default())
    }

    /// The kernel as SPIR-V for an adapter: made of what it has, as far as that goes, and asking
    /// for what it promises about floats.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub fn emit_for(&self, target: &Target) -> Result<Module, InvalidKernel> {
        self.verify()?;
        let lowered = self.lowered(target);
        if let Cow::Owned(lowered) = &lowered {
            lowered.verify()?;
        }
        let mut module = Emitter::new(&lowered, target.floats).run(GroupCounts::of(self));
        collect(&module.name, &module.words);
        if HLSL_DIR.get().is_some() {
            let compiled = compiled(self, target);
            collect_origin(&module.name, &module.words, compiled.as_ref().err().map(String::as_str));
            module.words = compiled.unwrap_or(module.words);
        }
        Ok(module)
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) enum TypeKey {
    Void,
    Plain(Type),
    U8,
    U16,
    /// Pointer to a struct that holds a run-time array of the word, `lanes` wide.
    Buffer(Word, u8),
    /// Pointer to one element of such an array.
    Element(Word, u8),
    Pointer(StorageClass, Id),
    Matrix(MatrixType),
}

pub(super) struct Emitter<'k> {
    pub(super) k: &'k Kernel,
    pub(super) b: dr::Builder,
    glsl: Id,
    types: FxHashMap<TypeKey, Id>,
    pub(super) values: Vec<Id>,
    vars: Vec<Id>,
    pub(super) matrices: Vec<Id>,
    pointers: Vec<Id>,
    shared: Vec<Id>,
    pub(super) needs: Needs,
    pub(super) products: Vec<[MatrixType; 3]>,
    interface: Vec<Id>,
    terminated: bool,
    pub(super) floats: FloatModes,
}

impl<'k> Emitter<'k> {
    fn new(k: &'k Kernel, floats: FloatModes) -> Self {
        let mut b = dr::Builder::new();
        b.set_version(1, 5);
        let glsl = b.ext_inst_import("GLSL.std.450");
        Emitter {
            k,
            b,
            glsl,
            types: FxHashMap::default(),
            values: vec![0; k.values.len()],
            vars: Vec::new(),
            matrices: Vec::new(),
            pointers: vec![0; k.pointers.len()],
            shared: Vec::new(),
            needs: Needs { workgroup_invocations: k.workgroup_size.iter().product(), ..Needs::default() },
            products: Vec::new(),
            interface: Vec::new(),
            terminated: false,
            floats,
        }
    }

    fn run(mut self, counts: GroupCounts) -> Module {
        let (offsets, param_bytes) = param_offsets(&self.k.params);
        let indirect = param_bytes > MAX_PUSH_BYTES;
        let zero = self.constant(ScalarType::U32, 0);
        self.declare_shared();
        let constants: Vec<ValueId> = (0..self.k.values.len() as ValueId).collect();
        for id in constants {
            self.declare_constant(id);
        }

        let void = self.ty(TypeKey::Void);
        let signature = self.b.type_function(void, []);
        let main = self.b.id();
        let none = spirv::FunctionControl::NONE;
        self.b.begin_function(void, Some(main), none, signature).expect("no function is open");
        self.b.begin_block(None).expect("a function is open");
        for v in &self.k.vars {
            let element = self.ty(TypeKey::Plain(v.ty));
            let whole = if v.len > 1 { self.array(element, v.len) } else { element };
            let ty = self.ty(TypeKey::Pointer(StorageClass::Function, whole));
            let id = self.op_into(Op::Variable, ty, vec![Operand::StorageClass(StorageClass::Function)]);
            self.vars.push(id);
        }
        self.declare_matrices();
        self.load_builtins();
        self.load_params(&offsets, param_bytes, indirect, zero);
        self.block(&self.k.body);
        if !self.terminated {
            self.b.ret().expect("a block is open");
        }
        self.b.end_function().expect("a function is open");

        self.b.entry_point(spirv::ExecutionModel::GLCompute, main, "main", self.interface.clone());
        self.b.execution_mode(main, spirv::ExecutionMode::LocalSize, self.k.workgroup_size);
        // Matrix registers go with Vulkan's memory model alone.
        let model = if self.needs.matrix { spirv::MemoryModel::Vulkan } else { spirv::MemoryModel::GLSL450 };
        self.b.memory_model(spirv::AddressingModel::PhysicalStorageBuffer64, model);
        self.capabilities();
        self.float_modes(main);
        Module {
            words: self.b.module().assemble(),
            name: self.k.name.clone(),
            push_bytes: if indirect { 8 } else { param_bytes },
            param_bytes,
            indirect,
            workgroup_size: self.k.workgroup_size,
            needs: self.needs,
            products: self.products,
            counts,
        }
    }

    fn capabilities(&mut self) {
        let n = self.needs;
        let uses = |dtype: &DType| self.k.matrices.iter().any(|m| m.dtype == *dtype);
        let list = [
            (true, Capability::Shader),
            (true, Capability::PhysicalStorageBufferAddresses),
            (n.f64, Capability::Float64),
            (n.i64, Capability::Int64),
            (n.f16_storage, Capability::StorageBuffer16BitAccess),
            (n.i8_storage, Capability::StorageBuffer8BitAccess),
            (n.atomics_i64, Capability::Int64Atomics),
            (n.subgroup_arithmetic || n.subgroup_shuffle, Capability::GroupNonUniform),
            (n.subgroup_arithmetic, Capability::GroupNonUniformArithmetic),
            (n.subgroup_arithmetic, Capability::GroupNonUniformBallot),
            (n.subgroup_shuffle, Capability::GroupNonUniformShuffle),
            (n.matrix, Capability::VulkanMemoryModel),
            (n.matrix, Capability::CooperativeMatrixKHR),
            (n.f16 || n.matrix && uses(&DType::F16), Capability::Float16),
            (n.bf16_matrix, Capability::BFloat16TypeKHR),
            (n.bf16_matrix, Capability::BFloat16CooperativeMatrixKHR),
            (n.matrix && (uses(&DType::I8) || uses(&DType::U8)), Capability::Int8),
        ];
        let extensions = [(n.matrix, "SPV_KHR_cooperative_matrix"), (n.bf16_matrix, "SPV_KHR_bfloat16")];
        for (_, extension) in extensions.into_iter().filter(|(wanted, _)| *wanted) {
            self.b.extension(extension);
        }
        for (_, capability) in list.into_iter().filter(|(wanted, _)| *wanted) {
            self.b.capability(capability);
        }
    }

    fn float_modes(&mut self, main: Id) {
        let FloatModes { round_to_even, keep_subnormals, keep_special_f32, keep_special_f64, halves: _ } = self.floats;
        let uses = |scalar| self.types.contains_key(&TypeKey::Plain(Type::scalar(scalar)));
        // Rounding, subnormal numbers, and special ones.
        let widths = [
            (uses(ScalarType::F32), 32, [round_to_even, keep_subnormals, keep_special_f32]),
            (uses(ScalarType::F64), 64, [round_to_even, keep_subnormals, keep_special_f64]),
            (self.needs.f16, 16, [true; 3]),
        ];
        let modes = [
            (spirv::ExecutionMode::RoundingModeRTE, Capability::RoundingModeRTE),
            (spirv::ExecutionMode::DenormPreserve, Capability::DenormPreserve),
            (spirv::ExecutionMode::SignedZeroInfNanPreserve, Capability::SignedZeroInfNanPreserve),
        ];
        for (_, width, asked) in widths.iter().filter(|(used, ..)| *used) {
            for (mode, _) in modes.iter().zip(asked).filter_map(|(mode, asked)| asked.then_some(mode)) {
                self.b.execution_mode(main, *mode, [*width]);
            }
        }
        for (i, (_, capability)) in modes.into_iter().enumerate() {
            if widths.iter().any(|(used, _, asked)| *used && asked[i]) {
                self.b.capability(capability);
            }
        }
    }

    // ---- types and constants

    pub(super) fn ty(&mut self, key: TypeKey) -> Id {
        if let Some(&id) = self.types.get(&key) {
            return id;
        }
        let id = match key {
            TypeKey::Void => self.b.type_void(),
            TypeKey::U8 => {
                self.needs.i8_storage = true;
                self.b.type_int(8, 0)
            }
            TypeKey::U16 => {
                self.needs.f16_storage = true;
                self.b.type_int(16, 0)
            }
            TypeKey::Plain(Type { scalar, lanes: 1 }) => match scalar {
                ScalarType::Bool => self.b.type_bool(),
                ScalarType::I32 => self.b.type_int(32, 1),
                ScalarType::U32 => self.b.type_int(32, 0),
                ScalarType::I64 | ScalarType::U64 => {
                    self.needs.i64 = true;
                    self.b.type_int(64, u32::from(scalar == ScalarType::I64))
                }
                ScalarType::F32 => self.b.type_float(32, None),
                ScalarType::F64 => {
                    self.needs.f64 = true;
                    self.b.type_float(64, None)
                }
            },
            TypeKey::Plain(Type { scalar, lanes }) => {
                let element = self.scalar(scalar);
                self.b.type_vector(element, u32::from(lanes))
            }
            TypeKey::Buffer(word, lanes) => {
                let element = self.word(word, lanes);
                let array = self.b.id();
                let stride = word.bytes() * u32::from(lanes);
                self.b.module_mut().types_global_values.push(Instruction::new(
                    Op::TypeRuntimeArray,
                    None,
                    Some(array),
                    vec![Operand::IdRef(element)],
                ));
                self.b.decorate(array, Decoration::ArrayStride, [Operand::LiteralBit32(stride)]);
                let block = self.block_struct(&[array], &[0]);
                self.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, block))
            }
            TypeKey::Element(word, lanes) => {
                let element = self.word(word, lanes);
                self.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, element))
            }
            TypeKey::Pointer(class, to) => self.b.type_pointer(None, class, to),
            TypeKey::Matrix(ty) => self.matrix_type(ty),
        };
        self.types.insert(key, id);
        id
    }

    pub(super) fn scalar(&mut self, scalar: ScalarType) -> Id {
        self.ty(TypeKey::Plain(Type::scalar(scalar)))
    }

    fn word(&mut self, word: Word, lanes: u8) -> Id {
        match word {
            Word::W8 => self.ty(TypeKey::U8),
            Word::W16 => self.ty(TypeKey::U16),
            Word::Full(scalar) => self.ty(TypeKey::Plain(Type { scalar, lanes })),
        }
    }

    fn array(&mut self, element: Id, len: u32) -> Id {
        let len = self.constant(ScalarType::U32, u64::from(len));
        self.b.type_array(element, len)
    }

    /// A struct type of its own, decorated as a block.
    fn block_struct(&mut self, members: &[Id], offsets: &[u32]) -> Id {
        let id = self.b.id();
        self.b.module_mut().types_global_values.push(Instruction::new(
            Op::TypeStruct,
            None,
            Some(id),
            members.iter().map(|&m| Operand::IdRef(m)).collect(),
        ));
        self.b.decorate(id, Decoration::Block, []);
        for (i, &offset) in offsets.iter().enumerate() {
            self.b.member_decorate(id, i as u32, Decoration::Offset, [Operand::LiteralBit32(offset)]);
        }
        id
    }

    pub(super) fn constant(&mut self, scalar: ScalarType, bits: u64) -> Id {
        let ty = self.scalar(scalar);
        match scalar {
            ScalarType::Bool if bits != 0 => self.b.constant_true(ty),
            ScalarType::Bool => self.b.constant_false(ty),
            s if s.bytes() == 8 => self.b.constant_bit64(ty, bits),
            _ => self.b.constant_bit32(ty, bits as u32),
        }
    }

    fn declare_constant(&mut self, id: ValueId) {
        let value = &self.k.values[id as usize];
        let scalar = value.ty.scalar;
        let bits = match value.inst {
            Inst::ConstBool(x) => u64::from(x),
            Inst::ConstInt(x) | Inst::ConstFloat(x) => x,
            _ => return,
        };
        self.values[id as usize] = self.constant(scalar, bits);
    }

    fn declare_shared(&mut self) {
        for s in &self.k.shared {
            let element = self.ty(TypeKey::Plain(s.ty));
            let array = self.array(element, s.len);
            let ty = self.ty(TypeKey::Pointer(StorageClass::Workgroup, array));
            let id = self.global(ty, StorageClass::Workgroup);
            self.shared.push(id);
            self.needs.shared_bytes += s.len * s.ty.scalar.bytes() * u32::from(s.ty.lanes);
        }
    }

    // ---- entry block

    fn load_builtins(&mut self) {
        let mut vectors: FxHashMap<spirv::BuiltIn, Id> = FxHashMap::default();
        for i in 0..self.k.values.len() {
            let Inst::Builtin(builtin) = self.k.values[i].inst else { continue };
            let (which, lane) = match builtin {
                Builtin::Group(d) => (spirv::BuiltIn::WorkgroupId, Some(d)),
                Builtin::Local(d) => (spirv::BuiltIn::LocalInvocationId, Some(d)),
                Builtin::Groups(d) => (spirv::BuiltIn::NumWorkgroups, Some(d)),
                Builtin::SubgroupLane => (spirv::BuiltIn::SubgroupLocalInvocationId, None),
                Builtin::SubgroupSize => (spirv::BuiltIn::SubgroupSize, None),
                Builtin::SubgroupIndex => (spirv::BuiltIn::SubgroupId, None),
            };
            if lane.is_none() {
                self.needs.subgroup_shuffle = true;
            }
            let ty = Type { scalar: ScalarType::U32, lanes: if lane.is_some() { 3 } else { 1 } };
            let ty = self.ty(TypeKey::Plain(ty));
            let loaded = match vectors.get(&which) {
                Some(&id) => id,
                None => {
                    let pointer = self.ty(TypeKey::Pointer(StorageClass::Input, ty));
                    let var = self.global(pointer, StorageClass::Input);
                    self.b.decorate(var, Decoration::BuiltIn, [Operand::BuiltIn(which)]);
                    let id = self.op(Op::Load, ty, &[var]);
                    vectors.insert(which, id);
                    id
                }
            };
            self.values[i] = match lane {
                Some(lane) => self.extract(ScalarType::U32, loaded, lane),
                None => loaded,
            };
        }
    }

    fn load_params(&mut self, offsets: &[u32], bytes: u32, indirect: bool, zero: Id) {
        if self.k.params.is_empty() {
            return;
        }
        let members: Vec<Id> = self
            .k
            .params
            .iter()
            .map(|p| match p.kind {
                // Every address has one type in the block: a block may not mention 8 and 16-bit
                // types, not even behind a pointer.
                ParamKind::Pointer { .. } => self.ty(TypeKey::Buffer(Word::Full(ScalarType::U32), 1)),
                ParamKind::Scalar(s) => self.scalar(s),
                ParamKind::Words => self.ty(TypeKey::Plain(WORDS)),
            })
            .collect();
        let block = self.block_struct(&members, offsets);
        debug_assert!(indirect || bytes <= MAX_PUSH_BYTES);
        let (base, class) = if indirect {
            let address = self.ty(TypeKey::Pointer(StorageClass::PhysicalStorageBuffer, block));
            let outer = self.block_struct(&[address], &[0]);
            let var = self.push_variable(outer);
            let member = self.ty(TypeKey::Pointer(StorageClass::PushConstant, address));
            let chain = self.op(Op::AccessChain, member, &[var, zero]);
            (self.op(Op::Load, address, &[chain]), StorageClass::PhysicalStorageBuffer)
        } else {
            (self.push_variable(block), StorageClass::PushConstant)
        };
        let mut loaded = Vec::with_capacity(members.len());
        for (i, &member) in members.iter().enumerate() {
            let ty = self.ty(TypeKey::Pointer(class, member));
            let index = self.constant(ScalarType::U32, i as u64);
            let chain = self.op(Op::AccessChain, ty, &[base, index]);
            let mut operands = vec![Operand::IdRef(chain)];
            if indirect {
                operands.extend(aligned(self.k.params[i].kind.bytes()));
            }
            let value = self.op_into(Op::Load, member, operands);
            if let ParamKind::Pointer { pointer, .. } = self.k.params[i].kind {
                let word = self.k.pointers[pointer as usize].word;
                self.pointers[pointer as usize] =
                    if word == Word::Full(ScalarType::U32) { value } else { self.retyped(value, word, 1) };
            }
            loaded.push(value);
        }
        for (i, value) in self.k.values.iter().enumerate() {
            if let Inst::Param(p) = value.inst {
                self.values[i] = loaded[p as usize];
            }
        }
    }

    fn push_variable(&mut self, block: Id) -> Id {
        let ty = self.ty(TypeKey::Pointer(StorageClass::PushConstant, block));
        self.global(ty, StorageClass::PushConstant)
    }

    /// A module-level variable of the entry point's interface.
    fn global(&mut self, pointer: Id, class: StorageClass) -> Id {
        let id = self.b.id();
        let operands = vec![Operand::StorageClass(class)];
        let variable = Instruction::new(Op::Variable, Some(pointer), Some(id), operands);
        self.b.module_mut().types_global_values.push(variable);
        self.interface.push(id);
        id
    }

    // ---- instructions

    pub(super) fn op_into(&mut self, op: Op, ty: Id, operands: Vec<Operand>) -> Id {
        let id = self.b.id();
        self.b
            .insert_into_block(dr::InsertPoint::End, Instruction::new(op, Some(ty), Some(id), operands))
            .expect("a block is open");
        id
    }

    pub(super) fn op(&mut self, op: Op, ty: Id, operands: &[Id]) -> Id {
        self.op_into(op, ty, operands.iter().map(|&o| Operand::IdRef(o)).collect())
    }

    pub(super) fn effect(&mut self, op: Op, operands: Vec<Operand>) {
        self.b
            .insert_into_block(dr::InsertPoint::End, Instruction::new(op, None, None, operands))
            .expect("a block is open");
    }

    fn ext(&mut self, number: u32, ty: Id, operands: &[Id]) -> Id {
        let mut all = vec![Operand::IdRef(self.glsl), Operand::LiteralExtInstInteger(number)];
        all.extend(operands.iter().map(|&o| Operand::IdRef(o)));
        self.op_into(Op::ExtInst, ty, all)
    }

    fn extract(&mut self, scalar: ScalarType, vector: Id, lane: u8) -> Id {
        let ty = self.scalar(scalar);
        let operands = vec![Operand::IdRef(vector), Operand::LiteralBit32(u32::from(lane))];
        self.op_into(Op::CompositeExtract, ty, operands)
    }

    fn exact(&mut self, op: Op, ty: Id, operands: &[Id]) -> Id {
        let id = self.op(op, ty, operands);
        self.b.decorate(id, Decoration::NoContraction, []);
        id
    }

    /// Address of an element for an access of type `ty`, and the access's alignment.
    pub(super) fn element(&mut self, pointer: PointerId, index: ValueId, ty: Type) -> (Id, u32, Word) {
        let word = self.k.pointers[pointer as usize].word;
        let (word, lanes) =
            if ty.lanes > 1 || word.value() != ty.scalar { (Word::Full(ty.scalar), ty.lanes) } else { (word, 1) };
        let mut base = self.pointers[pointer as usize];
        let declared = self.k.pointers[pointer as usize];
        if lanes > 1 || word != declared.word {
            base = match declared.base {
                PointerBase::Address(address) => self.at_address(address, word, lanes),
                PointerBase::Param(_) | PointerBase::Offset(..) => self.retyped(base, word, lanes),
            };
        }
        let bytes = word.bytes() * u32::from(lanes);
        let zero = self.constant(ScalarType::U32, 0);
        let mut at = self.values[index as usize];
        if self.k.values[index as usize].ty.scalar.bytes() == 8 {
            // By hand: drivers reduce the offset of an access chain to 32 bits even where the index
            // has 64.
            base = self.advanced(base, at, bytes, word, lanes);
            at = zero;
        }
        let element = self.ty(TypeKey::Element(word, lanes));
        let id = self.op(Op::AccessChain, element, &[base, zero, at]);
        (id, bytes, word)
    }

    /// A pointer `elements` (a 64-bit value) times `bytes` bytes further on.
    fn advanced(&mut self, pointer: Id, elements: Id, bytes: u32, word: Word, lanes: u8) -> Id {
        let integer = self.scalar(ScalarType::U64);
        let address = self.op(Op::ConvertPtrToU, integer, &[pointer]);
        let size = self.constant(ScalarType::U64, u64::from(bytes));
        let offset = self.op(Op::IMul, integer, &[elements, size]);
        let sum = self.op(Op::IAdd, integer, &[address, offset]);
        let ty = self.ty(TypeKey::Buffer(word, lanes));
        self.op(Op::ConvertUToPtr, ty, &[sum])
    }

    /// A pointer to the same place with another element type. It goes through an integer because
    /// the validator accepts no bitcast of a pointer to 8 or 16-bit types.
    fn retyped(&mut self, pointer: Id, word: Word, lanes: u8) -> Id {
        let integer = self.scalar(ScalarType::U64);
        let address = self.op(Op::ConvertPtrToU, integer, &[pointer]);
        let ty = self.ty(TypeKey::Buffer(word, lanes));
        self.op(Op::ConvertUToPtr, ty, &[address])
    }

    /// A pointer to the address that a value has.
    fn at_address(&mut self, address: ValueId, word: Word, lanes: u8) -> Id {
        let ty = self.ty(TypeKey::Buffer(word, lanes));
        let address = self.values[address as usize];
        self.op(Op::Bitcast, ty, &[address])
    }

    fn var_address(&mut self, var: VarId, index: Option<ValueId>) -> Id {
        let id = self.vars[var as usize];
        let Some(index) = index else { return id };
        let element = self.ty(TypeKey::Plain(self.k.vars[var as usize].ty));
        let ty = self.ty(TypeKey::Pointer(StorageClass::Function, element));
        let index = self.values[index as usize];
        self.op(Op::AccessChain, ty, &[id, index])
    }

    pub(super) fn shared_address(&mut self, shared: SharedId, index: ValueId) -> Id {
        let element = self.ty(TypeKey::Plain(self.k.shared[shared as usize].ty));
        let ty = self.ty(TypeKey::Pointer(StorageClass::Workgroup, element));
        let index = self.values[index as usize];
        self.op(Op::AccessChain, ty, &[self.shared[shared as usize], index])
    }

    fn block(&mut self, block: &Block) {
        self.terminated = false;
        for stmt in &block.0 {
            if self.terminated {
                return;
            }
            self.statement(stmt);
        }
    }

    fn open(&mut self, label: Id) {
        self.b.begin_block(Some(label)).expect("the last block ended");
        self.terminated = false;
    }

    fn statement(&mut self, stmt: &Stmt) {
        match *stmt {
            Stmt::Def(id) => self.values[id as usize] = self.value(id),
            Stmt::DefPointer(id) => self.moved_pointer(id),
            Stmt::SetVar { var, index, value } => {
                let address = self.var_address(var, index);
                let value = self.values[value as usize];
                self.effect(Op::Store, vec![Operand::IdRef(address), Operand::IdRef(value)]);
            }
            Stmt::Store { pointer, index, value } => {
                let ty = self.k.values[value as usize].ty;
                let mut id = self.values[value as usize];
                let (address, alignment, word) = self.element(pointer, index, ty);
                if !matches!(word, Word::Full(_)) {
                    let narrow = self.word(word, 1);
                    id = self.op(Op::UConvert, narrow, &[id]);
                }
                let mut operands = vec![Operand::IdRef(address), Operand::IdRef(id)];
                operands.extend(aligned(alignment));
                self.effect(Op::Store, operands);
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let mut address = self.shared_address(shared, index);
                if let Some(lane) = lane {
                    let element = self.scalar(self.k.shared[shared as usize].ty.scalar);
                    let ty = self.ty(TypeKey::Pointer(StorageClass::Workgroup, element));
                    address = self.op(Op::AccessChain, ty, &[address, self.values[lane as usize]]);
                }
                let mut operands = vec![Operand::IdRef(address), Operand::IdRef(self.values[value as usize])];
                operands.extend(self.workgroup_access());
                self.effect(Op::Store, operands);
            }
            Stmt::If { cond, ref then, ref otherwise } => self.branch(cond, then, otherwise),
            Stmt::While { ref test, cond, ref body, unroll } => self.repeat(test, cond, body, unroll),
            Stmt::Call(ref call) => call.body.0.iter().for_each(|stmt| self.statement(stmt)),
            Stmt::Barrier => {
                let workgroup = self.constant(ScalarType::U32, spirv::Scope::Workgroup as u64);
                self.barrier(workgroup);
            }
            Stmt::SubgroupBarrier => self.subgroup_barrier(),
            Stmt::Matrix(ref stmt) => self.matrix(stmt),
            Stmt::Return => {
                self.b.ret().expect("a block is open");
                self.terminated = true;
            }
        }
    }

    /// How shared memory is accessed: in Vulkan's memory model an access is an invocation's own
    /// unless it says otherwise.
    pub(super) fn workgroup_access(&self) -> Option<Operand> {
        let shared = spirv::MemoryAccess::NON_PRIVATE_POINTER;
        (!self.k.matrices.is_empty()).then_some(Operand::MemoryAccess(shared))
    }

    /// Waits for all invocations of a scope, and makes what they wrote to shared memory visible to
    /// each other.
    pub(super) fn barrier(&mut self, scope: Id) {
        use spirv::MemorySemantics as Semantics;
        let mut semantics = Semantics::ACQUIRE_RELEASE | Semantics::WORKGROUP_MEMORY;
        if !self.k.matrices.is_empty() {
            semantics |= Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE;
        }
        let semantics = self.constant(ScalarType::U32, u64::from(semantics.bits()));
        self.effect(Op::ControlBarrier, [scope, scope, semantics].map(Operand::IdRef).to_vec());
    }

    fn branch(&mut self, cond: ValueId, then: &Block, otherwise: &Block) {
        let (yes, merge) = (self.b.id(), self.b.id());
        let no = if otherwise.0.is_empty() { merge } else { self.b.id() };
        let cond = self.values[cond as usize];
        self.b.selection_merge(merge, spirv::SelectionControl::NONE).expect("a block is open");
        self.b.branch_conditional(cond, yes, no, []).expect("a block is open");
        for (label, block) in [(yes, then), (no, otherwise)] {
            if label == merge {
                continue;
            }
            self.open(label);
            self.block(block);
            if !self.terminated {
                self.b.branch(merge).expect("a block is open");
            }
        }
        self.open(merge);
    }

    fn repeat(&mut self, test: &Block, cond: ValueId, body: &Block, unroll: bool) {
        let [header, first, inside, next, merge] = std::array::from_fn(|_| self.b.id());
        self.b.branch(header).expect("a block is open");
        self.open(header);
        let control = if unroll { spirv::LoopControl::UNROLL } else { spirv::LoopControl::NONE };
        self.b.loop_merge(merge, next, control, []).expect("a block is open");
        self.b.branch(first).expect("a block is open");
        self.open(first);
        self.block(test);
        let cond = self.values[cond as usize];
        self.b.branch_conditional(cond, inside, merge, []).expect("a block is open");
        self.open(inside);
        self.block(body);
        if !self.terminated {
            self.b.branch(next).expect("a block is open");
        }
        self.open(next);
        self.b.branch(header).expect("a block is open");
        self.open(merge);
    }

    fn moved_pointer(&mut self, id: PointerId) {
        let PointerInfo { word, base } = self.k.pointers[id as usize];
        self.pointers[id as usize] = match base {
            PointerBase::Param(_) => return,
            PointerBase::Offset(base, elements) => {
                let (base, elements) = (self.pointers[base as usize], self.values[elements as usize]);
                self.advanced(base, elements, word.bytes(), word, 1)
            }
            PointerBase::Address(address) => self.at_address(address, word, 1),
        };
    }

    fn value(&mut self, id: ValueId) -> Id {
        let k = self.k;
        let ValueInfo { ty, ref inst } = k.values[id as usize];
        let t = self.ty(TypeKey::Plain(ty));
        let v = |e: &Self, id: ValueId| e.values[id as usize];
        match *inst {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Hole(_) => self.values[id as usize],
            Inst::Address(pointer) => {
                let pointer = self.pointers[pointer as usize];
                self.op(Op::Bitcast, t, &[pointer])
            }
            Inst::Unary(op, a) => self.unary(op, t, ty.scalar, v(self, a)),
            Inst::Binary(op, a, b) => self.binary(op, t, ty, v(self, a), v(self, b)),
            Inst::Compare(op, a, b) => {
                let scalar = k.values[a as usize].ty.scalar;
                self.op(compare(op, scalar), t, &[v(self, a), v(self, b)])
            }
            Inst::Select(c, a, b) => self.op(Op::Select, t, &[v(self, c), v(self, a), v(self, b)]),
            Inst::Cast(a) => self.cast(k.values[a as usize].ty.scalar, ty.scalar, v(self, a)),
            Inst::Bitcast(a) => self.op(Op::Bitcast, t, &[v(self, a)]),
            Inst::Fma(a, b, c) => self.ext(EXT_FMA, t, &[v(self, a), v(self, b), v(self, c)]),
            Inst::GetVar { var, index } => {
                let address = self.var_address(var, index);
                self.op(Op::Load, t, &[address])
            }
            Inst::Load { pointer, index } => {
                let (address, alignment, word) = self.element(pointer, index, ty);
                let narrow = self.word(word, ty.lanes);
                let mut operands = vec![Operand::IdRef(address)];
                operands.extend(aligned(alignment));
                let loaded = self.op_into(Op::Load, narrow, operands);
                if matches!(word, Word::Full(_)) { loaded } else { self.op(Op::UConvert, t, &[loaded]) }
            }
            Inst::LoadShared { shared, index } => {
                let address = self.shared_address(shared, index);
                let mut operands = vec![Operand::IdRef(address)];
                operands.extend(self.workgroup_access());
                self.op_into(Op::Load, t, operands)
            }
            Inst::Extract(a, lane) => self.extract(ty.scalar, v(self, a), lane),
            Inst::Vector(ref lanes) => {
                let lanes: Vec<Id> = lanes.iter().map(|&l| v(self, l)).collect();
                self.op(Op::CompositeConstruct, t, &lanes)
            }
            Inst::Atomic { op, pointer, index, value } => {
                let (address, ..) = self.element(pointer, index, ty);
                self.needs.atomics_i64 |= ty.scalar.bytes() == 8;
                let (scope, relaxed) = self.device_scope();
                self.op(atomic(op, ty.scalar), t, &[address, scope, relaxed, v(self, value)])
            }
            Inst::AtomicShared { op, shared, index, value } => {
                let address = self.shared_address(shared, index);
                let scope = self.constant(ScalarType::U32, spirv::Scope::Workgroup as u64);
                let relaxed = self.constant(ScalarType::U32, 0);
                self.op(atomic(op, ty.scalar), t, &[address, scope, relaxed, v(self, value)])
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                let (address, ..) = self.element(pointer, index, ty);
                self.needs.atomics_i64 |= ty.scalar.bytes() == 8;
                let (scope, relaxed) = self.device_scope();
                let operands = [address, scope, relaxed, relaxed, v(self, value), v(self, expected)];
                self.op(Op::AtomicCompareExchange, t, &operands)
            }
            Inst::Subgroup(op, a) => self.subgroup(op, t, ty.scalar, v(self, a)),
            Inst::ShuffleXor(a, mask) => {
                self.needs.subgroup_shuffle = true;
                let scope = self.constant(ScalarType::U32, spirv::Scope::Subgroup as u64);
                let mask = self.constant(ScalarType::U32, u64::from(mask));
                self.op(Op::GroupNonUniformShuffleXor, t, &[scope, v(self, a), mask])
            }
            Inst::Component { matrix, component } => self.component(matrix, component),
            Inst::Larger(a, b) => self.ext(EXT_FMAX, t, &[v(self, a), v(self, b)]),
            Inst::Halves(low, high) => self.halves(v(self, low), v(self, high)),
            Inst::Half(word, half) => self.half(v(self, word), half),
        }
    }

    fn device_scope(&mut self) -> (Id, Id) {
        // Vulkan's memory model has the device's scope as a feature of its own; all work is of one
        // queue family.
        let scope = if self.k.matrices.is_empty() { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let scope = self.constant(ScalarType::U32, scope as u64);
        (scope, self.constant(ScalarType::U32, 0))
    }

    fn unary(&mut self, op: Unary, t: Id, scalar: ScalarType, a: Id) -> Id {
        match op {
            Unary::Neg if scalar.is_float() => self.op(Op::FNegate, t, &[a]),
            Unary::Neg => self.op(Op::SNegate, t, &[a]),
            Unary::Not if scalar == ScalarType::Bool => self.op(Op::LogicalNot, t, &[a]),
            Unary::Not => self.op(Op::Not, t, &[a]),
            Unary::Abs => self.ext(EXT_FABS, t, &[a]),
            Unary::Floor => self.ext(EXT_FLOOR, t, &[a]),
            Unary::Ceil => self.ext(EXT_CEIL, t, &[a]),
            Unary::Trunc | Unary::Round if scalar == ScalarType::F64 => self.whole(op, t, a),
            Unary::Trunc => self.ext(EXT_TRUNC, t, &[a]),
            Unary::Round => self.ext(EXT_ROUND_EVEN, t, &[a]),
            Unary::CountOneBits => self.op(Op::BitCount, t, &[a]),
            Unary::HighestBit => self.ext(EXT_FIND_UMSB, t, &[a]),
            Unary::FastExp2 => self.ext(EXT_EXP2, t, &[a]),
        }
    }

    /// An f64 to the nearest integer, or cut to one, with its sign: of sums, which round there.
    /// Mesa's software adapter has instructions of its own only on processors with AVX-512, and
    /// errs elsewhere: in halves, in the sign of a zero, and in numbers beyond 32 bits.
    fn whole(&mut self, op: Unary, t: Id, a: Id) -> Id {
        let (words, flags) = (self.scalar(ScalarType::U64), self.scalar(ScalarType::Bool));
        let sign_bit = self.constant(ScalarType::U64, 1 << 63);
        let other_bits = self.constant(ScalarType::U64, !(1 << 63));
        let integers = self.constant(ScalarType::F64, 2f64.powi(52).to_bits()); // From here on there is nothing else.
        let bits = self.op(Op::Bitcast, words, &[a]);
        let sign = self.op(Op::BitwiseAnd, words, &[bits, sign_bit]);
        let size = self.op(Op::BitwiseAnd, words, &[bits, other_bits]);
        let size = self.op(Op::Bitcast, t, &[size]);
        let sum = self.exact(Op::FAdd, t, &[size, integers]);
        let mut result = self.exact(Op::FSub, t, &[sum, integers]);
        if op == Unary::Trunc {
            let one = self.constant(ScalarType::F64, 1f64.to_bits());
            let below = self.exact(Op::FSub, t, &[result, one]);
            let above = self.op(Op::FOrdGreaterThan, flags, &[result, size]);
            result = self.op(Op::Select, t, &[above, below, result]);
        }
        let small = self.op(Op::FOrdLessThan, flags, &[size, integers]); // Infinities and NaN are not.
        let result = self.op(Op::Select, t, &[small, result, size]);
        let result = self.op(Op::Bitcast, words, &[result]);
        let result = self.op(Op::BitwiseOr, words, &[result, sign]);
        self.op(Op::Bitcast, t, &[result])
    }

    fn binary(&mut self, op: Binary, t: Id, ty: Type, a: Id, b: Id) -> Id {
        let s = ty.scalar;
        let (float, signed, logical) = (s.is_float(), s.is_signed(), s == ScalarType::Bool);
        match op {
            Binary::Add if float => self.exact(Op::FAdd, t, &[a, b]),
            Binary::Sub if float => self.exact(Op::FSub, t, &[a, b]),
            Binary::Mul if float => self.exact(Op::FMul, t, &[a, b]),
            Binary::Add => self.op(Op::IAdd, t, &[a, b]),
            Binary::Sub => self.op(Op::ISub, t, &[a, b]),
            Binary::Mul => self.op(Op::IMul, t, &[a, b]),
            Binary::Div => self.op(if signed { Op::SDiv } else { Op::UDiv }, t, &[a, b]),
            Binary::Rem => self.op(if signed { Op::SRem } else { Op::UMod }, t, &[a, b]),
            Binary::And => self.op(if logical { Op::LogicalAnd } else { Op::BitwiseAnd }, t, &[a, b]),
            Binary::Or => self.op(if logical { Op::LogicalOr } else { Op::BitwiseOr }, t, &[a, b]),
            Binary::Xor => self.op(if logical { Op::LogicalNotEqual } else { Op::BitwiseXor }, t, &[a, b]),
            Binary::Shl => self.op(Op::ShiftLeftLogical, t, &[a, b]),
            Binary::Shr => self.op(if signed { Op::ShiftRightArithmetic } else { Op::ShiftRightLogical }, t, &[a, b]),
            Binary::Min => self.ext(if signed { EXT_SMIN } else { EXT_UMIN }, t, &[a, b]),
            Binary::Max => self.ext(if signed { EXT_SMAX } else { EXT_UMAX }, t, &[a, b]),
            Binary::MulHigh => {
                let pair = self.b.type_struct([t, t]);
                let product = self.op(Op::UMulExtended, pair, &[a, b]);
                self.extract(s, product, 1)
            }
        }
    }

    fn cast(&mut self, from: ScalarType, to: ScalarType, a: Id) -> Id {
        let t = self.scalar(to);
        if from.is_integer() && to.is_integer() {
            if from.bytes() == to.bytes() {
                return self.op(Op::Bitcast, t, &[a]);
            }
            let unsigned = self.scalar(to.unsigned());
            let mut wide = self.op(Op::UConvert, unsigned, &[a]);
            if from.is_signed() && to.bytes() > from.bytes() {
                // The sign by arithmetic: of an OpSConvert, Mesa 22.3 takes comparisons with
                // constants for those of the narrow integer, and wrongly (an i32 below 0 is not
                // below 0 as an i64).
                let sign = self.constant(to.unsigned(), 1 << (8 * from.bytes() - 1));
                let flipped = self.op(Op::BitwiseXor, unsigned, &[wide, sign]);
                wide = self.op(Op::ISub, unsigned, &[flipped, sign]);
            }
            return if to.is_signed() { self.op(Op::Bitcast, t, &[wide]) } else { wide };
        }
        let op = match (from.is_float(), to.is_float()) {
            (true, true) => Op::FConvert,
            (true, false) if to.is_signed() => Op::ConvertFToS,
            (true, false) => Op::ConvertFToU,
            (false, _) if from.is_signed() => Op::ConvertSToF,
            (false, _) => Op::ConvertUToF,
        };
        self.op(op, t, &[a])
    }

    fn subgroup(&mut self, op: Subgroup, t: Id, scalar: ScalarType, a: Id) -> Id {
        self.needs.subgroup_arithmetic = true;
        let scope = self.constant(ScalarType::U32, spirv::Scope::Subgroup as u64);
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
}

pub(super) fn aligned(bytes: u32) -> [Operand; 2] {
    [Operand::MemoryAccess(spirv::MemoryAccess::ALIGNED), Operand::LiteralBit32(bytes)]
}

fn compare(op: Compare, scalar: ScalarType) -> Op {
    let kind = if scalar.is_float() {
        0
    } else if scalar == ScalarType::Bool {
        3
    } else if scalar.is_signed() {
        1
    } else {
        2
    };
    match (op, kind) {
        (Compare::Eq, 0) => Op::FOrdEqual,
        (Compare::Ne, 0) => Op::FUnordNotEqual,
        (Compare::Lt, 0) => Op::FOrdLessThan,
        (Compare::Le, 0) => Op::FOrdLessThanEqual,
        (Compare::Gt, 0) => Op::FOrdGreaterThan,
        (Compare::Ge, 0) => Op::FOrdGreaterThanEqual,
        (Compare::Eq, 3) => Op::LogicalEqual,
        (Compare::Ne, 3) => Op::LogicalNotEqual,
        (Compare::Eq, _) => Op::IEqual,
        (Compare::Ne, _) => Op::INotEqual,
        (Compare::Lt, 1) => Op::SLessThan,
        (Compare::Le, 1) => Op::SLessThanEqual,
        (Compare::Gt, 1) => Op::SGreaterThan,
        (Compare::Ge, 1) => Op::SGreaterThanEqual,
        (Compare::Lt, _) => Op::ULessThan,
        (Compare::Le, _) => Op::ULessThanEqual,
        (Compare::Gt, _) => Op::UGreaterThan,
        (Compare::Ge, _) => Op::UGreaterThanEqual,
    }
}

fn atomic(op: Atomic, scalar: ScalarType) -> Op {
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
