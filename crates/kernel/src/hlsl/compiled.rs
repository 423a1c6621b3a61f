//! Rewrites SPIR-V that Microsoft's compiler produced from a kernel's HLSL to use buffer addresses.

use crate::collect::collected;
use crate::ir::Kernel;
use crate::lower::Target;
use rspirv::binary::Assemble;
use rspirv::dr::{self, Instruction, Module, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, MemoryAccess, MemoryModel, Op, StorageClass, Word,
};
use std::collections::HashMap;

/// The module that `scripts/check_hlsl.py` compiled from the kernel's HLSL, to run in place of the
/// emitter's. Writes the HLSL to the folder, so that the script finds it.
///
/// # Errors
/// The reason why the emitter's module runs.
pub(crate) fn compiled(kernel: &Kernel, target: &Target) -> Result<Vec<u32>, String> {
    // With 16-bit accesses, which Direct3D has.
    kernel.hlsl_for(target).map_err(|unsupported| unsupported.to_string())?;
    // The compiler's SPIR-V implements a 16-bit store as a store of the whole 32-bit word, which
    // may overwrite a concurrent store to the other half.
    let shader =
        kernel.hlsl_for(&Target { storage16: false, ..*target }).map_err(|unsupported| unsupported.to_string())?;
    if shader.atomics_i64 {
        return Err("the compiler's SPIR-V has no 64-bit atomics".to_owned());
    }
    let words = collected(&shader.name, &shader.source).ok_or("its HLSL is not compiled")?;
    let parameters = if shader.indirect { 2 } else { shader.param_bytes / 4 };
    let module = dr::load_words(words).ok().and_then(|module| with_addresses(module, parameters));
    let module = module.and_then(with_signs_by_arithmetic);
    Ok(module.ok_or("the compiler's SPIR-V is not understood")?.assemble())
}

/// Replaces the table of buffers by buffer addresses, and the numbers of workgroups, which follow
/// `parameters` words of parameters, by the builtin. `None` if the module does not have the
/// compiler's form.
fn with_addresses(module: Module, parameters: u32) -> Option<Module> {
    let mut b = dr::Builder::new_from_module(module);
    let uint = b.type_int(32, 0);
    let ulong = b.type_int(64, 0);
    let (word_bits, bytes_bits) = (b.constant_bit32(uint, 32), b.constant_bit32(uint, 2));
    let to_word = b.type_pointer(None, StorageClass::PhysicalStorageBuffer, uint);
    let to_count = b.type_pointer(None, StorageClass::Input, uint);
    let counts = number_of_groups(&mut b, uint);
    let (memory, block) = (named(b.module_ref(), "memory"), named(b.module_ref(), "block"));
    let (mut addresses, mut counted) = (Vec::new(), false);
    rewrite(&mut b, |b, rewritten, mut inst| {
        let of = inst.operands.first().and_then(Operand::id_ref_any);
        match inst.class.opcode {
            Op::AccessChain if of == memory && of.is_some() => {
                let [_, buffer, _, word] = &inst.operands[..] else { return None };
                let (buffer, word) = (buffer.clone(), word.clone());
                let mut op = |op, operands| operation(b, rewritten, op, ulong, operands);
                let high = op(Op::UConvert, vec![buffer]);
                let high = op(Op::ShiftLeftLogical, vec![high, Operand::IdRef(word_bits)]);
                let low = op(Op::UConvert, vec![word]);
                let low = op(Op::ShiftLeftLogical, vec![low, Operand::IdRef(bytes_bits)]);
                let address = op(Op::BitwiseOr, vec![high, low]);
                addresses.extend(inst.result_id);
                inst = Instruction::new(Op::ConvertUToPtr, Some(to_word), inst.result_id, vec![address]);
            }
            Op::AccessChain if of == block && of.is_some() => {
                let member = constant(b.module_ref(), inst.operands.get(1)?.id_ref_any()?)?;
                if member >= parameters {
                    counted = true;
                    let index = Operand::IdRef(b.constant_bit32(uint, member - parameters));
                    let operands = vec![Operand::IdRef(counts), index];
                    inst = Instruction::new(Op::AccessChain, Some(to_count), inst.result_id, operands);
                }
            }
            Op::Load | Op::Store if of.is_some_and(|id| addresses.contains(&id)) => {
                inst.operands.extend([Operand::MemoryAccess(MemoryAccess::ALIGNED), Operand::LiteralBit32(4)]);
            }
            _ => {}
        }
        Some(inst)
    })?;
    let module = b.module_mut();
    without_table(module, memory);
    if counted {
        module.entry_points.iter_mut().for_each(|entry| entry.operands.push(Operand::IdRef(counts)));
    }
    b.capability(Capability::PhysicalStorageBufferAddresses);
    b.capability(Capability::Int64);
    b.memory_model(AddressingModel::PhysicalStorageBuffer64, MemoryModel::GLSL450);
    Some(b.module())
}

/// Replaces every sign extension by arithmetic, as in the emitter: Mesa 22.3 miscompiles
/// comparisons of sign-extended integers with constants.
fn with_signs_by_arithmetic(module: Module) -> Option<Module> {
    let types: HashMap<Word, Word> =
        module.all_inst_iter().filter_map(|inst| inst.result_id.zip(inst.result_type)).collect();
    let widths: HashMap<Word, u32> = module
        .types_global_values
        .iter()
        .filter_map(|inst| match (inst.class.opcode, inst.result_id, inst.operands.first()) {
            (Op::TypeInt, Some(id), Some(&Operand::LiteralBit32(width))) => Some((id, width)),
            _ => None,
        })
        .collect();
    let width_of = |of: Option<Word>| of.and_then(|ty| widths.get(&ty)).copied();
    let mut b = dr::Builder::new_from_module(module);
    rewrite(&mut b, |b, rewritten, mut inst| {
        let narrow = inst.operands.first().and_then(Operand::id_ref_any).and_then(|id| types.get(&id)).copied();
        // `widths` has no vectors; no kernel's HLSL extends vectors of integers.
        if let (Op::SConvert, Some(to), Some(from)) = (inst.class.opcode, width_of(inst.result_type), width_of(narrow))
            && to > from
        {
            let unsigned = b.type_int(to, 0);
            let sign = match to {
                64 => b.constant_bit64(unsigned, 1 << (from - 1)),
                _ => b.constant_bit32(unsigned, 1 << (from - 1)),
            };
            let mut op = |op, operands| operation(b, rewritten, op, unsigned, operands);
            let wide = op(Op::UConvert, inst.operands.clone());
            let flipped = op(Op::BitwiseXor, vec![wide, Operand::IdRef(sign)]);
            let last = vec![flipped, Operand::IdRef(sign)];
            inst = if inst.result_type == Some(unsigned) {
                Instruction::new(Op::ISub, inst.result_type, inst.result_id, last)
            } else {
                Instruction::new(Op::Bitcast, inst.result_type, inst.result_id, vec![op(Op::ISub, last)])
            };
        }
        Some(inst)
    })?;
    Some(b.module())
}

/// Replaces each instruction by the result of `other`, which may append further instructions before
/// it; `None` if `other` returns `None`.
fn rewrite(
    b: &mut dr::Builder,
    mut other: impl FnMut(&mut dr::Builder, &mut Vec<Instruction>, Instruction) -> Option<Instruction>,
) -> Option<()> {
    let mut functions = std::mem::take(&mut b.module_mut().functions);
    for block in functions.iter_mut().flat_map(|f| &mut f.blocks) {
        let mut rewritten = Vec::with_capacity(block.instructions.len());
        for inst in std::mem::take(&mut block.instructions) {
            let inst = other(b, &mut rewritten, inst)?;
            rewritten.push(inst);
        }
        block.instructions = rewritten;
    }
    b.module_mut().functions = functions;
    Some(())
}

/// Appends an operation to a list, and returns its result.
fn operation(b: &mut dr::Builder, to: &mut Vec<Instruction>, op: Op, ty: Word, operands: Vec<Operand>) -> Operand {
    let id = b.id();
    to.push(Instruction::new(op, Some(ty), Some(id), operands));
    Operand::IdRef(id)
}

/// The id with a name in the HLSL source.
fn named(module: &Module, wanted: &str) -> Option<Word> {
    module.debug_names.iter().find_map(|i| match (&i.operands[0], &i.operands[1]) {
        (Operand::IdRef(id), Operand::LiteralString(name)) if name == wanted => Some(*id),
        _ => None,
    })
}

/// The value of a 32-bit constant.
fn constant(module: &Module, id: Word) -> Option<u32> {
    let found = module.types_global_values.iter().find(|i| i.result_id == Some(id))?;
    match found.operands.first() {
        Some(Operand::LiteralBit32(value)) if found.class.opcode == Op::Constant => Some(*value),
        _ => None,
    }
}

/// Declares the builtin variable with the numbers of workgroups.
fn number_of_groups(b: &mut dr::Builder, uint: Word) -> Word {
    let vector = b.type_vector(uint, 3);
    let pointer = b.type_pointer(None, StorageClass::Input, vector);
    let id = b.id();
    let operands = vec![Operand::StorageClass(StorageClass::Input)];
    b.module_mut().types_global_values.push(Instruction::new(Op::Variable, Some(pointer), Some(id), operands));
    b.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(BuiltIn::NumWorkgroups)]);
    id
}

/// Removes the table of buffers with its types, names, decorations and capabilities.
fn without_table(module: &mut Module, memory: Option<Word>) {
    let Some(memory) = memory else { return };
    let globals = &module.types_global_values;
    let of = |id: Word| globals.iter().find(|i| i.result_id == Some(id));
    let pointer = of(memory).and_then(|variable| variable.result_type);
    let array = pointer.and_then(of).and_then(|pointer| pointer.operands[1].id_ref_any());
    let table: Vec<Word> = [Some(memory), pointer, array].into_iter().flatten().collect();
    let is_table = |operand: &Operand| operand.id_ref_any().is_some_and(|id| table.contains(&id));
    module.types_global_values.retain(|i| i.result_id.is_none_or(|id| !table.contains(&id)));
    module.debug_names.retain(|i| !is_table(&i.operands[0]));
    module.annotations.retain(|i| {
        !is_table(&i.operands[0]) && i.operands.get(1) != Some(&Operand::Decoration(Decoration::NonUniform))
    });
    module.capabilities.retain(|i| {
        let gone = [Capability::RuntimeDescriptorArray, Capability::ShaderNonUniform];
        !gone.iter().any(|&capability| i.operands[0] == Operand::Capability(capability))
    });
    module.extensions.retain(|i| i.operands[0] != Operand::LiteralString("SPV_EXT_descriptor_indexing".into()));
    for entry in &mut module.entry_points {
        entry.operands.retain(|operand| !is_table(operand));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_extended_without_sign_extensions() {
        let mut b = dr::Builder::new();
        let [short, int, long, ulong] =
            [(16, 1), (32, 1), (64, 1), (64, 0)].map(|(width, sign)| b.type_int(width, sign));
        let (void, parameter) = (b.type_void(), b.type_pointer(None, StorageClass::Function, int));
        let kind = b.type_function(void, []);
        let built = (|| {
            b.begin_function(void, None, rspirv::spirv::FunctionControl::NONE, kind)?;
            b.begin_block(None)?;
            let variable = b.variable(parameter, None, StorageClass::Function, None);
            let x = b.load(int, None, variable, None, [])?;
            let narrow = b.s_convert(short, None, x)?;
            for (to, from) in [(long, x), (ulong, x), (int, narrow)] {
                b.s_convert(to, None, from)?;
            }
            b.ret()?;
            b.end_function()
        })();
        built.expect("a function of one block");
        let module = with_signs_by_arithmetic(b.module()).expect("nothing is refused");
        let count = |op| module.all_inst_iter().filter(|inst| inst.class.opcode == op).count();
        // Truncations stay.
        assert_eq!([Op::SConvert, Op::UConvert, Op::ISub, Op::Bitcast].map(count), [1, 3, 3, 2]);
        let defined: Vec<Word> = module.all_inst_iter().filter_map(|inst| inst.result_id).collect();
        assert!(defined.iter().all(|id| defined.iter().filter(|other| *other == id).count() == 1));
    }
}
