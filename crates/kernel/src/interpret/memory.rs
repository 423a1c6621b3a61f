//! Memory of tensors: the arguments, and the pointers into them.

use super::Argument;
use crate::ir::{Kernel, PointerBase, PointerId};
use crate::types::{Type, Word};

/// The bits of an address as a number: above, the index of an argument, from 1; below, a byte
/// offset plus [`MIDDLE`].
const ARGUMENT_BITS: u32 = 40;
const MIDDLE: i64 = 1 << 39;

/// A pointer of every invocation.
#[derive(Clone)]
pub(super) struct Address {
    argument: usize,
    /// Bytes from the start of the memory, per invocation.
    offset: Vec<i64>,
}

impl Address {
    /// The address advanced by a number of words for each invocation.
    pub(super) fn advanced(&self, elements: &[u64], word: Word) -> Address {
        let mut address = self.clone();
        for (offset, n) in address.offset.iter_mut().zip(elements) {
            *offset = offset.wrapping_add((*n as i64).wrapping_mul(i64::from(word.bytes())));
        }
        address
    }

    /// The address with these numbers, for the running invocations; all are in one argument.
    pub(super) fn from_numbers(numbers: &[u64], running: &[usize]) -> Address {
        let mut offset = vec![0; numbers.len()];
        let mut argument = None;
        for &l in running {
            let of = (numbers[l] >> ARGUMENT_BITS) as usize;
            assert_eq!(*argument.get_or_insert(of), of, "a pointer is into one argument");
            offset[l] = (numbers[l] & ((1 << ARGUMENT_BITS) - 1)) as i64 - MIDDLE;
        }
        Address { argument: argument.map_or(0, |argument| argument - 1), offset }
    }

    /// The address as a number for each invocation.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let base = (self.argument as u64 + 1) << ARGUMENT_BITS;
        self.offset.iter().map(|offset| base.wrapping_add_signed(offset + MIDDLE)).collect()
    }
}

/// A word in the memory of an argument.
#[derive(Copy, Clone)]
pub(super) struct Location {
    pub(super) argument: usize,
    /// Bytes from the start of the memory.
    pub(super) offset: usize,
    pub(super) word: Word,
}

impl Location {
    /// The word `lane` words further.
    pub(super) fn lane(self, lane: usize) -> Location {
        Location { offset: self.offset + lane * self.word.bytes() as usize, ..self }
    }
}

pub(super) struct Memory<'k, 'a, 'm> {
    k: &'k Kernel,
    arguments: &'m mut [Argument<'a>],
    /// By the kernel's indices; `None` until the pointer is defined.
    pointers: Vec<Option<Address>>,
}

impl<'k, 'a, 'm> Memory<'k, 'a, 'm> {
    pub(super) fn new(k: &'k Kernel, arguments: &'m mut [Argument<'a>], width: usize) -> Memory<'k, 'a, 'm> {
        let pointers = k.pointers.iter().map(|p| match p.base {
            PointerBase::Param(argument) => Some(Address { argument: argument as usize, offset: vec![0; width] }),
            PointerBase::Offset(..) | PointerBase::Address(_) => None,
        });
        Memory { k, arguments, pointers: pointers.collect() }
    }

    /// The number of a parameter.
    pub(super) fn number(&self, param: u32) -> u64 {
        match self.arguments[param as usize] {
            Argument::Number(x) => x,
            Argument::Memory(_) => panic!("parameter {param} of kernel {} is a number", self.k.name),
        }
    }

    pub(super) fn address(&self, pointer: PointerId) -> &Address {
        self.pointers[pointer as usize].as_ref().expect("a pointer is made before it is used")
    }

    /// Defines a pointer that is not a parameter.
    pub(super) fn define(&mut self, pointer: PointerId, address: Address) {
        self.pointers[pointer as usize] = Some(address);
    }

    /// Element `index` of a pointer of invocation `l`, for an access of type `ty`.
    pub(super) fn location(&self, pointer: PointerId, index: i64, ty: Type, l: usize) -> Location {
        let declared = self.k.pointers[pointer as usize].word;
        let plain = ty.lanes == 1 && declared.value() == ty.scalar;
        let word = if plain { declared } else { Word::Full(ty.scalar) };
        let address = self.address(pointer);
        let offset = address.offset[l] + index * i64::from(word.bytes()) * i64::from(ty.lanes);
        assert!(offset >= 0, "kernel {} reads or writes before its argument {}", self.k.name, address.argument);
        Location { argument: address.argument, offset: offset as usize, word }
    }

    fn bytes(&mut self, location: Location) -> &mut [u8] {
        let Location { argument, offset, word } = location;
        let name = &self.k.name;
        let Argument::Memory(memory) = &mut self.arguments[argument] else {
            panic!("parameter {argument} of kernel {name} is a pointer")
        };
        let len = memory.len();
        memory
            .get_mut(offset..offset + word.bytes() as usize)
            .unwrap_or_else(|| panic!("kernel {name} reaches byte {offset} of argument {argument}, which has {len}"))
    }

    pub(super) fn read(&mut self, location: Location) -> u64 {
        let source = self.bytes(location);
        let mut bytes = [0; 8];
        bytes[..source.len()].copy_from_slice(source);
        u64::from_le_bytes(bytes)
    }

    pub(super) fn write(&mut self, location: Location, bits: u64) {
        let target = self.bytes(location);
        target.copy_from_slice(&bits.to_le_bytes()[..target.len()]);
    }
}
