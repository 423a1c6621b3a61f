//! The definitions that have run at a point of a kernel.

use crate::ir::{Kernel, PointerId, ValueId};

/// The values and pointers that may be used at a point of a kernel.
pub(super) struct Scope {
    values: Vec<bool>,
    /// Pointers that are not parameters.
    pointers: Vec<bool>,
    /// The definitions of the open blocks, in order.
    opened: Vec<Definition>,
}

#[derive(Copy, Clone)]
enum Definition {
    Value(ValueId),
    Pointer(PointerId),
}

impl Scope {
    /// The scope at a kernel's entry.
    pub(super) fn new(k: &Kernel) -> Scope {
        Scope {
            values: k.values.iter().map(|value| value.inst.is_entry()).collect(),
            pointers: vec![false; k.pointers.len()],
            opened: Vec::new(),
        }
    }

    pub(super) fn has_value(&self, id: ValueId) -> bool {
        self.values.get(id as usize) == Some(&true)
    }

    pub(super) fn has_pointer(&self, id: PointerId) -> bool {
        self.pointers[id as usize]
    }

    pub(super) fn define_value(&mut self, id: ValueId) {
        self.values[id as usize] = true;
        self.opened.push(Definition::Value(id));
    }

    pub(super) fn define_pointer(&mut self, id: PointerId) {
        self.pointers[id as usize] = true;
        self.opened.push(Definition::Pointer(id));
    }

    /// The number of definitions in the open blocks, for [`close`](Self::close).
    pub(super) fn mark(&self) -> usize {
        self.opened.len()
    }

    /// Closes a block: removes the definitions since a mark.
    pub(super) fn close(&mut self, mark: usize) {
        for definition in self.opened.drain(mark..) {
            match definition {
                Definition::Value(id) => self.values[id as usize] = false,
                Definition::Pointer(id) => self.pointers[id as usize] = false,
            }
        }
    }
}
