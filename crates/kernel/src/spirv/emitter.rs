//! Emits a kernel: tensors are accessed by buffer addresses, without descriptors.
//!
//! The parameter block is passed as push constants while it fits in [`MAX_PUSH_BYTES`]. A larger
//! block is in memory, and the push constant is its address ([`Module::indirect`]).

use super::branch_params;
use super::code::{Code, Id};
use super::late_constants;
use super::module::{MAX_PUSH_BYTES, Module, Needs};
use super::reload::ParamBlock;
use crate::collect::{collect, collect_origin};
use crate::group_counts::GroupCounts;
use crate::hlsl::compiled;
use crate::ir::*;
use crate::lower::{FloatModes, Target};
use crate::matrix_type::MatrixType;
use crate::verify::InvalidKernel;
use dml_environment::HLSL_DIR;
use rspirv::spirv::MemoryModel;
use std::borrow::Cow;

impl Kernel {
    /// The kernel as SPIR-V for any adapter. Takes tens to hundreds of microseconds. A copy is
    /// written to the folder that `TORCH_DML_SPIRV_DIR` names.
    ///
    /// # Errors
    /// [`InvalidKernel`] of a kernel that is not [well typed](Kernel::verify).
    pub fn emit(&self) -> Result<Module, InvalidKernel> {
        self.emit_for(&Target::default())
    }

    /// The kernel as SPIR-V for an adapter: rewritten without the features that the adapter lacks,
    /// as far as possible, and with the float modes that it supports.
    ///
    /// # Errors
    /// As [`emit`](Self::emit).
    pub fn emit_for(&self, target: &Target) -> Result<Module, InvalidKernel> {
        self.verify()?;
        let lowered = self.lowered(target);
        if let Cow::Owned(lowered) = &lowered {
            lowered.verify()?;
        }
        let mut module = Emitter::new(&lowered, target).run(GroupCounts::of(self));
        collect(&module.name, &module.words);
        if HLSL_DIR.get().is_some() {
            let compiled = compiled(self, target);
            collect_origin(&module.name, &module.words, compiled.as_ref().err().map(String::as_str));
            module.words = compiled.unwrap_or(module.words);
        }
        Ok(module)
    }
}

/// A kernel, and the module's ids of what it declares and defines, by the kernel's indices.
pub(super) struct Emitter<'k> {
    pub(super) k: &'k Kernel,
    pub(super) code: Code,
    pub(super) floats: FloatModes,
    pub(super) values: Vec<Id>,
    pub(super) vars: Vec<Id>,
    pub(super) pointers: Vec<Id>,
    pub(super) shared: Vec<Id>,
    pub(super) matrices: Vec<Id>,
    /// The products so far of matrix registers; see [`Module::products`].
    pub(super) products: Vec<[MatrixType; 3]>,
    /// Whether loops load parameters again that are in memory.
    pub(super) reloads_params: bool,
    /// Whether they do so from addresses with offsets of 32 bits.
    pub(super) narrow_offsets: bool,
    /// The parameter block, if they do.
    pub(super) reloaded: Option<ParamBlock>,
    /// The parameters that each statement of the kernel's body loads where it begins, if they are
    /// in memory.
    pub(super) of_branches: Vec<Vec<u32>>,
    /// Those of the statement that begins.
    pub(super) entering: Vec<u32>,
    /// The address of the parameter block and the types of its members, if branches load some.
    pub(super) late_params: Option<(Id, Vec<Id>)>,
    /// Whether loops make constants of f64 where they use them.
    pub(super) makes_constants: bool,
    /// A zero (u32) that compilers do not know, if one is used.
    pub(super) unknown_zero: Option<Id>,
    /// Whether the open block has ended with a return.
    pub(super) terminated: bool,
}

impl<'k> Emitter<'k> {
    fn new(k: &'k Kernel, target: &Target) -> Self {
        // Matrix registers exist in Vulkan's memory model only.
        let memory_model = if k.matrices.is_empty() { MemoryModel::GLSL450 } else { MemoryModel::Vulkan };
        let makes_constants = target.reloads_params && late_constants::are_many(k);
        let needs = Needs { workgroup_invocations: k.workgroup_size.iter().product(), ..Needs::default() };
        Emitter {
            k,
            code: Code::new(memory_model, needs),
            floats: target.floats,
            values: vec![0; k.values.len()],
            vars: Vec::new(),
            pointers: vec![0; k.pointers.len()],
            shared: Vec::new(),
            matrices: Vec::new(),
            products: Vec::new(),
            reloads_params: target.reloads_params,
            narrow_offsets: target.reloads_params && (target.narrow_offsets || makes_constants),
            of_branches: if target.late_params { branch_params::of_branches(k) } else { Vec::new() },
            entering: Vec::new(),
            late_params: None,
            makes_constants,
            unknown_zero: None,
            reloaded: None,
            terminated: false,
        }
    }

    fn run(mut self, counts: GroupCounts) -> Module {
        let (offsets, param_bytes) = param_offsets(&self.k.params);
        let indirect = param_bytes > MAX_PUSH_BYTES;
        let zero = self.code.u32(0);
        self.declare_shared();
        self.declare_constants();

        let main = self.code.begin_main();
        self.declare_variables();
        self.declare_matrices();
        self.load_builtins(indirect);
        self.load_params(&offsets, indirect, zero);
        self.body();
        if !self.terminated {
            self.code.b.ret().expect("a block is open");
        }
        self.code.end_main(main, self.k.workgroup_size);
        let matrices: Vec<_> = self.k.matrices.iter().map(|matrix| matrix.dtype).collect();
        self.code.capabilities(&matrices);
        self.code.float_modes(main, self.floats);
        Module {
            name: self.k.name.clone(),
            push_bytes: if indirect { 8 } else { param_bytes },
            param_bytes,
            indirect,
            workgroup_size: self.k.workgroup_size,
            needs: self.code.needs,
            products: self.products,
            counts,
            words: self.code.assemble(),
        }
    }

    /// The id of a value.
    pub(super) fn v(&self, id: ValueId) -> Id {
        self.values[id as usize]
    }
}
