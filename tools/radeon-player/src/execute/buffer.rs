//! Accesses of memory through a descriptor of a buffer, which says where it lies and how far it
//! reaches: what is read beyond it is zero, what is written there goes nowhere.

use std::sync::atomic::Ordering::Relaxed;

use super::float::{add_brains, add_halves};
use super::memory::{Access, Place, exchange_if_equal, exchange_wide_if_equal, float, lanes, reach, wide_float};
use super::vector::{double, single};
use super::wave::{Row, Wave};
use super::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

/// The handler of an access of a buffer by its name.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    let operation = name.strip_prefix("buffer_")?;
    load_handler(operation).or_else(|| store_handler(operation)).or_else(|| atomic_handler(operation))
}

fn load_handler<const N: usize>(operation: &str) -> Option<Handler<N>> {
    Some(match operation {
        "load_b32" => |w, i, g| load_words(w, i, g, 1),
        "load_b64" => |w, i, g| load_words(w, i, g, 2),
        "load_b96" => |w, i, g| load_words(w, i, g, 3),
        "load_b128" => |w, i, g| load_words(w, i, g, 4),
        "load_u8" => |w, i, g| load(w, i, g, 1, |value, _| value),
        "load_i8" => |w, i, g| load(w, i, g, 1, |value, _| value as i8 as u32),
        "load_u16" => |w, i, g| load(w, i, g, 2, |value, _| value),
        "load_i16" => |w, i, g| load(w, i, g, 2, |value, _| value as i16 as u32),
        "load_d16_u8" | "load_d16_b16" => |w, i, g| load(w, i, g, part_bytes(i), into_low),
        "load_d16_i8" => |w, i, g| load(w, i, g, 1, |value, old| into_low(value as i8 as u16 as u32, old)),
        "load_d16_hi_u8" | "load_d16_hi_b16" => |w, i, g| load(w, i, g, part_bytes(i), into_high),
        "load_d16_hi_i8" => |w, i, g| load(w, i, g, 1, |value, old| into_high(value as i8 as u16 as u32, old)),
        _ => return None,
    })
}

fn store_handler<const N: usize>(operation: &str) -> Option<Handler<N>> {
    Some(match operation {
        "store_b32" => |w, i, g| store_words(w, i, g, 1),
        "store_b64" => |w, i, g| store_words(w, i, g, 2),
        "store_b96" => |w, i, g| store_words(w, i, g, 3),
        "store_b128" => |w, i, g| store_words(w, i, g, 4),
        "store_b8" => |w, i, g| store(w, i, g, 1, |word| word),
        "store_b16" => |w, i, g| store(w, i, g, 2, |word| word),
        "store_d16_hi_b8" => |w, i, g| store(w, i, g, 1, |word| word >> 16),
        "store_d16_hi_b16" => |w, i, g| store(w, i, g, 2, |word| word >> 16),
        _ => return None,
    })
}

fn atomic_handler<const N: usize>(operation: &str) -> Option<Handler<N>> {
    Some(match operation.strip_prefix("atomic_")? {
        "swap_b32" => |w, i, g| atomic32(w, i, g, |_, new, _| new),
        "cmpswap_b32" => |w, i, g| atomic32(w, i, g, |old, new, is| if old == is { new } else { old }),
        "cmpswap_f32" => |w, i, g| atomic32(w, i, g, exchange_if_equal),
        "add_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.wrapping_add(by)),
        "sub_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.wrapping_sub(by)),
        "csub_u32" | "sub_clamp_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.saturating_sub(by)),
        "cond_sub_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.checked_sub(by).unwrap_or(old)),
        "min_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.min(by)),
        "max_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.max(by)),
        "min_i32" => |w, i, g| atomic32(w, i, g, |old, by, _| (old as i32).min(by as i32) as u32),
        "max_i32" => |w, i, g| atomic32(w, i, g, |old, by, _| (old as i32).max(by as i32) as u32),
        "and_b32" => |w, i, g| atomic32(w, i, g, |old, by, _| old & by),
        "or_b32" => |w, i, g| atomic32(w, i, g, |old, by, _| old | by),
        "xor_b32" => |w, i, g| atomic32(w, i, g, |old, by, _| old ^ by),
        "inc_u32" => |w, i, g| atomic32(w, i, g, |old, top, _| if old >= top { 0 } else { old + 1 }),
        "dec_u32" => |w, i, g| atomic32(w, i, g, |old, top, _| if old == 0 || old > top { top } else { old - 1 }),
        "add_f32" => |w, i, g| atomic32(w, i, g, |old, by, _| float(old, by, |a, b| a + b)),
        "min_f32" | "min_num_f32" => |w, i, g| atomic32(w, i, g, |old, by, _| float(old, by, single::min)),
        "max_f32" | "max_num_f32" => |w, i, g| atomic32(w, i, g, |old, by, _| float(old, by, single::max)),
        "pk_add_f16" => |w, i, g| atomic32(w, i, g, |old, by, _| add_halves(old, by)),
        "pk_add_bf16" => |w, i, g| atomic32(w, i, g, |old, by, _| add_brains(old, by)),
        "swap_b64" => |w, i, g| atomic64(w, i, g, |_, new, _| new),
        "cmpswap_b64" => |w, i, g| atomic64(w, i, g, |old, new, is| if old == is { new } else { old }),
        "cmpswap_f64" => |w, i, g| atomic64(w, i, g, exchange_wide_if_equal),
        "add_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.wrapping_add(by)),
        "sub_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.wrapping_sub(by)),
        "min_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.min(by)),
        "max_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.max(by)),
        "min_i64" => |w, i, g| atomic64(w, i, g, |old, by, _| (old as i64).min(by as i64) as u64),
        "max_i64" => |w, i, g| atomic64(w, i, g, |old, by, _| (old as i64).max(by as i64) as u64),
        "and_b64" => |w, i, g| atomic64(w, i, g, |old, by, _| old & by),
        "or_b64" => |w, i, g| atomic64(w, i, g, |old, by, _| old | by),
        "xor_b64" => |w, i, g| atomic64(w, i, g, |old, by, _| old ^ by),
        "inc_u64" => |w, i, g| atomic64(w, i, g, |old, top, _| if old >= top { 0 } else { old + 1 }),
        "dec_u64" => |w, i, g| atomic64(w, i, g, |old, top, _| if old == 0 || old > top { top } else { old - 1 }),
        "min_f64" => |w, i, g| atomic64(w, i, g, |old, by, _| wide_float(old, by, double::min)),
        "max_f64" => |w, i, g| atomic64(w, i, g, |old, by, _| wide_float(old, by, double::max)),
        _ => return None,
    })
}

fn into_low(value: u32, old: u32) -> u32 {
    old & 0xffff_0000 | value & 0xffff
}

fn into_high(value: u32, old: u32) -> u32 {
    old & 0xffff | value << 16
}

fn part_bytes(it: &Instruction) -> u64 {
    if it.name.contains("byte") || it.name.ends_with("u8") { 1 } else { 2 }
}

/// How accesses are kept within a buffer: two bits of the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// The number of the record, and the bytes within it.
    RecordAndOffset,
    /// The number of the record.
    Record,
    /// Only a buffer without records has none.
    NotEmpty,
    /// The bytes from the start on.
    Bytes,
}

/// What a descriptor says.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    base: u64,
    stride: u64,
    records: u64,
    bounds: Bounds,
}

impl Buffer {
    /// The descriptor in four scalar registers.
    fn of<const N: usize>(wave: &Wave<N>, it: &Instruction) -> Result<Self, Box<Trap>> {
        let Operand::Scalar(first) = it.source[2] else { return Err(Trap::new(FaultKind::Missing)) };
        let word = |k: usize| wave.scalars[(usize::from(first) + k) & 127];
        // Swizzling has one bit before RDNA3, and two since, of which the upper is the same.
        if word(1) >> 30 != 0 || word(3) >> 23 & 1 != 0 {
            return Err(Trap::new(FaultKind::Other("a buffer that is swizzled, or indexed by lanes".to_owned())));
        }
        let bounds = [Bounds::RecordAndOffset, Bounds::Record, Bounds::NotEmpty, Bounds::Bytes];
        Ok(Self {
            base: u64::from(word(0)) | u64::from(word(1) & 0xffff) << 32,
            stride: u64::from(word(1) >> 16 & 0x3fff),
            records: word(2).into(),
            bounds: bounds[(word(3) >> 28 & 3) as usize],
        })
    }

    /// Whether bytes are within it.
    fn has(&self, index: u64, offset: u64, bytes: u64) -> bool {
        match self.bounds {
            Bounds::RecordAndOffset => index < self.records && offset + bytes <= self.stride,
            Bounds::Record => index < self.records,
            Bounds::NotEmpty => self.records != 0,
            Bounds::Bytes => index * self.stride + offset + bytes <= self.records,
        }
    }
}

/// Addresses of lanes, and which of them are within the buffer.
struct Reached<const N: usize> {
    addresses: Row<N, u64>,
    within: u64,
}

/// Finds the bytes of active lanes, `more` bytes further on.
fn find<const N: usize>(wave: &Wave<N>, it: &Instruction, more: u64, bytes: u64) -> Result<Reached<N>, Box<Trap>> {
    let buffer = Buffer::of(wave, it)?;
    // The offset in a scalar register is not looked at for the bounds.
    let start = buffer.base.wrapping_add(u64::from(wave.s32(it.source[3])));
    let zero = [0; N];
    let (index, offset) = match (it.indexed, it.offset_in_register, it.source[0]) {
        (true, true, Operand::Vector(first)) => (wave.words(it.source[0]), wave.words(Operand::Vector(first + 1))),
        (true, false, index) => (wave.words(index), zero),
        (false, true, offset) => (zero, wave.words(offset)),
        _ => (zero, zero),
    };
    let (mut addresses, mut within) = ([0; N], 0);
    for lane in lanes(wave.exec()) {
        let index = u64::from(index[lane]);
        let offset = u64::from(offset[lane]) + it.offset as u64 + more;
        addresses[lane] = start.wrapping_add(index * buffer.stride).wrapping_add(offset);
        within |= u64::from(buffer.has(index, offset, bytes)) << lane;
    }
    Ok(Reached { addresses, within })
}

/// The places of lanes that are within the buffer.
fn places<const N: usize>(
    group: &mut Group,
    reached: &Reached<N>,
    bytes: u64,
    access: Access,
) -> Result<[Place; N], Box<Trap>> {
    if reached.within == 0 {
        return Ok([Place::NONE; N]);
    }
    reach(reached.within, &reached.addresses, group, bytes as u32, access)
}

fn load<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    bytes: u64,
    f: fn(u32, u32) -> u32,
) -> Outcome {
    let Operand::Vector(to) = it.to else { return Ok(()) };
    let reached = find(wave, it, 0, bytes)?;
    let places = places(group, &reached, bytes, Access::Read)?;
    for lane in lanes(wave.exec()) {
        let value = match bytes {
            _ if reached.within >> lane & 1 == 0 => 0,
            1 => places[lane].byte().into(),
            _ => places[lane].half().into(),
        };
        let old = &mut wave.vectors[usize::from(to)][lane];
        *old = f(value, *old);
    }
    Ok(())
}

/// Words are looked for one by one: some may be beyond the buffer.
fn load_words<const N: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group, words: u16) -> Outcome {
    let Operand::Vector(to) = it.to else { return Ok(()) };
    let mut rows = [[0; N]; 4];
    for (word, row) in (0..words).zip(&mut rows) {
        let reached = find(wave, it, 4 * u64::from(word), 4)?;
        let places = places(group, &reached, 4, Access::Read)?;
        for lane in lanes(reached.within) {
            row[lane] = places[lane].word();
        }
    }
    // The address may be in registers of the result.
    for (word, row) in (0..words).zip(&rows) {
        wave.put(Operand::Vector(to + word), row);
    }
    Ok(())
}

fn store<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    bytes: u64,
    f: fn(u32) -> u32,
) -> Outcome {
    let reached = find(wave, it, 0, bytes)?;
    let places = places(group, &reached, bytes, Access::Write)?;
    let data = wave.words(it.source[1]);
    for lane in lanes(reached.within) {
        match bytes {
            1 => places[lane].set_byte(f(data[lane]) as u8),
            _ => places[lane].set_half(f(data[lane]) as u16),
        }
    }
    Ok(())
}

fn store_words<const N: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group, words: u16) -> Outcome {
    let Operand::Vector(from) = it.source[1] else { return Ok(()) };
    for word in 0..words {
        let reached = find(wave, it, 4 * u64::from(word), 4)?;
        let places = places(group, &reached, 4, Access::Write)?;
        let data = wave.words(Operand::Vector(from + word));
        for lane in lanes(reached.within) {
            places[lane].set_word(data[lane]);
        }
    }
    Ok(())
}

fn misaligned(lane: usize, address: u64) -> Box<Trap> {
    Trap::at(FaultKind::Other("an atomic access that is not aligned".into()), lane, address)
}

/// An atomic: the new value from the old one, the data, and the data's second word. It returns what
/// was there in the register of the data.
fn atomic32<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: fn(u32, u32, u32) -> u32,
) -> Outcome {
    let Operand::Vector(data) = it.source[1] else { return Ok(()) };
    let reached = find(wave, it, 0, 4)?;
    let places = places(group, &reached, 4, Access::Write)?;
    // Only a comparison has a second word; others may end at the last register.
    let more = u16::from(it.name.contains("cmpswap"));
    let (first, second) = (wave.words(Operand::Vector(data)), wave.words(Operand::Vector(data + more)));
    for lane in lanes(wave.exec()) {
        let mut before = 0;
        if reached.within >> lane & 1 != 0 {
            let word = places[lane].atomic32().ok_or_else(|| misaligned(lane, reached.addresses[lane]))?;
            let changed = word.fetch_update(Relaxed, Relaxed, |old| Some(f(old, first[lane], second[lane])));
            before = changed.unwrap_or_else(|old| old);
        }
        if let Operand::Vector(to) = it.to {
            wave.vectors[usize::from(to)][lane] = before;
        }
    }
    Ok(())
}

/// ... of two words.
fn atomic64<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: fn(u64, u64, u64) -> u64,
) -> Outcome {
    let Operand::Vector(data) = it.source[1] else { return Ok(()) };
    let reached = find(wave, it, 0, 8)?;
    let places = places(group, &reached, 8, Access::Write)?;
    let more = 2 * u16::from(it.name.contains("cmpswap"));
    let (first, second) = (wave.doubles(Operand::Vector(data)), wave.doubles(Operand::Vector(data + more)));
    for lane in lanes(wave.exec()) {
        let mut before = 0;
        if reached.within >> lane & 1 != 0 {
            let word = places[lane].atomic64().ok_or_else(|| misaligned(lane, reached.addresses[lane]))?;
            let changed = word.fetch_update(Relaxed, Relaxed, |old| Some(f(old, first[lane], second[lane])));
            before = changed.unwrap_or_else(|old| old);
        }
        if let Operand::Vector(to) = it.to {
            wave.vectors[usize::from(to)][lane] = before as u32;
            wave.vectors[usize::from(to) + 1][lane] = (before >> 32) as u32;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_descriptor() {
        let buffer = |bounds| Buffer { base: 0, stride: 16, records: 3, bounds };
        let whole = buffer(Bounds::RecordAndOffset);
        assert!(whole.has(2, 12, 4) && !whole.has(2, 13, 4) && !whole.has(3, 0, 4));
        let record = buffer(Bounds::Record);
        assert!(record.has(2, 100, 4) && !record.has(3, 0, 4));
        assert!(buffer(Bounds::NotEmpty).has(9, 9, 9));
        let bytes = Buffer { stride: 0, records: 8, ..buffer(Bounds::Bytes) };
        assert!(bytes.has(7, 4, 4) && !bytes.has(0, 5, 4));
    }
}
