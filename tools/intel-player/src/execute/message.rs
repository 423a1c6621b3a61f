//! Messages: loads, stores, atomics and blocks of memory, barriers, the end of a thread.

use std::sync::atomic::Ordering::Relaxed;

use super::surface::Surface;
use super::thread::Thread;
use super::{Group, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::file;
use crate::isa::instruction::{Extended, Instruction};

/// Shared functions.
mod function {
    pub const SAMPLER: u8 = 2;
    pub const GATEWAY: u8 = 3;
    pub const SPAWNER: u8 = 7;
    pub const CONSTANT: u8 = 9;
    pub const DATA_0: u8 = 10;
    pub const DATA_1: u8 = 12;
    pub const SHARED: u8 = 14;
    pub const GLOBAL: u8 = 15;
}

/// Entries of binding tables that are none.
const SHARED: u32 = 254;
const STATELESS: [u32; 2] = [253, 255];

/// Where a thread's registers say that the scratch of the first thread of its workgroup is. No
/// memory is there: each workgroup has its own.
pub const SCRATCH_START: u32 = 1 << 24;

/// The surface that a thread's registers name as that of scratch, where they do (Gen12.5). No state
/// of a surface is there: it says which thread it is.
#[must_use]
pub fn scratch_surface(thread: u32) -> u32 {
    (thread + 1) << 10
}

/// The scratch of the thread whose surface a message names: the upper bits of the register, moved
/// down by four.
pub(super) fn scratch_of(sent: &Sent, group: &Group) -> Outcome<Space> {
    let thread = (sent.extended >> 6).checked_sub(1).ok_or_else(|| sent.missing())?;
    Ok(Space::Scratch(thread as usize * group.dispatch.scratch()))
}

/// What an access of a surface is of.
#[derive(Clone, Copy)]
pub(super) enum Space {
    /// Memory from an address on, of so many bytes if it is bounded: beyond them nothing is written
    /// and zero is read.
    Global(u64, Option<u64>),
    /// Shared memory.
    Shared,
    /// Scratch of the workgroup, from a byte on.
    Scratch(usize),
}

/// A message with its descriptor.
pub(super) struct Sent<'a> {
    pub(super) it: &'a Instruction,
    descriptor: u32,
    pub(super) extended: u32,
    /// Channels that it is for, from its first on.
    pub(super) mask: u32,
}

impl Sent<'_> {
    pub(super) fn bits(&self, last: u32, first: u32) -> u32 {
        self.descriptor >> first & (u32::MAX >> (31 - (last - first)))
    }

    /// Registers of the first part.
    fn length(&self) -> usize {
        self.bits(28, 25) as usize
    }

    fn has_header(&self) -> bool {
        self.bits(19, 19) != 0
    }

    /// The byte of the file where a register of what is sent starts.
    pub(super) fn register(&self, number: usize) -> usize {
        let [first, second] = self.it.message.registers;
        let length = self.length();
        let (start, number) = if number < length { (first, number) } else { (second, number - length) };
        (usize::from(start.unwrap_or(0)) + number) * file::REGISTER
    }

    /// Where the answer starts.
    pub(super) fn answer(&self) -> usize {
        usize::from(self.it.message.answer.unwrap_or(0)) * file::REGISTER
    }

    /// Channels of the mask below a number.
    pub(super) fn channels(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let mask = self.mask;
        (0..count).filter(move |k| mask >> k & 1 != 0)
    }

    pub(super) fn missing(&self) -> Box<Trap> {
        Trap::missing(format!("message {:#010x} to function {}", self.descriptor, self.it.message.function))
    }
}

/// Carries a message out.
///
/// # Errors
///
/// What is missing here, and accesses outside all buffers.
pub fn send(it: &Instruction, thread: &mut Thread, group: &mut Group, mask: u32) -> Outcome {
    let message = &it.message;
    let descriptor = message.descriptor.unwrap_or_else(|| thread.word(file::ADDRESS));
    let extended = match message.extended {
        Extended::Value(value) => value,
        Extended::Address(element) => thread.word(file::ADDRESS + 4 * usize::from(element)),
    };
    let sent = Sent { it, descriptor, extended, mask };
    match message.function {
        function::SPAWNER => {}
        function::GATEWAY if message.end => {}
        // Not sent: its predicate does not hold.
        _ if mask == 0 => return Ok(()),
        function::GATEWAY => {
            if sent.bits(2, 0) != 4 {
                return Err(sent.missing());
            }
            thread.has_signalled = true;
        }
        function::DATA_0 | function::CONSTANT => data_0(&sent, thread, group)?,
        function::DATA_1 => data_1(&sent, thread, group)?,
        function::SHARED | function::GLOBAL => super::load_store::send(&sent, thread, group)?,
        function::SAMPLER => sampler(&sent, thread, group)?,
        _ => return Err(sent.missing()),
    }
    if message.end {
        thread.done = true;
    }
    Ok(())
}

/// What the entry of a binding table says.
fn space(sent: &Sent, thread: &Thread, group: &Group) -> Outcome<Space> {
    match sent.bits(7, 0) {
        SHARED => Ok(Space::Shared),
        // The header says where the thread's scratch is.
        entry if STATELESS.contains(&entry) && sent.has_header() => {
            let start = thread.word(sent.register(0) + 20) & !0x3ff;
            Ok(if start == 0 {
                Space::Global(group.dispatch.state.general, None)
            } else {
                Space::Scratch(start.checked_sub(SCRATCH_START).ok_or_else(|| sent.missing())? as usize)
            })
        }
        entry if STATELESS.contains(&entry) => Ok(Space::Global(group.dispatch.state.general, None)),
        // The surface's state is in the extended descriptor, from the bindless ones on.
        252 => {
            let at = group.dispatch.state.bindless + u64::from(sent.extended & !63);
            buffer(Surface::read(group.memory, at)?)
        }
        entry @ 0..240 => buffer(Surface::of_table(group, entry)?),
        _ => Err(sent.missing()),
    }
}

pub(super) fn buffer(surface: Surface) -> Outcome<Space> {
    if surface.kind != 4 {
        return Err(Trap::missing(format!("a surface of kind {} as a buffer", surface.kind)));
    }
    Ok(Space::Global(surface.base, Some(surface.size[0].into())))
}

pub(super) fn outside(address: u64, bytes: usize, channel: usize, write: bool) -> Box<Trap> {
    Trap::at(FaultKind::OutOfBounds { bytes: bytes as u32, write }, channel, address)
}

/// The bytes of scratch, which each workgroup has of its own.
fn scratch_at(group: &Group, start: usize, offset: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
    let first = start.checked_add(usize::try_from(offset).ok()?)?;
    (first + bytes <= group.scratch.len()).then_some(first..first + bytes)
}

fn shared_outside(group: &Group, offset: usize, channel: usize) -> Box<Trap> {
    let size = group.shared.len() as u32;
    Trap::at(FaultKind::SharedOutOfBounds { offset: offset as u32, size }, channel, offset as u64)
}

/// Reads up to eight bytes.
#[inline(always)]
pub(super) fn load(group: &Group, space: Space, offset: u64, bytes: usize, channel: usize) -> Outcome<u64> {
    let mut value = [0; 8];
    match space {
        Space::Shared => {
            let at = offset as usize;
            let from = group.shared.get(at..at + bytes).ok_or_else(|| shared_outside(group, at, channel))?;
            value[..bytes].copy_from_slice(from);
        }
        Space::Scratch(start) => {
            let range = scratch_at(group, start, offset, bytes);
            let range = range.ok_or_else(|| outside(offset, bytes, channel, false))?;
            value[..bytes].copy_from_slice(&group.scratch[range]);
        }
        Space::Global(_, Some(limit)) if offset + bytes as u64 > limit => {}
        Space::Global(base, _) => {
            let address = base.wrapping_add(offset);
            if bytes == 4 && address.is_multiple_of(4) {
                let word = group.memory.u32(address).ok_or_else(|| outside(address, bytes, channel, false))?;
                return Ok(word.load(Relaxed).into());
            }
            if !group.memory.read(address, &mut value[..bytes]) {
                return Err(outside(address, bytes, channel, false));
            }
        }
    }
    Ok(u64::from_le_bytes(value))
}

/// Writes up to eight bytes.
#[inline(always)]
pub(super) fn store(group: &mut Group, space: Space, offset: u64, bytes: usize, value: u64, channel: usize) -> Outcome {
    let value = value.to_le_bytes();
    match space {
        Space::Shared => {
            let at = offset as usize;
            if at + bytes > group.shared.len() {
                return Err(shared_outside(group, at, channel));
            }
            group.shared[at..at + bytes].copy_from_slice(&value[..bytes]);
        }
        Space::Scratch(start) => {
            let range = scratch_at(group, start, offset, bytes);
            let range = range.ok_or_else(|| outside(offset, bytes, channel, true))?;
            group.scratch[range].copy_from_slice(&value[..bytes]);
        }
        Space::Global(_, Some(limit)) if offset + bytes as u64 > limit => {}
        Space::Global(base, _) => {
            let address = base.wrapping_add(offset);
            if bytes == 4 && address.is_multiple_of(4) {
                let word = group.memory.u32(address).ok_or_else(|| outside(address, bytes, channel, true))?;
                word.store(u32::from_le_bytes([value[0], value[1], value[2], value[3]]), Relaxed);
            } else if !group.memory.write(address, &value[..bytes]) {
                return Err(outside(address, bytes, channel, true));
            }
        }
    }
    Ok(())
}

/// The address of a channel: 64 bits, eight channels in two registers.
#[inline(always)]
fn wide_address(sent: &Sent, thread: &Thread, first: usize, k: usize) -> u64 {
    let at = sent.register(first + k / 4) + k % 4 * 8;
    (u64::from(thread.word(at)) | u64::from(thread.word(at + 4)) << 32) & 0xffff_ffff_ffff
}

/// The offset of a channel: 32 bits, eight channels in a register.
#[inline(always)]
fn narrow_address(sent: &Sent, thread: &Thread, first: usize, k: usize) -> u64 {
    thread.word(sent.register(first + k / 8) + k % 8 * 4).into()
}

/// Where each channel's access is: all of them before anything is written, as what comes back may
/// lie where addresses did.
#[inline(always)]
fn addresses(sent: &Sent, thread: &Thread, first: usize, wide: bool, count: usize) -> [u64; 16] {
    let mut row = [0; 16];
    for k in sent.channels(count) {
        row[k] = if wide { wide_address(sent, thread, first, k) } else { narrow_address(sent, thread, first, k) };
    }
    row
}

/// Loads or stores up to four words of each channel, those that the message's mask leaves.
fn words(sent: &Sent, thread: &mut Thread, group: &mut Group, space: Space, wide: bool, write: bool) -> Outcome {
    let count = match sent.bits(13, 12) {
        1 => 16,
        2 => 8,
        _ => return Err(sent.missing()),
    };
    let out = sent.bits(11, 8);
    let left = (0..4u32).filter(move |component| out >> component & 1 == 0);
    let first = usize::from(sent.has_header());
    let data = first + if wide { count / 4 } else { count / 8 };
    let offsets = addresses(sent, thread, first, wide, count);
    for k in sent.channels(count) {
        let base = offsets[k];
        for (number, component) in left.clone().enumerate() {
            let offset = base + 4 * u64::from(component);
            let register = number * count / 8 + k / 8;
            if write {
                let at = sent.register(data + register) + k % 8 * 4;
                store(group, space, offset, 4, thread.word(at).into(), k)?;
            } else {
                let value = load(group, space, offset, 4, k)? as u32;
                thread.set_word(sent.answer() + register * file::REGISTER + k % 8 * 4, value);
            }
        }
    }
    Ok(())
}

/// Loads or stores one to four bytes of each channel, which a word of its own holds.
fn bytes(
    sent: &Sent,
    thread: &mut Thread,
    group: &mut Group,
    space: Space,
    (wide, count): (bool, usize),
    write: bool,
) -> Outcome {
    let size = match sent.bits(11, 10) {
        0 => 1,
        1 => 2,
        2 => 4,
        _ => return Err(sent.missing()),
    };
    let first = usize::from(sent.has_header());
    let data = first + if wide { count / 4 } else { count / 8 };
    let offsets = addresses(sent, thread, first, wide, count);
    for k in sent.channels(count) {
        let offset = offsets[k];
        if write {
            let at = sent.register(data + k / 8) + k % 8 * 4;
            store(group, space, offset, size, thread.word(at).into(), k)?;
        } else {
            let value = load(group, space, offset, size, k)? as u32;
            thread.set_word(sent.answer() + k * 4, value);
        }
    }
    Ok(())
}

/// Loads or stores words that follow each other in memory and in registers.
fn block(sent: &Sent, thread: &mut Thread, group: &mut Group, space: Space, offset: u64, write: bool) -> Outcome {
    // Of four words, or their upper half of a register.
    let (count, skip) = match sent.bits(10, 8) {
        0 => (4, 0),
        1 => (4, 16),
        2 => (8, 0),
        3 => (16, 0),
        4 => (32, 0),
        _ => return Err(sent.missing()),
    };
    for k in 0..count {
        let at = skip + 4 * k;
        let offset = offset + 4 * k as u64;
        if write {
            let register = sent.register(1 + at / file::REGISTER) + at % file::REGISTER;
            store(group, space, offset, 4, thread.word(register).into(), 0)?;
        } else {
            let value = load(group, space, offset, 4, 0)? as u32;
            thread.set_word(sent.answer() + at, value);
        }
    }
    Ok(())
}

/// Messages of the first data port and of the constant cache.
fn data_0(sent: &Sent, thread: &mut Thread, group: &mut Group) -> Outcome {
    if sent.bits(18, 18) != 0 {
        return scratch(sent, thread, group);
    }
    let kind = sent.bits(17, 14);
    match kind {
        // A fence: everything is in order here.
        7 => Ok(()),
        0 | 1 | 8 => {
            let header = sent.register(0);
            // In units of 16 bytes, but not of what is unaligned.
            let offset = u64::from(thread.word(header + 8));
            let space = space(sent, thread, group)?;
            block(sent, thread, group, space, if kind == 1 { offset } else { offset * 16 }, kind == 8)
        }
        4 | 12 => {
            let space = space(sent, thread, group)?;
            let count = if sent.bits(8, 8) != 0 { 16 } else { 8 };
            bytes(sent, thread, group, space, (false, count), kind == 12)
        }
        // A word of each channel, at an offset in words.
        3 | 11 => {
            let space = space(sent, thread, group)?;
            let count = if sent.bits(8, 8) != 0 { 16 } else { 8 };
            let first = usize::from(sent.has_header());
            let offsets = addresses(sent, thread, first, false, count);
            for k in sent.channels(count) {
                let offset = offsets[k] * 4;
                if kind == 11 {
                    let at = sent.register(first + count / 8 + k / 8) + k % 8 * 4;
                    store(group, space, offset, 4, thread.word(at).into(), k)?;
                } else {
                    let value = load(group, space, offset, 4, k)? as u32;
                    thread.set_word(sent.answer() + k * 4, value);
                }
            }
            Ok(())
        }
        _ => Err(sent.missing()),
    }
}

/// Scratch of a thread, whole registers.
fn scratch(sent: &Sent, thread: &mut Thread, group: &mut Group) -> Outcome {
    if sent.bits(16, 16) != 0 {
        return Err(sent.missing());
    }
    let count = 8 << sent.bits(13, 12);
    let base = thread.word(sent.register(0) + 20) & !0x3ff;
    let start = 32 * u64::from(sent.bits(11, 0));
    let space = Space::Scratch(base.checked_sub(SCRATCH_START).ok_or_else(|| sent.missing())? as usize);
    for k in 0..count {
        // All channels of a register's word, of which those that are off keep what they had.
        if sent.mask >> (k % 8) & 1 == 0 && !sent.it.all {
            continue;
        }
        let offset = start + 4 * k as u64;
        if sent.bits(17, 17) != 0 {
            let register = sent.register(1 + k / 8) + k % 8 * 4;
            store(group, space, offset, 4, thread.word(register).into(), k)?;
        } else {
            let value = load(group, space, offset, 4, k)? as u32;
            thread.set_word(sent.answer() + 4 * k, value);
        }
    }
    Ok(())
}

/// Messages of the second data port.
fn data_1(sent: &Sent, thread: &mut Thread, group: &mut Group) -> Outcome {
    let everything = Space::Global(0, None);
    match sent.bits(18, 14) {
        0x01 | 0x09 => {
            let space = space(sent, thread, group)?;
            words(sent, thread, group, space, false, sent.bits(17, 17) != 0)
        }
        0x11 => words(sent, thread, group, everything, true, false),
        0x19 => words(sent, thread, group, everything, true, true),
        kind @ (0x10 | 0x1a) if sent.bits(9, 8) == 0 => {
            let count = if sent.bits(12, 12) != 0 { 16 } else { 8 };
            bytes(sent, thread, group, everything, (true, count), kind == 0x1a)
        }
        kind @ (0x14 | 0x15) => {
            let header = sent.register(0);
            let address = u64::from(thread.word(header)) | u64::from(thread.word(header + 4)) << 32;
            block(sent, thread, group, everything, address & 0xffff_ffff_ffff, kind == 0x15)
        }
        kind @ (0x02 | 0x1b) => {
            let space = space(sent, thread, group)?;
            let count = if sent.bits(12, 12) != 0 { 8 } else { 16 };
            atomics(sent, thread, group, space, (false, count), kind == 0x1b)
        }
        kind @ (0x12 | 0x1d) => {
            if sent.bits(12, 12) != 0 {
                return Err(Trap::missing("atomics of 64 bits"));
            }
            atomics(sent, thread, group, everything, (true, 8), kind == 0x1d)
        }
        0x0d => store_texels(sent, thread, group),
        _ => Err(sent.missing()),
    }
}

/// The new value of an atomic operation of integers; none if it is missing here.
pub(super) fn atomic(operation: u32, old: u32, a: u32, b: u32) -> Option<u32> {
    Some(match operation {
        1 => old & a,
        2 => old | a,
        3 => old ^ a,
        4 => a,
        5 => old.wrapping_add(1),
        6 | 15 => old.wrapping_sub(1),
        7 => old.wrapping_add(a),
        8 => old.wrapping_sub(a),
        9 => a.wrapping_sub(old),
        10 => (old as i32).max(a as i32) as u32,
        11 => (old as i32).min(a as i32) as u32,
        12 => old.max(a),
        13 => old.min(a),
        14 => {
            if old == a {
                b
            } else {
                old
            }
        }
        _ => return None,
    })
}

/// The same of f32.
pub(super) fn atomic_float(operation: u32, old: u32, a: u32, b: u32) -> Option<u32> {
    let (was, value) = (f32::from_bits(old), f32::from_bits(a));
    Some(match operation {
        1 => was.max(value).to_bits(),
        2 => was.min(value).to_bits(),
        3 => {
            if was == value {
                b
            } else {
                old
            }
        }
        4 => (was + value).to_bits(),
        _ => return None,
    })
}

/// Replaces a word by the new value of it, and returns what it was.
pub(super) fn update(
    group: &mut Group,
    space: Space,
    offset: u64,
    channel: usize,
    new: impl Fn(u32) -> Option<u32>,
) -> Outcome<u32> {
    match space {
        Space::Shared | Space::Scratch(_) => {
            let old = load(group, space, offset, 4, channel)? as u32;
            store(group, space, offset, 4, new(old).unwrap_or(old).into(), channel)?;
            Ok(old)
        }
        Space::Global(_, Some(limit)) if offset + 4 > limit => Ok(0),
        Space::Global(base, _) => {
            let address = base.wrapping_add(offset);
            let word = group.memory.u32(address).ok_or_else(|| outside(address, 4, channel, true))?;
            Ok(word.fetch_update(Relaxed, Relaxed, new).unwrap_or_else(|old| old))
        }
    }
}

/// Atomics of a word of each channel.
fn atomics(
    sent: &Sent,
    thread: &mut Thread,
    group: &mut Group,
    space: Space,
    (wide, count): (bool, usize),
    float: bool,
) -> Outcome {
    let operation = if float { sent.bits(10, 8) } else { sent.bits(11, 8) };
    let answers = sent.bits(13, 13) != 0;
    let first = usize::from(sent.has_header());
    let data = first + if wide { count / 4 } else { count / 8 };
    let offsets = addresses(sent, thread, first, wide, count);
    let mut operands = [[0; 16]; 2];
    for (number, row) in operands.iter_mut().enumerate() {
        for k in sent.channels(count) {
            row[k] = thread.word(sent.register(data + number * count / 8 + k / 8) + k % 8 * 4);
        }
    }
    for k in sent.channels(count) {
        let (offset, a, b) = (offsets[k], operands[0][k], operands[1][k]);
        let new = |old: u32| if float { atomic_float(operation, old, a, b) } else { atomic(operation, old, a, b) };
        if new(0).is_none() {
            return Err(sent.missing());
        }
        let old = update(group, space, offset, k, new)?;
        if answers {
            // What was there; of a decrement before, what is there now.
            let answer = if !float && operation == 15 { old.wrapping_sub(1) } else { old };
            thread.set_word(sent.answer() + 4 * k, answer);
        }
    }
    Ok(())
}

/// Reads texels by their numbers.
fn sampler(sent: &Sent, thread: &mut Thread, group: &mut Group) -> Outcome {
    // `ld_lz`: without a level.
    let count = match (sent.bits(16, 12), sent.bits(18, 17)) {
        (26, 1) => 8,
        (26, 2) => 16,
        _ => return Err(sent.missing()),
    };
    // Halves instead of words, and surfaces of shaders' own.
    if sent.bits(30, 30) != 0 || sent.bits(7, 0) >= 240 {
        return Err(sent.missing());
    }
    let surface = Surface::of_table(group, sent.bits(7, 0))?;
    let (bytes, components) = surface.texel()?;
    let first = usize::from(sent.has_header());
    let (x, y) =
        (addresses(sent, thread, first, false, count), addresses(sent, thread, first + count / 8, false, count));
    for k in sent.channels(count) {
        let texel = surface.address(x[k] as u32, y[k] as u32, bytes * components);
        for component in 0..4 {
            let value = match texel {
                Some(at) if component < components => {
                    let from = Space::Global(at, None);
                    load(group, from, u64::from(component * bytes), bytes as usize, k)? as u32
                }
                // What a format lacks is 0, and 1 of the last.
                Some(_) if component == 3 => 1,
                _ => 0,
            };
            let register = component as usize * count / 8 + k / 8;
            thread.set_word(sent.answer() + register * file::REGISTER + k % 8 * 4, value);
        }
    }
    Ok(())
}

/// Writes texels by their numbers, of surfaces with two axes.
fn store_texels(sent: &Sent, thread: &mut Thread, group: &mut Group) -> Outcome {
    if sent.bits(7, 0) >= 240 || sent.bits(11, 8) != 0 {
        return Err(sent.missing());
    }
    let surface = Surface::of_table(group, sent.bits(7, 0))?;
    let (bytes, components) = surface.texel()?;
    let first = usize::from(sent.has_header());
    for k in sent.channels(8) {
        let word = |register: usize| thread.word(sent.register(first + register) + k * 4);
        let Some(at) = surface.address(word(0), word(1), bytes * components) else { continue };
        // The data follows what of the address was sent.
        let data = sent.length() - first;
        for component in 0..components {
            let value = word(data + component as usize).into();
            store(group, Space::Global(at, None), u64::from(component * bytes), bytes as usize, value, k)?;
        }
    }
    Ok(())
}
