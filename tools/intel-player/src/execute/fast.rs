//! The most common arithmetic, of 32 bits, for all channels at once: the processor's vectors do it.
//!
//! What is not here falls back to [`super::integer`] and [`super::float`], which have every type;
//! tests hold both against each other.

use super::region::Mode;
use super::thread::Thread;
use crate::isa::file;
use crate::isa::instruction::{Instruction, Operation, Place, Plan, Source, Type};
use crate::isa::sources;

/// How an instruction is carried out, decided once.
#[must_use]
pub fn plan(it: &Instruction) -> Plan {
    use Operation::*;
    let used = &it.source[..sources(it.operation, it.condition)];
    let compares = matches!(it.operation, Cmp | Sel) && it.condition != 0;
    let place = match it.to.place {
        Place::File(byte) => usize::from(byte) < file::GENERAL,
        // For the flags alone.
        Place::Null => it.condition != 0,
        _ => false,
    };
    let simple = !it.accumulate && matches!(it.channels, 8 | 16) && place;
    let simple = simple
        && it.condition <= 6
        && used.iter().all(|source| match source.place {
            Place::File(byte) => usize::from(byte) < file::GENERAL,
            Place::Immediate(_) => !matches!(source.kind, Type::V | Type::UV | Type::VF),
            _ => false,
        });
    if !simple {
        return Plan::General;
    }
    if used.iter().all(|source| source.kind == Type::F) && matches!(it.to.kind, Type::F)
        || it.operation == Cmp && used.iter().all(|source| source.kind == Type::F) && it.to.kind.bytes() == 4
    {
        let has = matches!(it.operation, Add | Mul | Mad | Cmp | Sel)
            || it.operation == Mov && (it.saturate || used[0].negate || used[0].absolute || it.condition != 0);
        return if has { Plan::Singles } else { raw_move(it) };
    }
    let small = |source: &Source| !source.kind.is_float() && source.kind.bytes() <= 4 && !source.absolute;
    if it.to.kind.is_float() || it.to.kind.bytes() != 4 || it.saturate || !used.iter().all(small) {
        return raw_move(it);
    }
    let kinds_are = |signed: bool| used.iter().all(|source| source.kind.is_signed() == signed && !source.negate);
    let has = match it.operation {
        Mov | And | Or | Xor | Not | Add | Mul | Mad | Shl | Bfi2 => true,
        Shr => used[0].kind == Type::UD && !used[0].negate,
        Asr => used[0].kind == Type::D && !used[0].negate,
        // Comparisons of the same signedness, which the numbers of 32 bits decide.
        Cmp | Sel => compares && (kinds_are(true) || kinds_are(false)) || it.operation == Sel && it.condition == 0,
        _ => false,
    };
    if has { Plan::Words } else { Plan::General }
}

/// A move of the bits of 32-bit elements.
fn raw_move(it: &Instruction) -> Plan {
    let source = &it.source[0];
    let same = it.to.kind == source.kind && it.to.kind.bytes() == 4 && !source.negate && !source.absolute;
    if it.operation == Operation::Mov && same && !it.saturate && it.condition == 0 {
        Plan::Words
    } else {
        Plan::General
    }
}

impl Thread {
    /// A source as 32 bits of each channel, without modifiers.
    #[inline(always)]
    fn words<const N: usize>(&self, source: &Source) -> [u32; N] {
        let mut row = [0; N];
        match source.place {
            Place::Immediate(value) => row = [narrow(source.kind, value); N],
            Place::File(byte) => {
                let byte = usize::from(byte);
                let bytes = source.kind.bytes();
                match (source.stride(), bytes) {
                    (Some(0), 4) => row = [self.word(byte); N],
                    (Some(1), 4) => {
                        if let Some(from) = self.file.get(byte..byte + 4 * N) {
                            for (to, b) in row.iter_mut().zip(from.chunks_exact(4)) {
                                *to = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                            }
                        }
                    }
                    (Some(stride), 4) => (0..N).for_each(|k| row[k] = self.word(byte + 4 * stride * k)),
                    (stride, _) => {
                        let (width, vertical) = (usize::from(source.width), usize::from(source.vertical));
                        for (k, value) in row.iter_mut().enumerate() {
                            let element = match stride {
                                Some(stride) => k * stride,
                                None => k / width * vertical + k % width * usize::from(source.horizontal),
                            };
                            // Of what follows the element nothing is used.
                            *value = narrow(source.kind, self.word(byte + bytes * element).into());
                        }
                    }
                }
            }
            _ => {}
        }
        row
    }

    /// A source as words with its modifiers.
    #[inline(always)]
    fn modified<const N: usize>(&self, source: &Source, logical: bool) -> [u32; N] {
        let row = self.words(source);
        match (source.negate, logical) {
            (false, _) => row,
            (true, false) => row.map(u32::wrapping_neg),
            (true, true) => row.map(|value| !value),
        }
    }

    /// A source as f32 with its modifiers.
    #[inline(always)]
    fn singles<const N: usize>(&self, source: &Source, mode: Mode) -> [f32; N] {
        let row = self.words(source);
        let keep = if source.absolute { 0x7fff_ffff } else { u32::MAX };
        let flip = if source.negate { 0x8000_0000 } else { 0 };
        row.map(|bits| mode.single(f32::from_bits(bits & keep ^ flip)))
    }

    /// Writes words of the channels of the mask.
    #[inline(always)]
    fn put_words<const N: usize>(&mut self, it: &Instruction, mask: u32, row: &[u32; N]) {
        let Place::File(byte) = it.to.place else { return };
        let start = usize::from(byte);
        if it.to.stride == 1 {
            let Some(to) = self.file.get_mut(start..start + 4 * N) else { return };
            if mask == u32::MAX >> (32 - N) {
                for (to, value) in to.chunks_exact_mut(4).zip(row) {
                    to.copy_from_slice(&value.to_le_bytes());
                }
            } else {
                for k in 0..N {
                    let at = &mut to[4 * k..4 * k + 4];
                    let old = u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
                    let new = if mask >> k & 1 != 0 { row[k] } else { old };
                    at.copy_from_slice(&new.to_le_bytes());
                }
            }
            return;
        }
        for (k, value) in row.iter().enumerate().filter(|(k, _)| mask >> k & 1 != 0) {
            self.set_word(start + 4 * usize::from(it.to.stride) * k, *value);
        }
    }
}

/// The lower bits of a word as the 32 bits of a type of at most as many.
#[inline(always)]
fn narrow(kind: Type, value: u64) -> u32 {
    match kind {
        Type::UB => u32::from(value as u8),
        Type::B => i32::from(value as i8) as u32,
        Type::UW => u32::from(value as u16),
        Type::W => i32::from(value as i16) as u32,
        _ => value as u32,
    }
}

/// Bits of where a condition holds.
#[inline(always)]
fn compared<T: PartialOrd + Copy, const N: usize>(condition: u8, a: &[T; N], b: &[T; N]) -> u32 {
    macro_rules! all {
        ($operator:tt) => {{
            let mut bits = 0;
            for k in 0..N {
                bits |= u32::from(a[k] $operator b[k]) << k;
            }
            bits
        }};
    }
    match condition {
        1 => all!(==),
        2 => all!(!=),
        3 => all!(>),
        4 => all!(>=),
        5 => all!(<),
        _ => all!(<=),
    }
}

#[inline(always)]
fn chosen<T: Copy, const N: usize>(bits: u32, a: &[T; N], b: &[T; N]) -> [T; N] {
    std::array::from_fn(|k| if bits >> k & 1 != 0 { a[k] } else { b[k] })
}

/// Writes what a comparison found.
#[inline(always)]
fn put_flags<const N: usize>(thread: &mut Thread, it: &Instruction, mask: u32, flags: u32) {
    thread.set_flags(it, mask, flags);
    if it.to.place != Place::Null {
        let row: [u32; N] = std::array::from_fn(|k| 0u32.wrapping_sub(flags >> k & 1));
        thread.put_words(it, mask, &row);
    }
}

/// Carries out an instruction of [`Plan::Words`].
#[inline(never)]
pub fn words<const N: usize>(thread: &mut Thread, it: &Instruction, mask: u32, predicate: u32) {
    use Operation::*;
    let [first, second, third] = &it.source;
    let logical = matches!(it.operation, And | Or | Xor | Not);
    let a: [u32; N] = thread.modified(first, logical);
    let b = |thread: &Thread| -> [u32; N] { thread.modified(second, logical) };
    macro_rules! each {
        (|$k:ident, $b:ident| $value:expr) => {{
            let $b = b(thread);
            std::array::from_fn(|$k| $value)
        }};
    }
    let row: [u32; N] = match it.operation {
        Mov => a,
        Not => a.map(|value| !value),
        And => each!(|k, b| a[k] & b[k]),
        Or => each!(|k, b| a[k] | b[k]),
        Xor => each!(|k, b| a[k] ^ b[k]),
        Add => each!(|k, b| a[k].wrapping_add(b[k])),
        Mul => each!(|k, b| a[k].wrapping_mul(b[k])),
        Shl => each!(|k, b| a[k] << (b[k] & 31)),
        Shr => each!(|k, b| a[k] >> (b[k] & 31)),
        Asr => each!(|k, b| (a[k] as i32 >> (b[k] & 31)) as u32),
        Mad => {
            let c: [u32; N] = thread.modified(third, false);
            each!(|k, b| a[k].wrapping_add(b[k].wrapping_mul(c[k])))
        }
        Bfi2 => {
            let c: [u32; N] = thread.modified(third, false);
            each!(|k, b| a[k] & b[k] | !a[k] & c[k])
        }
        _ => {
            let b = b(thread);
            let flags = if it.condition == 0 {
                predicate
            } else if first.kind.is_signed() {
                compared(it.condition, &a.map(|value| value as i32), &b.map(|value| value as i32))
            } else {
                compared(it.condition, &a, &b)
            };
            if it.operation == Cmp {
                return put_flags::<N>(thread, it, mask, flags);
            }
            chosen(flags, &a, &b)
        }
    };
    if it.condition != 0 && it.operation != Sel {
        let flags = if it.to.kind.is_signed() {
            compared(it.condition, &row.map(|value| value as i32), &[0; N])
        } else {
            compared(it.condition, &row, &[0; N])
        };
        thread.set_flags(it, mask, flags);
    }
    thread.put_words(it, mask, &row);
}

/// Carries out an instruction of [`Plan::Singles`].
#[inline(never)]
pub fn singles<const N: usize>(thread: &mut Thread, it: &Instruction, mask: u32, predicate: u32) {
    use Operation::*;
    let mode = thread.mode().of(it);
    let [first, second, third] = &it.source;
    let a: [f32; N] = thread.singles(first, mode);
    if it.operation == Mov {
        return put_singles(thread, it, mask, a, mode);
    }
    let b: [f32; N] = thread.singles(second, mode);
    let row: [f32; N] = match it.operation {
        Add => std::array::from_fn(|k| a[k] + b[k]),
        Mul => std::array::from_fn(|k| a[k] * b[k]),
        Mad => {
            let c: [f32; N] = thread.singles(third, mode);
            std::array::from_fn(|k| b[k].mul_add(c[k], a[k]))
        }
        Cmp => {
            let flags = compared(it.condition, &a, &b);
            return put_flags::<N>(thread, it, mask, flags);
        }
        _ if it.condition == 0 => chosen(predicate, &a, &b),
        _ => {
            // A number is chosen before what is none.
            let flags = compared(it.condition, &a, &b);
            std::array::from_fn(|k| {
                let first = flags >> k & 1 != 0 || b[k].is_nan();
                if first && !a[k].is_nan() { a[k] } else { b[k] }
            })
        }
    };
    put_singles(thread, it, mask, row, mode);
}

#[inline(always)]
fn put_singles<const N: usize>(thread: &mut Thread, it: &Instruction, mask: u32, row: [f32; N], mode: Mode) {
    let row = if it.saturate { row.map(|value| if value > 0.0 { value.min(1.0) } else { 0.0 }) } else { row };
    let row = row.map(|value| mode.single(value));
    if it.condition != 0 && it.operation != Operation::Sel {
        let flags = compared(it.condition, &row, &[0.0; N]);
        thread.set_flags(it, mask, flags);
    }
    thread.put_words(it, mask, &row.map(f32::to_bits));
}
