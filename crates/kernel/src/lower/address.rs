//! Accesses by addresses that are pairs of words, and narrow elements in memory that is accessed in
//! words of 32 bits.

use super::pair::Pair;
use crate::builder::{Builder, Value};
use crate::ir::{Inst, PointerBase, PointerId, PointerInfo, Stmt, ValueId};
use crate::types::{ScalarType, Type, Word};

/// The type of an address as a value.
pub(super) const WORDS: Type = Type { scalar: ScalarType::U32, lanes: 2 };

const U32: Type = Type::scalar(ScalarType::U32);

/// A pointer of the kernel that is rewritten.
#[derive(Copy, Clone)]
pub(super) struct Address<'b> {
    address: Pair<'b>,
    /// How its elements lie in memory.
    pub(super) word: Word,
    /// A pointer to it, through which elements that are not narrow are accessed.
    pub(super) pointer: PointerId,
}

/// A narrow element's place in the 32-bit word that holds it. The address of an element is a
/// multiple of its size, so it lies in one word.
#[derive(Copy, Clone)]
pub(super) struct Narrow<'b> {
    pointer: PointerId,
    /// Bits of the word below the element.
    shift: Value<'b>,
    /// The element's bits, in the lowest place.
    mask: u32,
}

impl<'b> Address<'b> {
    /// The address of elements that lie as `word` says and are accessed as `accessed`.
    pub(super) fn new(address: Pair<'b>, word: Word, accessed: Word) -> Self {
        Self { address, word, pointer: pointer_to(address, accessed) }
    }

    /// The address of a parameter.
    pub(super) fn of_param(b: &'b Builder, pointer: PointerId) -> Pair<'b> {
        let value = b.def(WORDS, Inst::Address(pointer));
        Pair::new(value.lane(0), value.lane(1))
    }

    /// What lies so many elements of so many bytes, a power of two, further on.
    pub(super) fn moved(self, elements: Pair<'b>, bytes: u32) -> Pair<'b> {
        self.address.add(elements.shl_by(bytes.trailing_zeros()))
    }

    /// Where a narrow element is.
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
    /// The element, widened.
    pub(super) fn load(self, b: &'b Builder) -> Value<'b> {
        let word = b.def(U32, Inst::Load { pointer: self.pointer, index: b.u32(0).id });
        (word >> self.shift) & self.mask
    }

    /// Writes the element's bits and leaves the rest of the word as it is, whoever else writes
    /// there: a neighbour's element is never written, and of two that write the same element one
    /// wins.
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

/// Makes a pointer to an address here.
fn pointer_to(address: Pair<'_>, word: Word) -> PointerId {
    let b = address.low.builder();
    let value: ValueId = b.vector(&[address.low, address.high]).id;
    let pointer = b.declare_pointer(PointerInfo { word, base: PointerBase::Address(value) });
    b.stmt(Stmt::DefPointer(pointer));
    pointer
}
