//! Emits HLSL source: declarations, parameters and statements.

use super::values::{constant, type_name};
use crate::collect::collect_text;
use crate::ir::*;
use crate::lower::Target;
use crate::spirv::MAX_PUSH_BYTES;
use crate::types::{ScalarType, Type};
use crate::verify::InvalidKernel;
use std::borrow::Cow;
use std::fmt::{self, Write};

const PRELUDE: &str = include_str!("prelude.hlsl");

/// A kernel as HLSL.
#[derive(Clone, Debug)]
pub struct Shader {
    /// The source; the entry point is `main`.
    pub source: String,
    /// The kernel's name.
    pub name: String,
    /// Bytes of the parameter block.
    pub param_bytes: u32,
    /// Whether the parameter block is in memory and the root constants are its 8-byte address.
    pub indirect: bool,
    /// Whether the numbers of workgroups follow the parameters, or their address, as three root
    /// constants.
    pub groups: bool,
    /// Invocations in a workgroup.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory. Direct3D guarantees 32 KiB.
    pub shared_bytes: u32,
    /// Whether the kernel has atomic accesses to tensors.
    pub atomics: bool,
    /// Whether the kernel has 64-bit atomic accesses to tensors.
    pub atomics_i64: bool,
}

/// The reason why a kernel has no HLSL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The kernel is not well typed.
    Invalid(InvalidKernel),
    /// It uses matrix registers, which this shader model of Direct3D does not have.
    Matrix,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsupported::Invalid(invalid) => invalid.fmt(f),
            Unsupported::Matrix => f.write_str("HLSL has no matrix units"),
        }
    }
}

impl std::error::Error for Unsupported {}

impl Kernel {
    /// The kernel as HLSL. A copy is written to the folder that `TORCH_DML_HLSL_DIR` names.
    ///
    /// # Errors
    /// [`Unsupported`] of a kernel that is not [well typed](Kernel::verify), or has matrix
    /// registers.
    pub fn hlsl(&self) -> Result<Shader, Unsupported> {
        self.hlsl_for(&Target::default())
    }

    /// The kernel as HLSL for an adapter, as [`emit_for`](Self::emit_for).
    ///
    /// # Errors
    /// As [`hlsl`](Self::hlsl).
    pub fn hlsl_for(&self, target: &Target) -> Result<Shader, Unsupported> {
        self.verify().map_err(Unsupported::Invalid)?;
        if !self.matrices.is_empty() {
            return Err(Unsupported::Matrix);
        }
        // Direct3D has no 8-bit accesses.
        let lowered = self.lowered(&Target { storage8: false, ..*target });
        if let Cow::Owned(lowered) = &lowered {
            lowered.verify().map_err(Unsupported::Invalid)?;
        }
        let shader = Emitter::new(&lowered).run();
        collect_text(&shader.name, &shader.source);
        Ok(shader)
    }
}

pub(super) struct Emitter<'k> {
    pub(super) k: &'k Kernel,
    text: String,
    depth: usize,
    /// Values and pointers that were declared before the loop whose test defines them.
    declared: Vec<bool>,
    declared_pointers: Vec<bool>,
    /// The expression for each value where it is used: its name, or a constant.
    expressions: Vec<String>,
    /// The number of atomic accesses to tensors, and of 64-bit ones among them.
    pub(super) atomics: u32,
    pub(super) atomics_i64: u32,
}

impl<'k> Emitter<'k> {
    fn new(k: &'k Kernel) -> Self {
        let expressions = k.values.iter().enumerate().map(|(id, value)| constant(value).unwrap_or(format!("v{id}")));
        Emitter {
            k,
            text: String::new(),
            depth: 0,
            declared: vec![false; k.values.len()],
            declared_pointers: vec![false; k.pointers.len()],
            expressions: expressions.collect(),
            atomics: 0,
            atomics_i64: 0,
        }
    }

    fn run(mut self) -> Shader {
        let (offsets, param_bytes) = param_offsets(&self.k.params);
        let indirect = param_bytes > MAX_PUSH_BYTES;
        let groups = self.k.values.iter().any(|v| matches!(v.inst, Inst::Builtin(Builtin::Groups(_))));
        let words = if indirect { 2 } else { param_bytes / 4 };
        self.block_of_constants(words, groups);
        let mut shared_bytes = 0;
        for (i, s) in self.k.shared.iter().enumerate() {
            self.line(&format!("groupshared {} s{i}[{}];", type_name(s.ty), s.len));
            shared_bytes += s.len * s.ty.scalar.bytes() * u32::from(s.ty.lanes);
        }
        let [x, y, z] = self.k.workgroup_size;
        self.line(&format!("[numthreads({x}, {y}, {z})]"));
        self.line("void main(uint3 group : SV_GroupID, uint3 local : SV_GroupThreadID, uint flat : SV_GroupIndex) {");
        self.depth += 1;
        self.parameters(&offsets, indirect);
        self.builtins();
        for (i, v) in self.k.vars.iter().enumerate() {
            let name = type_name(v.ty);
            match v.len {
                1 => self.line(&format!("{name} x{i} = ({name})0;")),
                len => self.line(&format!("{name} x{i}[{len}];")),
            }
        }
        self.block(&self.k.body);
        self.depth -= 1;
        self.line("}");
        let invocations: u32 = self.k.workgroup_size.iter().product();
        let (atomics, wide) = (self.atomics, self.atomics_i64);
        let facts = format!(
            "// {shared_bytes} bytes shared, {invocations} invocations, {atomics} atomics, {wide} atomics of 64 bits\n"
        );
        Shader {
            source: [&facts, PRELUDE, &self.text].concat(),
            name: self.k.name.clone(),
            param_bytes,
            indirect,
            groups,
            workgroup_size: self.k.workgroup_size,
            shared_bytes,
            atomics: self.atomics > 0,
            atomics_i64: self.atomics_i64 > 0,
        }
    }

    // ---- source

    fn line(&mut self, text: &str) {
        writeln!(self.text, "{:1$}{text}", "", 4 * self.depth).expect("a string grows");
    }

    /// The expression for a value where it is used.
    pub(super) fn v(&self, id: ValueId) -> &str {
        &self.expressions[id as usize]
    }

    // ---- entry

    fn block_of_constants(&mut self, words: u32, groups: bool) {
        let mut members: String = (0..words).map(|i| format!(" uint w{i};")).collect();
        if groups {
            members += " uint groups_x; uint groups_y; uint groups_z;";
        }
        if !members.is_empty() {
            self.line(&format!("struct Block {{{members} }};"));
            self.line("[[vk::push_constant]] ConstantBuffer<Block> block : register(b0);");
        }
    }

    fn parameters(&mut self, offsets: &[u32], indirect: bool) {
        if indirect {
            self.line("const Address parameters = uint2(block.w0, block.w1);");
        }
        let mut values: Vec<Option<String>> = vec![None; self.k.params.len()];
        for (i, param) in self.k.params.iter().enumerate() {
            let word = |n: u32| match indirect {
                true => format!("IN(parameters).Load(parameters.x + {})", offsets[i] + 4 * n),
                false => format!("block.w{}", offsets[i] / 4 + n),
            };
            values[i] = match param.kind {
                ParamKind::Pointer { pointer, .. } => {
                    let line = format!("const Address p{pointer} = uint2({}, {});", word(0), word(1));
                    self.line(&line);
                    None
                }
                ParamKind::Words => Some(format!("uint2({}, {})", word(0), word(1))),
                ParamKind::Scalar(scalar) => Some(match scalar {
                    ScalarType::U32 => word(0),
                    ScalarType::I32 => format!("asint({})", word(0)),
                    ScalarType::F32 => format!("asfloat({})", word(0)),
                    ScalarType::F64 => format!("asdouble({}, {})", word(0), word(1)),
                    _ => format!("({})join(uint2({}, {}))", type_name(Type::scalar(scalar)), word(0), word(1)),
                }),
            };
        }
        for (id, value) in self.k.values.iter().enumerate() {
            if let Inst::Param(p) = value.inst
                && let Some(from) = &values[p as usize]
            {
                let line = format!("const {} v{id} = {from};", type_name(value.ty));
                self.line(&line);
            }
        }
    }

    fn builtins(&mut self) {
        for (id, value) in self.k.values.iter().enumerate() {
            let Inst::Builtin(builtin) = value.inst else { continue };
            let from = match builtin {
                Builtin::Group(d) => format!("group[{d}]"),
                Builtin::Local(d) => format!("local[{d}]"),
                Builtin::Groups(d) => format!("block.groups_{}", ["x", "y", "z"][usize::from(d)]),
                Builtin::SubgroupLane => "WaveGetLaneIndex()".into(),
                Builtin::SubgroupSize => "WaveGetLaneCount()".into(),
                Builtin::SubgroupIndex => "(flat / WaveGetLaneCount())".into(),
            };
            self.line(&format!("const uint v{id} = {from};"));
        }
    }

    // ---- statements

    fn block(&mut self, block: &Block) {
        for stmt in &block.0 {
            self.statement(stmt);
        }
    }

    fn inside(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn statement(&mut self, stmt: &Stmt) {
        match *stmt {
            Stmt::Def(id) => self.define(id),
            Stmt::DefPointer(id) => {
                let name = if self.declared_pointers[id as usize] { "" } else { "const Address " };
                let line = format!("{name}p{id} = {};", self.pointer(id));
                self.line(&line);
            }
            Stmt::SetVar { var, index, value } => {
                let line = format!("{} = {};", self.variable(var, index), self.v(value));
                self.line(&line);
            }
            Stmt::Store { pointer, index, value } => {
                let line = self.store(pointer, index, value);
                self.line(&line);
            }
            Stmt::StoreShared { shared, index, lane, value } => {
                let lane = lane.map_or(String::new(), |lane| format!("[{}]", self.v(lane)));
                let line = format!("s{shared}[{}]{lane} = {};", self.v(index), self.v(value));
                self.line(&line);
            }
            Stmt::If { cond, ref then, ref otherwise } => {
                let line = format!("if ({}) {{", self.v(cond));
                self.line(&line);
                self.inside(then);
                if !otherwise.0.is_empty() {
                    self.line("} else {");
                    self.inside(otherwise);
                }
                self.line("}");
            }
            Stmt::While { ref test, cond, ref body, unroll: _ } => {
                self.declare_of(test);
                self.line("while (true) {");
                self.inside(test);
                self.depth += 1;
                let line = format!("if (!{}) break;", self.v(cond));
                self.line(&line);
                self.depth -= 1;
                self.inside(body);
                self.line("}");
            }
            Stmt::Call(ref call) => call.body.0.iter().for_each(|stmt| self.statement(stmt)),
            Stmt::Barrier => self.line("GroupMemoryBarrierWithGroupSync();"),
            Stmt::SubgroupBarrier => self.line("GroupMemoryBarrier();"),
            Stmt::Matrix(_) => unreachable!("such kernels are refused"),
            Stmt::Return => self.line("return;"),
        }
    }

    /// Declares the definitions of a loop's test before the loop: they are visible after it.
    fn declare_of(&mut self, test: &Block) {
        for stmt in &test.0 {
            match *stmt {
                Stmt::Def(id) if !std::mem::replace(&mut self.declared[id as usize], true) => {
                    let line = format!("{} v{id};", self.declaration(id));
                    self.line(&line);
                }
                Stmt::DefPointer(id) if !std::mem::replace(&mut self.declared_pointers[id as usize], true) => {
                    self.line(&format!("Address p{id};"));
                }
                Stmt::While { ref test, .. } => self.declare_of(test),
                Stmt::Call(ref call) => self.declare_of(&call.body),
                _ => {}
            }
        }
    }

    /// The type of a value, with the modifier that keeps the compiler from contracting float
    /// arithmetic.
    fn declaration(&self, id: ValueId) -> String {
        let value = &self.k.values[id as usize];
        let precise = if value.ty.scalar.is_float() { "precise " } else { "" };
        format!("{precise}{}", type_name(value.ty))
    }

    fn define(&mut self, id: ValueId) {
        if let Some(lines) = self.atomic(id) {
            let declaration = self.declaration(id);
            if !self.declared[id as usize] {
                self.line(&format!("{declaration} v{id};"));
            }
            return self.line(&lines);
        }
        let value = self.value(id);
        let name = if self.declared[id as usize] { String::new() } else { format!("{} ", self.declaration(id)) };
        self.line(&format!("{name}v{id} = {value};"));
    }

    pub(super) fn variable(&self, var: VarId, index: Option<ValueId>) -> String {
        index.map_or(format!("x{var}"), |index| format!("x{var}[{}]", self.v(index)))
    }
}
