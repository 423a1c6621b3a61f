//! Pointers: their definitions, and the elements that they point to.

use super::machine::Machine;
use super::memory::{Address, Location};
use crate::ir::{PointerBase, PointerId, PointerInfo, ValueId};
use crate::types::Type;

impl Machine<'_, '_, '_> {
    /// Element `index` of a pointer of invocation `l`, for an access of type `ty`.
    pub(super) fn location(&self, pointer: PointerId, index: ValueId, ty: Type, l: usize) -> Location {
        self.memory.location(pointer, self.registers.lane(index, 0)[l] as i64, ty, l)
    }

    /// Evaluates a pointer that is not a parameter.
    pub(super) fn define_pointer(&mut self, id: PointerId, mask: &[bool]) {
        let PointerInfo { word, base } = self.k.pointers[id as usize];
        let address = match base {
            PointerBase::Param(_) => return,
            PointerBase::Offset(base, elements) => {
                self.memory.address(base).advanced(self.registers.lane(elements, 0), word)
            }
            PointerBase::Address(value) => {
                let words = self.registers.lane(value, 0).iter().zip(self.registers.lane(value, 1));
                let numbers: Vec<u64> = words.map(|(low, high)| low | high << 32).collect();
                Address::from_numbers(&numbers, &self.running(mask))
            }
        };
        self.memory.define(id, address);
    }

    /// Assigns the address of a pointer to a value, as two words.
    pub(super) fn address(&mut self, id: ValueId, pointer: PointerId) {
        for (l, number) in self.memory.address(pointer).numbers().into_iter().enumerate() {
            self.registers.lane_mut(id, 0)[l] = number & 0xffff_ffff;
            self.registers.lane_mut(id, 1)[l] = number >> 32;
        }
    }
}
