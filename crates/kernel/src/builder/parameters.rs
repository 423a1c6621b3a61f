//! A kernel's parameters and builtin values.

use super::{Builder, Pointer, Value};
use crate::dtype::DType;
use crate::ir::{Builtin, Inst, ParamKind};
use crate::types::{ScalarType, Type};

impl Builder {
    /// A tensor argument that the kernel only reads: the next member of the parameter block is its
    /// address. Writing through it panics while the kernel is built, since the launch orders no
    /// write to it.
    pub fn input(&self, name: &str, dtype: DType) -> Pointer<'_> {
        Pointer { b: self, id: self.param_pointer(name, dtype, false), dtype, read_only: true }
    }

    /// A tensor argument that the kernel may write: the next member of the parameter block is its
    /// address.
    pub fn pointer(&self, name: &str, dtype: DType) -> Pointer<'_> {
        Pointer { b: self, id: self.param_pointer(name, dtype, true), dtype, read_only: false }
    }

    /// A number argument: the next member of the parameter block.
    pub fn param(&self, name: &str, scalar: ScalarType) -> Value<'_> {
        assert!(scalar != ScalarType::Bool, "a parameter is a number");
        let index = self.param_of(name, ParamKind::Scalar(scalar));
        self.entry(Type::scalar(scalar), Inst::Param(index))
    }

    pub(crate) fn builtin(&self, builtin: Builtin) -> Value<'_> {
        self.entry(Type::scalar(ScalarType::U32), Inst::Builtin(builtin))
    }

    /// Index of the workgroup along dimension `d`.
    pub fn group_id(&self, d: u8) -> Value<'_> {
        self.builtin(Builtin::Group(d))
    }

    /// Index of the invocation in its workgroup along dimension `d`.
    pub fn local_id(&self, d: u8) -> Value<'_> {
        self.builtin(Builtin::Local(d))
    }

    /// Number of workgroups along dimension `d`.
    pub fn group_count(&self, d: u8) -> Value<'_> {
        self.builtin(Builtin::Groups(d))
    }

    /// `group_id * workgroup_size + local_id` along dimension `d`.
    pub fn global_id(&self, d: u8) -> Value<'_> {
        let size = self.state.borrow().kernel.workgroup_size[d as usize];
        self.group_id(d) * size + self.local_id(d)
    }

    /// Index of the lane in its subgroup.
    pub fn subgroup_lane(&self) -> Value<'_> {
        self.builtin(Builtin::SubgroupLane)
    }

    /// Index of the subgroup in its workgroup.
    pub fn subgroup_index(&self) -> Value<'_> {
        self.builtin(Builtin::SubgroupIndex)
    }

    /// Lanes in a subgroup.
    pub fn subgroup_size(&self) -> Value<'_> {
        self.builtin(Builtin::SubgroupSize)
    }
}
