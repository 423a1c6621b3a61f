//! Execution of one instruction.

use super::machine::Machine;
use super::matrix::decode;
use super::word::{atomic, bits32, f32_, half, less};
use crate::dtype::DType;
use crate::ir::*;
use crate::types::{ScalarType, Type};

impl Machine<'_, '_, '_> {
    /// Evaluates a value: for all invocations of the workgroup where the instruction has no effect
    /// on memory and cannot fail, else for those of the mask.
    pub(super) fn define(&mut self, id: ValueId, mask: &[bool]) {
        let k = self.k;
        let ValueInfo { ty, ref inst } = k.values[id as usize];
        let s = ty.scalar;
        match *inst {
            Inst::ConstBool(_)
            | Inst::ConstInt(_)
            | Inst::ConstFloat(_)
            | Inst::Builtin(_)
            | Inst::Param(_)
            | Inst::Placeholder(_) => {}
            Inst::Address(pointer) => self.address(id, pointer),
            Inst::Unary(op, a) => self.unary(id, op, s, a),
            Inst::Binary(op, a, b) => self.binary(id, op, s, a, b),
            Inst::Compare(op, a, b) => self.compare(id, op, k.values[a as usize].ty.scalar, a, b),
            Inst::Select(c, a, b) => self.registers.map3(id, [c, a, b], |c, a, b| if c != 0 { a } else { b }),
            Inst::Cast(a) => self.cast(id, k.values[a as usize].ty.scalar, s, a),
            Inst::Bitcast(a) => self.registers.map1(id, a, |a| a),
            Inst::Fma(a, b, c) => self.fma(id, s, [a, b, c]),
            Inst::GetVar { var, index } => self.each(id, |machine, l| {
                let element = index.map_or(0, |i| machine.registers.lane(i, 0)[l] as usize);
                machine.vars[var as usize].get(element * machine.registers.width + l).copied().unwrap_or(0)
            }),
            Inst::Load { pointer, index } => {
                for l in self.running(mask) {
                    let location = self.location(pointer, index, ty, l);
                    for lane in 0..ty.lanes as usize {
                        self.registers.lane_mut(id, lane)[l] = self.memory.read(location.lane(lane));
                    }
                }
            }
            Inst::LoadShared { shared, index } => {
                for l in self.running(mask) {
                    let at = self.registers.lane(index, 0)[l] as usize * ty.lanes as usize;
                    for lane in 0..ty.lanes as usize {
                        self.registers.lane_mut(id, lane)[l] = self.shared[shared as usize][at + lane];
                    }
                }
            }
            Inst::Extract(a, lane) => self.registers.copy_lane((id, 0), (a, lane as usize)),
            Inst::Vector(ref lanes) => {
                for (i, &a) in lanes.iter().enumerate() {
                    self.registers.copy_lane((id, i), (a, 0));
                }
            }
            Inst::Atomic { op, pointer, index, value } => {
                self.exchange(id, [pointer, index], ty, mask, |machine, l, old| {
                    atomic(op, s, old, machine.registers.lane(value, 0)[l])
                });
            }
            Inst::AtomicShared { op, shared, index, value } => {
                for l in self.running(mask) {
                    let at = self.registers.lane(index, 0)[l] as usize;
                    let old = self.shared[shared as usize][at];
                    self.shared[shared as usize][at] = atomic(op, s, old, self.registers.lane(value, 0)[l]);
                    self.registers.lane_mut(id, 0)[l] = old;
                }
            }
            Inst::CompareExchange { pointer, index, expected, value } => {
                self.exchange(id, [pointer, index], ty, mask, |machine, l, old| {
                    let equal = old == machine.registers.lane(expected, 0)[l];
                    if equal { machine.registers.lane(value, 0)[l] } else { old }
                });
            }
            Inst::Subgroup(op, a) => self.subgroup(id, op, s, a, mask),
            Inst::ShuffleXor(a, m) => self.each(id, |machine, l| {
                let size = machine.subgroup_size;
                let other = l / size * size + ((l % size) ^ m as usize);
                machine.registers.lane(a, 0).get(other).copied().unwrap_or(0)
            }),
            Inst::Component { matrix, component } => {
                for l in self.running(mask) {
                    self.registers.lane_mut(id, 0)[l] = *self.component(matrix, component, l);
                }
            }
            Inst::Halves(low, high) => {
                self.registers.map2(id, low, high, |low, high| half(f32_(low)) | half(f32_(high)) << 16)
            }
            Inst::Half(word, part) => self.registers.map1(id, word, |word| decode(DType::F16, word >> (16 * part))),
            Inst::Larger(a, b) => self.registers.map2(id, a, b, |a, b| bits32(f32_(a).max(f32_(b)))),
        }
    }

    /// Assigns a scalar to a value for every invocation.
    fn each(&mut self, id: ValueId, f: impl Fn(&Self, usize) -> u64) {
        for l in 0..self.registers.width {
            self.registers.lane_mut(id, 0)[l] = f(self, l);
        }
    }

    /// Replaces an element of a tensor by what `new` computes from the old value, invocation after
    /// invocation, and assigns the old value.
    fn exchange(
        &mut self,
        id: ValueId,
        [pointer, index]: [u32; 2],
        ty: Type,
        mask: &[bool],
        new: impl Fn(&Self, usize, u64) -> u64,
    ) {
        for l in self.running(mask) {
            let location = self.location(pointer, index, ty, l);
            let old = self.memory.read(location);
            self.memory.write(location, new(self, l, old));
            self.registers.lane_mut(id, 0)[l] = old;
        }
    }

    /// Reduces over the running lanes of each subgroup. Floats are added in the order of the lanes.
    fn subgroup(&mut self, id: ValueId, op: Subgroup, s: ScalarType, a: ValueId, mask: &[bool]) {
        let (running, size, n) = (self.running(mask), self.subgroup_size, self.subnormals);
        for subgroup in running.chunk_by(|x, y| x / size == y / size) {
            let words = subgroup.iter().map(|&l| self.registers.lane(a, 0)[l]);
            let all = words.reduce(|x, y| match op {
                Subgroup::First => x,
                Subgroup::Add => n.add(s, x, y),
                Subgroup::Min if less(s, y, x) => y,
                Subgroup::Max if less(s, x, y) => y,
                Subgroup::Min | Subgroup::Max => x,
            });
            for &l in subgroup {
                self.registers.lane_mut(id, 0)[l] = all.unwrap_or(0);
            }
        }
    }
}
