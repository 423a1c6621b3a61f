//! Messages to the load and store unit that Gen12.5 has: of global and of shared memory.

use super::message::{Sent, Space, atomic, atomic_float, buffer, load, scratch_of, store, update};
use super::surface::Surface;
use super::thread::Thread;
use super::{Group, Outcome};
use crate::isa::file;

/// Shared memory's function.
const SHARED: u8 = 14;

/// What a message is about.
fn space(sent: &Sent, group: &Group, wide: bool) -> Outcome<Space> {
    if sent.it.message.function == SHARED {
        return Ok(Space::Shared);
    }
    match sent.bits(30, 29) {
        // Flat: addresses of 64 bits are whole.
        0 if wide => Ok(Space::Global(0, None)),
        0 => Ok(Space::Global(group.dispatch.state.general, None)),
        1 => buffer(Surface::read(group.memory, group.dispatch.state.bindless + u64::from(sent.extended & !63))?),
        2 => scratch_of(sent, group),
        3 => buffer(Surface::of_table(group, sent.extended >> 24)?),
        _ => Err(sent.missing()),
    }
}

/// Carries a message out.
///
/// # Errors
///
/// What is missing here, and accesses outside all buffers.
pub(super) fn send(sent: &Sent, thread: &mut Thread, group: &mut Group) -> Outcome {
    let operation = sent.bits(5, 0);
    if operation == 31 {
        // A fence: everything is in order here.
        return Ok(());
    }
    let wide = match sent.bits(8, 7) {
        2 => false,
        3 => true,
        _ => return Err(sent.missing()),
    };
    let space = space(sent, group, wide)?;
    let channels = usize::from(sent.it.channels);
    // Registers of a row of so many bytes a channel.
    let rows = |bytes: usize| (channels * bytes).div_ceil(file::REGISTER);
    let (at, size) = if wide { (8, 8) } else { (4, 4) };
    let mut addresses = [0; 32];
    for k in sent.channels(channels) {
        let byte = sent.register(0) + at * k;
        let high = if size == 8 { u64::from(thread.word(byte + 4)) << 32 } else { 0 };
        addresses[k] = (u64::from(thread.word(byte)) | high) & 0xffff_ffff_ffff;
    }
    let data = rows(size);
    // Bytes in memory and in registers.
    let (bytes, wide_bytes) = match sent.bits(11, 9) {
        2 => (4, 4),
        3 => (8, 8),
        4 => (1, 4),
        5 => (2, 4),
        _ => return Err(sent.missing()),
    };
    match operation {
        0 | 4 => {
            let count = [1, 2, 3, 4, 8, 16, 32, 64][sent.bits(14, 12) as usize];
            if sent.bits(15, 15) != 0 {
                return transposed(sent, thread, group, space, addresses[0], (count, wide_bytes), data);
            }
            let components: Vec<u32> = (0..count).collect();
            vectors(sent, thread, group, space, &addresses, &components, (bytes, wide_bytes, data))
        }
        2 | 6 => {
            let components: Vec<u32> = (0..4).filter(|k| sent.bits(15, 12) >> k & 1 != 0).collect();
            vectors(sent, thread, group, space, &addresses, &components, (bytes, wide_bytes, data))
        }
        8..=26 if bytes == 4 => {
            let mut operands = [[0; 32]; 2];
            for (number, row) in operands.iter_mut().enumerate() {
                for k in sent.channels(channels) {
                    row[k] = thread.word(sent.register(data + number * rows(4)) + 4 * k);
                }
            }
            for k in sent.channels(channels) {
                let (a, b) = (operands[0][k], operands[1][k]);
                let new = |old: u32| match operation {
                    8 => atomic(5, old, a, b),
                    9 => atomic(6, old, a, b),
                    10 => Some(old),
                    11 => Some(a),
                    12 => atomic(7, old, a, b),
                    13 => atomic(8, old, a, b),
                    14 => atomic(11, old, a, b),
                    15 => atomic(10, old, a, b),
                    16 => atomic(13, old, a, b),
                    17 => atomic(12, old, a, b),
                    18 => atomic(14, old, a, b),
                    19 => atomic_float(4, old, a, b),
                    21 => atomic_float(2, old, a, b),
                    22 => atomic_float(1, old, a, b),
                    23 => atomic_float(3, old, a, b),
                    24 => atomic(1, old, a, b),
                    25 => atomic(2, old, a, b),
                    26 => atomic(3, old, a, b),
                    _ => None,
                };
                if new(0).is_none() {
                    return Err(sent.missing());
                }
                let old = update(group, space, addresses[k], k, new)?;
                if sent.bits(24, 20) != 0 {
                    thread.set_word(sent.answer() + 4 * k, old);
                }
            }
            Ok(())
        }
        _ => Err(sent.missing()),
    }
}

/// Loads or stores elements of each channel, a row of registers for each component.
fn vectors(
    sent: &Sent,
    thread: &mut Thread,
    group: &mut Group,
    space: Space,
    addresses: &[u64; 32],
    components: &[u32],
    (bytes, wide, data): (usize, usize, usize),
) -> Outcome {
    let channels = usize::from(sent.it.channels);
    let row = (channels * wide).div_ceil(file::REGISTER);
    let is_store = sent.bits(2, 2) != 0;
    for k in sent.channels(channels) {
        for (number, component) in components.iter().enumerate() {
            let offset = addresses[k].wrapping_add(u64::from(*component) * bytes as u64);
            if is_store {
                let at = sent.register(data + number * row) + wide * k;
                let high = if wide == 8 { u64::from(thread.word(at + 4)) << 32 } else { 0 };
                store(group, space, offset, bytes, u64::from(thread.word(at)) | high, k)?;
            } else {
                let value = load(group, space, offset, bytes, k)?;
                let at = sent.answer() + number * row * file::REGISTER + wide * k;
                thread.set_word(at, value as u32);
                if wide == 8 {
                    thread.set_word(at + 4, (value >> 32) as u32);
                }
            }
        }
    }
    Ok(())
}

/// Loads or stores elements that follow each other in memory and in registers.
fn transposed(
    sent: &Sent,
    thread: &mut Thread,
    group: &mut Group,
    space: Space,
    address: u64,
    (count, bytes): (u32, usize),
    data: usize,
) -> Outcome {
    let words = count as usize * bytes / 4;
    for k in 0..words {
        let offset = address + 4 * k as u64;
        if sent.bits(2, 2) != 0 {
            let at = sent.register(data) + 4 * k;
            store(group, space, offset, 4, thread.word(at).into(), 0)?;
        } else {
            let value = load(group, space, offset, 4, 0)? as u32;
            thread.set_word(sent.answer() + 4 * k, value);
        }
    }
    Ok(())
}
