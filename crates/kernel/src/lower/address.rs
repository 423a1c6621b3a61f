//! Accesses by addresses as pairs of words, and emulation of narrow elements in memory that is
//! accessed in 32-bit words.

use super::pair::Pair;
use crate::builder::{Builder, Value};
use crate::ir::{Inst, PointerBase, PointerId, PointerInfo, Stmt, ValueId};
use crate::types::{ScalarType, Type, Word};

/// The type of an address as a value.
pub(super) const WORDS: Type = Type { scalar: ScalarType::U32, lanes: 2 };

const U32: Type = Type::scalar(ScalarType::U32);

/// A pointer of the rewritten kernel.
#[derive(Copy, Clone)]
pub(super) struct Address<'b> {
    address: Pair<'b>,
    /// The word of its elements in memory.
    pub(super) word: Word,
    /// A pointer to the address, for accesses to elements that are not narrow.
    pub(super) pointer: PointerId,
}

/// The position of a narrow element in a 32-bit word. The address of an element is a multiple of
/// its size, so no element crosses words.
#[derive(Copy, Clone)]
pub(super) struct Narrow<'b> {
    pointer: PointerId,
    /// The number of bits of the word below the element.
    shift: Value<'b>,
    /// The mask of the element's bits, before the shift.
    mask: u32,
}

impl<'b> Address<'b> {
    /// The address of elements of `word`, for accesses by words of `accessed`.
    pub(super) fn new(address: Pair<'b>, word: Word, accessed: Word) -> Self {
        Self { address, word, pointer: pointer_to(address, accessed) }
    }

    /// The address of a parameter.
    pub(super) fn of_param(b: &'b Builder, pointer: PointerId) -> Pair<'b> {
        let value = b.def(WORDS, Inst::Address(pointer));
        Pair::new(value.lane(0), value.lane(1))
    }

    /// The address advanced by `elements` of `bytes` bytes, a power of two.
    pub(super) fn moved(self, elements: Pair<'b>, bytes: u32) -> Pair<'b> {
        self.address.add(elements.shl_by(bytes.trailing_zeros()))
    }

    /// The position of a narrow element.
    pub(super) fn narrow(self, index: Pair<'b>) -> Narrow<'b> {
        let bytes = self.word.bytes();
        let Pair { low, high } = self.moved(index, bytes);
        let whole = Pair::new(low & !3u32, high);
        Narrow {
            pointer: pointer_to(whole, Word::Full(ScalarType::U32)),
            shift: (low & 3) << 3,
            mask: (1 << (8 * bytes)) - 1,
        }
    }
}

impl<'b> Narrow<'b> {
    /// Loads the element, widened to u32.
    pub(super) fn load(self, b: &'b Builder) -> Value<'b> {
        let word = b.def(U32, Inst::Load { pointer: self.pointer, index: b.u32(0).id });
        (word >> self.shift) & self.mask
    }

    /// Writes the element's bits by a loop of compare-exchanges, so that concurrent writes to other
    /// elements of the word are kept. If two invocations write the same element, one of them wins.
    pub(super) fn store(self, b: &'b Builder, value: Value<'b>) {
        let (bits, others) = ((value & self.mask) << self.shift, !(b.u32(self.mask) << self.shift));
        let zero = b.u32(0);
        let (seen, done) =
            (b.var(b.def(U32, Inst::Load { pointer: self.pointer, index: zero.id })), b.var(b.bool(false)));
        b.while_(
            || !done.get(),
            || {
                let expected = seen.get();
                let value = (expected & others) | bits;
                let exchange = Inst::CompareExchange {
                    pointer: self.pointer,
                    index: zero.id,
                    expected: expected.id,
                    value: value.id,
                };
                let old = b.def(U32, exchange);
                done.set(old.eq(expected));
                seen.set(old);
            },
        );
    }
}

/// Evaluates a pointer to an address here.
fn pointer_to(address: Pair<'_>, word: Word) -> PointerId {
    let b = address.low.builder();
    let value: ValueId = b.vector(&[address.low, address.high]).id;
    let pointer = b.declare_pointer(PointerInfo { word, base: PointerBase::Address(value) });
    b.stmt(Stmt::DefPointer(pointer));
    pointer
}
