//! A SPIR-V module under construction: its instructions, types and constants, without the kernel
//! that they come from.

use super::module::Needs;
use super::type_key::TypeKey;
use crate::types::ScalarType;
use rspirv::binary::Assemble;
use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{self, BuiltIn, Decoration, MemoryModel, Op, StorageClass};
use rustc_hash::FxHashMap;

pub(super) type Id = spirv::Word;

/// Instructions of GLSL.std.450 by their numbers.
#[derive(Copy, Clone)]
pub(super) enum Ext {
    RoundEven = 2,
    Trunc = 3,
    FAbs = 4,
    Floor = 8,
    Ceil = 9,
    Exp2 = 29,
    UMin = 38,
    SMin = 39,
    FMax = 40,
    UMax = 41,
    SMax = 42,
    Fma = 50,
    FindUMsb = 75,
}

/// The module, and the function `main` that instructions are appended to.
pub(super) struct Code {
    pub(super) b: dr::Builder,
    glsl: Id,
    pub(super) types: FxHashMap<TypeKey, Id>,
    /// The features that the types and instructions so far need.
    pub(super) needs: Needs,
    pub(super) memory_model: MemoryModel,
    /// In a loop that makes its constants of f64: a zero (u32) that compilers do not know.
    pub(super) late_zero: Option<Id>,
    /// The module's variables, which the entry point has to list.
    interface: Vec<Id>,
}

impl Code {
    pub(super) fn new(memory_model: MemoryModel, needs: Needs) -> Code {
        let mut b = dr::Builder::new();
        b.set_version(1, 5);
        let glsl = b.ext_inst_import("GLSL.std.450");
        Code { b, glsl, types: FxHashMap::default(), needs, memory_model, late_zero: None, interface: Vec::new() }
    }

    /// Begins the function `main`, and its first block.
    pub(super) fn begin_main(&mut self) -> Id {
        let void = self.ty(TypeKey::Void);
        let signature = self.b.type_function(void, []);
        let main = self.b.id();
        let none = spirv::FunctionControl::NONE;
        self.b.begin_function(void, Some(main), none, signature).expect("no function is open");
        self.b.begin_block(None).expect("a function is open");
        main
    }

    /// Ends `main` and declares it as the entry point.
    pub(super) fn end_main(&mut self, main: Id, workgroup_size: [u32; 3]) {
        self.b.end_function().expect("a function is open");
        self.b.entry_point(spirv::ExecutionModel::GLCompute, main, "main", self.interface.clone());
        self.b.execution_mode(main, spirv::ExecutionMode::LocalSize, workgroup_size);
        self.b.memory_model(spirv::AddressingModel::PhysicalStorageBuffer64, self.memory_model);
    }

    /// The module's words.
    pub(super) fn assemble(self) -> Vec<u32> {
        self.b.module().assemble()
    }

    // ---- declarations of the module

    /// A struct type of its own, decorated as a block.
    pub(super) fn block_struct(&mut self, members: &[Id], offsets: &[u32]) -> Id {
        let id = self.b.id();
        let members = members.iter().map(|&member| Operand::IdRef(member)).collect();
        self.declare(Instruction::new(Op::TypeStruct, None, Some(id), members));
        self.b.decorate(id, Decoration::Block, []);
        for (i, &offset) in offsets.iter().enumerate() {
            self.b.member_decorate(id, i as u32, Decoration::Offset, [Operand::LiteralBit32(offset)]);
        }
        id
    }

    /// Appends an instruction to the section of types, constants and the module's variables.
    pub(super) fn declare(&mut self, instruction: Instruction) {
        self.b.module_mut().types_global_values.push(instruction);
    }

    /// A module-level variable of the entry point's interface.
    pub(super) fn global(&mut self, pointer: Id, class: StorageClass) -> Id {
        let id = self.b.id();
        self.declare(Instruction::new(Op::Variable, Some(pointer), Some(id), vec![Operand::StorageClass(class)]));
        self.interface.push(id);
        id
    }

    /// A module-level variable with a builtin's value.
    pub(super) fn builtin(&mut self, builtin: BuiltIn, ty: Id) -> Id {
        let pointer = self.ty(TypeKey::Pointer(StorageClass::Input, ty));
        let var = self.global(pointer, StorageClass::Input);
        self.b.decorate(var, Decoration::BuiltIn, [Operand::BuiltIn(builtin)]);
        var
    }

    // ---- instructions of the open block

    /// Appends an instruction with a result.
    pub(super) fn op_into(&mut self, op: Op, ty: Id, operands: Vec<Operand>) -> Id {
        let id = self.b.id();
        self.append(Instruction::new(op, Some(ty), Some(id), operands));
        id
    }

    /// As [`op_into`](Self::op_into), with ids as the operands.
    pub(super) fn op(&mut self, op: Op, ty: Id, operands: &[Id]) -> Id {
        self.op_into(op, ty, operands.iter().map(|&o| Operand::IdRef(o)).collect())
    }

    /// As [`op`](Self::op), for float arithmetic that no driver may contract.
    pub(super) fn exact(&mut self, op: Op, ty: Id, operands: &[Id]) -> Id {
        let id = self.op(op, ty, operands);
        self.b.decorate(id, Decoration::NoContraction, []);
        id
    }

    /// Appends an instruction without a result.
    pub(super) fn effect(&mut self, op: Op, operands: Vec<Operand>) {
        self.append(Instruction::new(op, None, None, operands));
    }

    /// Appends an instruction of GLSL.std.450.
    pub(super) fn ext(&mut self, ext: Ext, ty: Id, operands: &[Id]) -> Id {
        let mut all = vec![Operand::IdRef(self.glsl), Operand::LiteralExtInstInteger(ext as u32)];
        all.extend(operands.iter().map(|&o| Operand::IdRef(o)));
        self.op_into(Op::ExtInst, ty, all)
    }

    /// A lane of a vector, or a member of a struct.
    pub(super) fn extract(&mut self, scalar: ScalarType, vector: Id, lane: u8) -> Id {
        let ty = self.scalar(scalar);
        let operands = vec![Operand::IdRef(vector), Operand::LiteralBit32(u32::from(lane))];
        self.op_into(Op::CompositeExtract, ty, operands)
    }

    /// A variable of `main`. All of them precede its other instructions.
    pub(super) fn variable(&mut self, ty: Id) -> Id {
        let pointer = self.ty(TypeKey::Pointer(StorageClass::Function, ty));
        self.op_into(Op::Variable, pointer, vec![Operand::StorageClass(StorageClass::Function)])
    }

    fn append(&mut self, instruction: Instruction) {
        self.b.insert_into_block(dr::InsertPoint::End, instruction).expect("a block is open");
    }
}

/// The memory operands of an access whose address is a multiple of `bytes`.
pub(super) fn aligned(bytes: u32) -> [Operand; 2] {
    [Operand::MemoryAccess(spirv::MemoryAccess::ALIGNED), Operand::LiteralBit32(bytes)]
}
