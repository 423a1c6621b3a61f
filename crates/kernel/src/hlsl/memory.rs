//! Pointers, and accesses through them.

use super::emitter::Emitter;
use super::values::type_name;
use crate::ir::*;
use crate::types::{Type, Word};

impl Emitter<'_> {
    /// The address of a pointer.
    pub(super) fn pointer(&self, id: PointerId) -> String {
        let PointerInfo { word, base } = self.k.pointers[id as usize];
        match base {
            PointerBase::Param(_) => format!("p{id}"),
            PointerBase::Offset(base, elements) => format!("at(p{base}, {}, {})", self.v(elements), word.bytes()),
            PointerBase::Address(words) => self.v(words).to_owned(),
        }
    }

    /// The address of an element for an access of type `ty`, and its type in memory.
    fn element(&self, pointer: PointerId, index: ValueId, ty: Type) -> (String, String) {
        let word = self.k.pointers[pointer as usize].word;
        let narrow = ty.lanes == 1 && word.value() == ty.scalar;
        let (name, bytes) = match word {
            Word::W8 if narrow => unreachable!("lowered"),
            Word::W16 if narrow => ("uint16_t".to_owned(), 2),
            _ => (type_name(ty), ty.scalar.bytes() * u32::from(ty.lanes)),
        };
        (format!("at(p{pointer}, {}, {bytes})", self.v(index)), name)
    }

    pub(super) fn load(&self, pointer: PointerId, index: ValueId, ty: Type) -> String {
        let (address, name) = self.element(pointer, index, ty);
        format!("({})IN({address}).Load<{name}>(({address}).x)", type_name(ty))
    }

    pub(super) fn store(&self, pointer: PointerId, index: ValueId, value: ValueId) -> String {
        let (address, name) = self.element(pointer, index, self.k.values[value as usize].ty);
        format!("IN({address}).Store<{name}>(({address}).x, ({name}){});", self.v(value))
    }

    /// The statement of an atomic access, which assigns the old value to the value's variable;
    /// `None` for other instructions.
    pub(super) fn atomic(&mut self, id: ValueId) -> Option<String> {
        let ty = self.k.values[id as usize].ty;
        let (pointer, index, what, operands) = match self.k.values[id as usize].inst {
            Inst::Atomic { op, pointer, index, value } => (pointer, index, name(op), self.v(value).to_owned()),
            Inst::CompareExchange { pointer, index, expected, value } => {
                (pointer, index, "CompareExchange", format!("{}, {}", self.v(expected), self.v(value)))
            }
            Inst::AtomicShared { op, shared, index, value } => {
                let (index, value) = (self.v(index), self.v(value));
                return Some(format!("Interlocked{}(s{shared}[{index}], {value}, v{id});", name(op)));
            }
            _ => return None,
        };
        self.atomics += 1;
        let wide = ty.scalar.bytes() == 8;
        self.atomics_i64 += u32::from(wide);
        let width = if wide { "64" } else { "" };
        let (address, _) = self.element(pointer, index, ty);
        Some(format!("IN({address}).Interlocked{what}{width}(({address}).x, {operands}, v{id});"))
    }
}

fn name(op: Atomic) -> &'static str {
    match op {
        Atomic::Add => "Add",
        Atomic::Min => "Min",
        Atomic::Max => "Max",
        Atomic::And => "And",
        Atomic::Or => "Or",
        Atomic::Xor => "Xor",
        Atomic::Exchange => "Exchange",
    }
}
