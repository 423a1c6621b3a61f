//! Loads of scalar registers.

use super::wave::{NULL, Wave};
use super::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

/// The handler of a scalar load by its name.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "s_load_b32" => |w, i, g| load::<N, 1>(w, i, g),
        "s_load_b64" => |w, i, g| load::<N, 2>(w, i, g),
        "s_load_b96" => |w, i, g| load::<N, 3>(w, i, g),
        "s_load_b128" => |w, i, g| load::<N, 4>(w, i, g),
        "s_load_b256" => |w, i, g| load::<N, 8>(w, i, g),
        "s_load_b512" => |w, i, g| load::<N, 16>(w, i, g),
        "s_load_u8" => |w, i, g| load_part(w, i, g, 1, |[byte, _]| u32::from(byte)),
        "s_load_i8" => |w, i, g| load_part(w, i, g, 1, |[byte, _]| byte as i8 as u32),
        "s_load_u16" => |w, i, g| load_part(w, i, g, 2, |bytes| u32::from(u16::from_le_bytes(bytes))),
        "s_load_i16" => |w, i, g| load_part(w, i, g, 2, |bytes| i16::from_le_bytes(bytes) as u32),
        "s_buffer_load_u8" => |w, i, g| buffer_load_part(w, i, g, 1, |[byte, _]| u32::from(byte)),
        "s_buffer_load_i8" => |w, i, g| buffer_load_part(w, i, g, 1, |[byte, _]| byte as i8 as u32),
        "s_buffer_load_u16" => |w, i, g| buffer_load_part(w, i, g, 2, |bytes| u32::from(u16::from_le_bytes(bytes))),
        "s_buffer_load_i16" => |w, i, g| buffer_load_part(w, i, g, 2, |bytes| i16::from_le_bytes(bytes) as u32),
        "s_buffer_load_b32" => |w, i, g| buffer_load::<N, 1>(w, i, g),
        "s_buffer_load_b64" => |w, i, g| buffer_load::<N, 2>(w, i, g),
        "s_buffer_load_b96" => |w, i, g| buffer_load::<N, 3>(w, i, g),
        "s_buffer_load_b128" => |w, i, g| buffer_load::<N, 4>(w, i, g),
        "s_buffer_load_b256" => |w, i, g| buffer_load::<N, 8>(w, i, g),
        "s_buffer_load_b512" => |w, i, g| buffer_load::<N, 16>(w, i, g),
        _ => return None,
    })
}

fn offset<const N: usize>(wave: &Wave<N>, it: &Instruction) -> u64 {
    u64::from(wave.s32(it.source[1])).wrapping_add(i64::from(it.offset) as u64)
}

fn read(group: &Group, address: u64, to: &mut [u8]) -> Outcome {
    let bytes = to.len() as u32;
    let outside = || {
        let mut trap = Trap::new(FaultKind::OutOfBounds { bytes, write: false });
        trap.address = Some(address);
        trap
    };
    if !group.memory.is_mapped(address, to.len() as u64) {
        return Err(outside());
    }
    if group.options.strict
        && let Err(conflict) = group.memory.note_read(group.dispatch.number, address, to.len() as u64)
    {
        let mut trap =
            Trap::new(FaultKind::LaunchRace { earlier: conflict.other, wrote: conflict.wrote, write: false });
        trap.address = Some(conflict.address);
        return Err(trap);
    }
    if group.memory.read(address, to) { Ok(()) } else { Err(outside()) }
}

fn put<const N: usize>(wave: &mut Wave<N>, to: Operand, word: usize, value: u32) {
    if let Operand::Scalar(register) = to
        && register != NULL
    {
        wave.scalars[(register as usize + word) & 127] = value;
    }
}

fn load<const N: usize, const WORDS: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group) -> Outcome {
    // Addresses of scalar loads are of words.
    let address = (wave.s64(it.source[0]) & !3).wrapping_add(offset(wave, it)) & !3;
    let mut bytes = [[0; 4]; WORDS];
    read(group, address, bytes.as_flattened_mut())?;
    for (word, value) in bytes.into_iter().enumerate() {
        put(wave, it.to, word, u32::from_le_bytes(value));
    }
    Ok(())
}

fn load_part<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    size: usize,
    f: impl Fn([u8; 2]) -> u32,
) -> Outcome {
    let mut bytes = [0; 2];
    read(group, wave.s64(it.source[0]).wrapping_add(offset(wave, it)), &mut bytes[..size])?;
    put(wave, it.to, 0, f(bytes));
    Ok(())
}

/// The address and the bytes of the buffer that a descriptor is of.
fn buffer<const N: usize>(wave: &Wave<N>, it: &Instruction) -> Option<(u64, u64)> {
    let Operand::Scalar(resource) = it.source[0] else { return None };
    let word = |k: usize| wave.scalars[(resource as usize + k) & 127];
    let base = u64::from(word(0)) | u64::from(word(1) & 0xffff) << 32;
    let stride = u64::from(word(1) >> 16 & 0x3fff);
    Some((base, u64::from(word(2)) * stride.max(1)))
}

/// A load of a part of a word through a descriptor; zero beyond its size.
fn buffer_load_part<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    bytes: usize,
    f: impl Fn([u8; 2]) -> u32,
) -> Outcome {
    let Some((base, size)) = buffer(wave, it) else { return Ok(()) };
    let (at, mut value) = (offset(wave, it), [0; 2]);
    if at.saturating_add(bytes as u64) <= size {
        read(group, base.wrapping_add(at), &mut value[..bytes])?;
    }
    put(wave, it.to, 0, f(value));
    Ok(())
}

/// A load through a descriptor: words beyond its size read as zero.
fn buffer_load<const N: usize, const WORDS: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group) -> Outcome {
    let Some((base, size)) = buffer(wave, it) else { return Ok(()) };
    let start = offset(wave, it) & !3;
    for word in 0..WORDS {
        let at = start.wrapping_add(4 * word as u64);
        let mut bytes = [0; 4];
        if at.saturating_add(4) <= size {
            read(group, (base & !3).wrapping_add(at), &mut bytes)?;
        }
        put(wave, it.to, word, u32::from_le_bytes(bytes));
    }
    Ok(())
}
