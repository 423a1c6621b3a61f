//! The machine that runs a kernel.
//!
//! The bits computed here are the bits that every driver must give for normal numbers. Where Vulkan
//! leaves a result open, the machine has one result: [`Inst::Fma`] is fused, conversions of floats
//! to integers saturate, and an integer division by zero gives 0. Subnormal numbers are kept, or
//! flushed as an adapter may flush them ([`Subnormals`]).
//!
//! All invocations of a workgroup run in lockstep: every instruction is evaluated for all of them
//! before the next one, and a branch masks its inactive invocations. So barriers have nothing to
//! do, and the kernel is traversed once for a whole workgroup.

use super::Argument;
use super::memory::Memory;
use super::registers::Registers;
use super::subnormals::Subnormals;
use super::word::narrow;
use crate::ir::*;

pub(super) struct Machine<'k, 'a, 'm> {
    pub(super) k: &'k Kernel,
    pub(super) registers: Registers,
    pub(super) memory: Memory<'k, 'a, 'm>,
    /// Per variable `len * width` words.
    pub(super) vars: Vec<Vec<u64>>,
    /// Per shared array `len * lanes` words.
    pub(super) shared: Vec<Vec<u64>>,
    /// Per matrix register the elements of each subgroup's matrix, row after row.
    pub(super) matrices: Vec<Vec<u64>>,
    /// Invocations that have not returned.
    pub(super) live: Vec<bool>,
    /// Number of workgroups, per dimension.
    groups: [u32; 3],
    pub(super) subgroup_size: usize,
    pub(super) subnormals: Subnormals,
}

impl<'k, 'a, 'm> Machine<'k, 'a, 'm> {
    pub(super) fn new(
        k: &'k Kernel,
        groups: [u32; 3],
        subgroup_size: u32,
        subnormals: Subnormals,
        arguments: &'m mut [Argument<'a>],
    ) -> Machine<'k, 'a, 'm> {
        let registers = Registers::new(k);
        let width = registers.width;
        let subgroups = width.div_ceil(subgroup_size as usize);
        let mut machine = Machine {
            k,
            registers,
            memory: Memory::new(k, arguments, width),
            vars: k.vars.iter().map(|v| vec![0; v.len as usize * width]).collect(),
            shared: k.shared.iter().map(|s| vec![0; s.len as usize * s.ty.lanes as usize]).collect(),
            matrices: k.matrices.iter().map(|m| vec![0; m.len() as usize * subgroups]).collect(),
            live: vec![true; width],
            groups,
            subgroup_size: subgroup_size as usize,
            subnormals,
        };
        machine.constants_and_parameters();
        machine
    }

    /// Assigns the values that are the same in all workgroups.
    fn constants_and_parameters(&mut self) {
        for (value, id) in self.k.values.iter().zip(0..) {
            let word = match value.inst {
                Inst::ConstBool(x) => u64::from(x),
                Inst::ConstInt(x) => narrow(value.ty.scalar, x),
                Inst::ConstFloat(bits) => bits,
                Inst::Param(p) if value.ty.lanes == 2 => {
                    self.registers.lane_mut(id, 1).fill(self.memory.number(p) >> 32);
                    self.memory.number(p) & 0xffff_ffff
                }
                Inst::Param(p) => narrow(value.ty.scalar, self.memory.number(p)),
                _ => continue,
            };
            self.registers.lane_mut(id, 0).fill(word);
        }
    }

    /// Runs one workgroup.
    pub(super) fn workgroup(&mut self, group: [u32; 3]) {
        self.live.fill(true);
        for (value, id) in self.k.values.iter().zip(0..) {
            if let Inst::Builtin(builtin) = value.inst {
                self.builtin(id, builtin, group);
            }
        }
        let mask = vec![true; self.registers.width];
        self.block(&self.k.body, &mask);
    }

    fn builtin(&mut self, id: ValueId, builtin: Builtin, group: [u32; 3]) {
        let [sx, sy, _] = self.k.workgroup_size.map(|s| s as usize);
        let (groups, subgroup) = (self.groups, self.subgroup_size);
        for (l, word) in self.registers.lane_mut(id, 0).iter_mut().enumerate() {
            let local = [l % sx, l / sx % sy, l / (sx * sy)];
            *word = match builtin {
                Builtin::Group(d) => u64::from(group[d as usize]),
                Builtin::Local(d) => local[d as usize] as u64,
                Builtin::Groups(d) => u64::from(groups[d as usize]),
                Builtin::SubgroupLane => (l % subgroup) as u64,
                Builtin::SubgroupSize => subgroup as u64,
                Builtin::SubgroupIndex => (l / subgroup) as u64,
            };
        }
    }
}
