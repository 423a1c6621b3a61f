//! Barriers, scopes and shared accesses in either memory model.

use super::code::{Code, Id};
use rspirv::dr::Operand;
use rspirv::spirv::{self, MemoryModel, Op, Scope};

impl Code {
    /// The memory operand of accesses to shared memory. In Vulkan's memory model an access is
    /// private to its invocation unless the operand says otherwise.
    pub(super) fn workgroup_access(&self) -> Option<Operand> {
        let shared = spirv::MemoryAccess::NON_PRIVATE_POINTER;
        (self.memory_model == MemoryModel::Vulkan).then_some(Operand::MemoryAccess(shared))
    }

    /// Waits for all invocations of a scope, and makes their writes to shared memory visible to
    /// each other.
    pub(super) fn barrier(&mut self, scope: Scope) {
        use spirv::MemorySemantics as Semantics;
        let scope = self.scope(scope);
        let mut semantics = Semantics::ACQUIRE_RELEASE | Semantics::WORKGROUP_MEMORY;
        if self.memory_model == MemoryModel::Vulkan {
            semantics |= Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE;
        }
        let semantics = self.u32(semantics.bits());
        self.effect(Op::ControlBarrier, [scope, scope, semantics].map(Operand::IdRef).to_vec());
    }

    /// The scope and the memory semantics of relaxed atomics on tensors.
    pub(super) fn device_scope(&mut self) -> (Id, Id) {
        // In Vulkan's memory model the device scope is an optional feature. The scope of the queue
        // family suffices: all work is submitted to one family.
        let vulkan = self.memory_model == MemoryModel::Vulkan;
        let scope = self.scope(if vulkan { Scope::QueueFamily } else { Scope::Device });
        (scope, self.u32(0))
    }

    pub(super) fn scope(&mut self, scope: Scope) -> Id {
        self.u32(scope as u32)
    }
}
