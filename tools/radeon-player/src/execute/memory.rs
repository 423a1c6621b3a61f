//! Loads, stores and atomics of the GPU's memory and of scratch.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::float::{add_brains, add_halves};
use super::vector::{double, single};
use super::wave::{NULL, Row, Wave};
use super::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

/// The handler of a memory instruction by its name.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    let (space, operation) = name.split_once('_')?;
    match space {
        "global" if operation.contains("addtid") => by_lane(operation),
        "global" | "flat" => in_space::<N, Global>(operation),
        "scratch" => in_space::<N, Scratch>(operation),
        _ => None,
    }
}

/// Accesses of words that follow one another from lane to lane.
fn by_lane<const N: usize>(operation: &str) -> Option<Handler<N>> {
    Some(match operation {
        "load_addtid_b32" | "load_b32_addtid" => |w, i, g| load_words::<N, ByLane, 1>(w, i, g),
        "store_addtid_b32" | "store_b32_addtid" => |w, i, g| store_words::<N, ByLane, 1>(w, i, g),
        _ => return None,
    })
}

fn in_space<const N: usize, S: Space>(operation: &str) -> Option<Handler<N>> {
    Some(match operation {
        "load_b32" => |w, i, g| load_words::<N, S, 1>(w, i, g),
        "load_b64" => |w, i, g| load_words::<N, S, 2>(w, i, g),
        "load_b96" => |w, i, g| load_words::<N, S, 3>(w, i, g),
        "load_b128" => |w, i, g| load_words::<N, S, 4>(w, i, g),
        "load_u8" => |w, i, g| load::<N, S>(w, i, g, 1, |at, _| u32::from(at.byte())),
        "load_i8" => |w, i, g| load::<N, S>(w, i, g, 1, |at, _| at.byte() as i8 as u32),
        "load_u16" => |w, i, g| load::<N, S>(w, i, g, 2, |at, _| u32::from(at.half())),
        "load_i16" => |w, i, g| load::<N, S>(w, i, g, 2, |at, _| at.half() as i16 as u32),
        "load_d16_b16" => |w, i, g| load::<N, S>(w, i, g, 2, |at, old| low(old, at.half())),
        "load_d16_u8" => |w, i, g| load::<N, S>(w, i, g, 1, |at, old| low(old, at.byte().into())),
        "load_d16_i8" => |w, i, g| load::<N, S>(w, i, g, 1, |at, old| low(old, at.byte() as i8 as u16)),
        "load_d16_hi_b16" => |w, i, g| load::<N, S>(w, i, g, 2, |at, old| high(old, at.half())),
        "load_d16_hi_u8" => |w, i, g| load::<N, S>(w, i, g, 1, |at, old| high(old, at.byte().into())),
        "load_d16_hi_i8" => |w, i, g| load::<N, S>(w, i, g, 1, |at, old| high(old, at.byte() as i8 as u16)),
        "store_b32" => |w, i, g| store_words::<N, S, 1>(w, i, g),
        "store_b64" => |w, i, g| store_words::<N, S, 2>(w, i, g),
        "store_b96" => |w, i, g| store_words::<N, S, 3>(w, i, g),
        "store_b128" => |w, i, g| store_words::<N, S, 4>(w, i, g),
        "store_b8" => |w, i, g| store::<N, S>(w, i, g, 1, |at, word| at.set_byte(word as u8)),
        "store_b16" => |w, i, g| store::<N, S>(w, i, g, 2, |at, word| at.set_half(word as u16)),
        "store_d16_hi_b8" => |w, i, g| store::<N, S>(w, i, g, 1, |at, word| at.set_byte((word >> 16) as u8)),
        "store_d16_hi_b16" => |w, i, g| store::<N, S>(w, i, g, 2, |at, word| at.set_half((word >> 16) as u16)),
        "atomic_swap_b32" => |w, i, g| atomic32::<N, S>(w, i, g, |_, new, _| new),
        "atomic_cmpswap_b32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, new, is| if old == is { new } else { old }),
        "atomic_add_u32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old.wrapping_add(by)),
        "atomic_sub_u32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old.wrapping_sub(by)),
        "atomic_csub_u32" | "atomic_sub_clamp_u32" => {
            |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old.saturating_sub(by))
        }
        "atomic_min_u32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old.min(by)),
        "atomic_max_u32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old.max(by)),
        "atomic_min_i32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| (old as i32).min(by as i32) as u32),
        "atomic_max_i32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| (old as i32).max(by as i32) as u32),
        "atomic_and_b32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old & by),
        "atomic_or_b32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old | by),
        "atomic_xor_b32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old ^ by),
        "atomic_inc_u32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, top, _| if old >= top { 0 } else { old + 1 }),
        "atomic_dec_u32" => {
            |w, i, g| atomic32::<N, S>(w, i, g, |old, top, _| if old == 0 || old > top { top } else { old - 1 })
        }
        "atomic_add_f32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| float(old, by, |a, b| a + b)),
        "atomic_min_f32" | "atomic_min_num_f32" => {
            |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| float(old, by, single::min))
        }
        "atomic_max_f32" | "atomic_max_num_f32" => {
            |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| float(old, by, single::max))
        }
        "atomic_cmpswap_f32" => |w, i, g| atomic32::<N, S>(w, i, g, exchange_if_equal),
        "atomic_cond_sub_u32" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| old.checked_sub(by).unwrap_or(old)),
        "atomic_pk_add_f16" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| add_halves(old, by)),
        "atomic_pk_add_bf16" => |w, i, g| atomic32::<N, S>(w, i, g, |old, by, _| add_brains(old, by)),
        "atomic_inc_u64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, top, _| if old >= top { 0 } else { old + 1 }),
        "atomic_dec_u64" => {
            |w, i, g| atomic64::<N, S>(w, i, g, |old, top, _| if old == 0 || old > top { top } else { old - 1 })
        }
        "atomic_min_f64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| wide_float(old, by, double::min)),
        "atomic_max_f64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| wide_float(old, by, double::max)),
        "atomic_cmpswap_f64" => |w, i, g| atomic64::<N, S>(w, i, g, exchange_wide_if_equal),
        "atomic_swap_b64" => |w, i, g| atomic64::<N, S>(w, i, g, |_, new, _| new),
        "atomic_cmpswap_b64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, new, is| if old == is { new } else { old }),
        "atomic_add_u64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old.wrapping_add(by)),
        "atomic_sub_u64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old.wrapping_sub(by)),
        "atomic_min_u64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old.min(by)),
        "atomic_max_u64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old.max(by)),
        "atomic_min_i64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| (old as i64).min(by as i64) as u64),
        "atomic_max_i64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| (old as i64).max(by as i64) as u64),
        "atomic_and_b64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old & by),
        "atomic_or_b64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old | by),
        "atomic_xor_b64" => |w, i, g| atomic64::<N, S>(w, i, g, |old, by, _| old ^ by),
        _ => return None,
    })
}

fn low(old: u32, half: u16) -> u32 {
    old & 0xffff_0000 | u32::from(half)
}

fn high(old: u32, half: u16) -> u32 {
    old & 0xffff | u32::from(half) << 16
}

/// A function of two words as f32.
pub fn float(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    f(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

/// A function of two words as f64.
pub fn wide_float(a: u64, b: u64, f: impl Fn(f64, f64) -> f64) -> u64 {
    f(f64::from_bits(a), f64::from_bits(b)).to_bits()
}

/// The new value where the old one is equal as f32.
pub fn exchange_if_equal(old: u32, new: u32, is: u32) -> u32 {
    if f32::from_bits(old) == f32::from_bits(is) { new } else { old }
}

/// The new value where the old one is equal as f64.
pub fn exchange_wide_if_equal(old: u64, new: u64, is: u64) -> u64 {
    if f64::from_bits(old) == f64::from_bits(is) { new } else { old }
}

/// Lanes of a mask, from the first on.
#[inline(always)]
pub fn lanes(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}

/// Calls a function for each lane of a mask, until one fails. Of a wave that is full, which most
/// are, lanes need not be looked for.
#[inline(always)]
pub fn each_lane<const N: usize>(mask: u64, mut f: impl FnMut(usize) -> Outcome) -> Outcome {
    if mask == Wave::<N>::ALL { (0..N).try_for_each(f) } else { lanes(mask).try_for_each(&mut f) }
}

/// A place in memory that was found to be there. Only [`Space::reach`] and [`reach`] make them, and
/// only for bytes that are in a buffer or in the workgroup's scratch for as long as the instruction
/// runs. Those of lanes that take no part are never looked at.
#[derive(Clone, Copy)]
pub(super) struct Place(*mut u8);

// Aligned accesses are relaxed atomics, since workgroups of several threads share memory; others
// are left to the program's own order, as on a GPU.
impl Place {
    pub(super) const NONE: Self = Self(std::ptr::null_mut());

    #[inline(always)]
    fn after(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    #[inline(always)]
    pub(super) fn byte(self) -> u8 {
        // SAFETY: a place is memory that is there.
        unsafe { AtomicU8::from_ptr(self.0) }.load(Relaxed)
    }

    #[inline(always)]
    pub(super) fn set_byte(self, value: u8) {
        // SAFETY: a place is memory that is there.
        unsafe { AtomicU8::from_ptr(self.0) }.store(value, Relaxed);
    }

    #[inline(always)]
    pub(super) fn half(self) -> u16 {
        let at = self.0.cast::<u16>();
        // SAFETY: a place is memory that is there; the atomic is aligned.
        unsafe { if at.is_aligned() { AtomicU16::from_ptr(at).load(Relaxed) } else { at.read_unaligned() } }
    }

    #[inline(always)]
    pub(super) fn set_half(self, value: u16) {
        let at = self.0.cast::<u16>();
        // SAFETY: a place is memory that is there; the atomic is aligned.
        unsafe {
            if at.is_aligned() { AtomicU16::from_ptr(at).store(value, Relaxed) } else { at.write_unaligned(value) }
        }
    }

    #[inline(always)]
    pub(super) fn word(self) -> u32 {
        let at = self.0.cast::<u32>();
        // SAFETY: a place is memory that is there; the atomic is aligned.
        unsafe { if at.is_aligned() { AtomicU32::from_ptr(at).load(Relaxed) } else { at.read_unaligned() } }
    }

    #[inline(always)]
    pub(super) fn set_word(self, value: u32) {
        let at = self.0.cast::<u32>();
        // SAFETY: a place is memory that is there; the atomic is aligned.
        unsafe {
            if at.is_aligned() { AtomicU32::from_ptr(at).store(value, Relaxed) } else { at.write_unaligned(value) }
        }
    }

    /// A word that is changed as a whole.
    pub(super) fn atomic32<'a>(self) -> Option<&'a AtomicU32> {
        // SAFETY: a place is memory that is there for as long as the instruction runs; the atomic
        // is aligned.
        self.0.cast::<u32>().is_aligned().then(|| unsafe { AtomicU32::from_ptr(self.0.cast()) })
    }

    /// Two words that are changed as a whole.
    pub(super) fn atomic64<'a>(self) -> Option<&'a AtomicU64> {
        // SAFETY: a place is memory that is there for as long as the instruction runs; the atomic
        // is aligned.
        self.0.cast::<u64>().is_aligned().then(|| unsafe { AtomicU64::from_ptr(self.0.cast()) })
    }
}

/// What an instruction's address means.
trait Space {
    /// The places of active lanes, all `bytes` of which are there.
    fn reach<const N: usize>(
        wave: &Wave<N>,
        it: &Instruction,
        group: &mut Group,
        base: Operand,
        bytes: u32,
        access: Access,
    ) -> Result<[Place; N], Box<Trap>>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The GPU's memory.
struct Global;

/// The GPU's memory, of which each lane has the word of its number.
struct ByLane;

impl Space for ByLane {
    fn reach<const N: usize>(
        wave: &Wave<N>,
        it: &Instruction,
        group: &mut Group,
        base: Operand,
        bytes: u32,
        access: Access,
    ) -> Result<[Place; N], Box<Trap>> {
        let start = wave.s64(base).wrapping_add(i64::from(it.offset) as u64);
        let addresses: Row<N, u64> = std::array::from_fn(|lane| start.wrapping_add(4 * lane as u64));
        reach(wave.exec(), &addresses, group, bytes, access)
    }
}

/// Lanes' own memory.
struct Scratch;

impl Space for Global {
    #[inline(always)]
    fn reach<const N: usize>(
        wave: &Wave<N>,
        it: &Instruction,
        group: &mut Group,
        base: Operand,
        bytes: u32,
        access: Access,
    ) -> Result<[Place; N], Box<Trap>> {
        let offset = i64::from(it.offset) as u64;
        let addresses: Row<N, u64> = match (base, it.source[0]) {
            (Operand::None | Operand::Scalar(NULL), address) => {
                wave.doubles(address).map(|address| address.wrapping_add(offset))
            }
            (base, Operand::None) => [wave.s64(base).wrapping_add(offset); N],
            (base, address) => {
                let base = wave.s64(base).wrapping_add(offset);
                let row = wave.words(address);
                std::array::from_fn(|lane| base.wrapping_add(u64::from(row[lane])))
            }
        };
        reach(wave.exec(), &addresses, group, bytes, access)
    }
}

/// The places at addresses of the GPU, for the lanes of a mask.
#[inline(always)]
pub(super) fn reach<const N: usize>(
    active: u64,
    addresses: &Row<N, u64>,
    group: &mut Group,
    bytes: u32,
    access: Access,
) -> Result<[Place; N], Box<Trap>> {
    check(active, addresses, group, bytes, access)?;
    if group.options.count {
        group.note_traffic(active, addresses, bytes, access == Access::Write);
    }
    let memory = group.memory;
    Ok(std::array::from_fn(|lane| Place(memory.host(addresses[lane]))))
}

/// Lanes seldom lie more than so far apart: then the pages between are looked at once, not for each
/// lane.
const NEAR: u64 = 16 * 4096;

/// Finds all lanes' bytes in buffers, and notes them in strict runs.
#[inline(always)]
fn check<const N: usize>(
    active: u64,
    addresses: &Row<N, u64>,
    group: &mut Group,
    bytes: u32,
    access: Access,
) -> Outcome {
    let (mut first, mut last) = (u64::MAX, 0);
    if active == Wave::<N>::ALL {
        for &address in addresses {
            first = first.min(address);
            last = last.max(address);
        }
    } else {
        for lane in lanes(active) {
            first = first.min(addresses[lane]);
            last = last.max(addresses[lane]);
        }
    }
    let near = last.wrapping_sub(first) < NEAR && group.memory.is_mapped(first, last - first + u64::from(bytes));
    if near && !group.options.strict { Ok(()) } else { check_each(active, addresses, group, bytes, access) }
}

#[inline(never)]
fn check_each<const N: usize>(
    active: u64,
    addresses: &Row<N, u64>,
    group: &mut Group,
    bytes: u32,
    access: Access,
) -> Outcome {
    let write = access == Access::Write;
    let wide = u64::from(bytes);
    for lane in lanes(active) {
        let address = addresses[lane];
        if !group.memory.is_mapped(address, wide) {
            return Err(Trap::at(FaultKind::OutOfBounds { bytes, write }, lane, address));
        }
        if group.options.strict {
            let launch = group.dispatch.number;
            let noted = if write {
                group.memory.note_write(launch, address, wide)
            } else {
                group.memory.note_read(launch, address, wide)
            };
            if let Err(conflict) = noted {
                let kind = FaultKind::LaunchRace { earlier: conflict.other, wrote: conflict.wrote, write };
                return Err(Trap::at(kind, lane, conflict.address));
            }
        }
    }
    Ok(())
}

impl Space for Scratch {
    #[inline(always)]
    fn reach<const N: usize>(
        wave: &Wave<N>,
        it: &Instruction,
        group: &mut Group,
        base: Operand,
        bytes: u32,
        access: Access,
    ) -> Result<[Place; N], Box<Trap>> {
        let start = wave.s32(base).wrapping_add(it.offset as u32);
        let row = wave.words(it.source[0]);
        let stride = group.dispatch.scratch as usize;
        let mut places = [Place::NONE; N];
        for lane in lanes(wave.exec()) {
            let offset = start.wrapping_add(row[lane]);
            let first = (wave.index as usize * N + lane) * stride + offset as usize;
            if offset as usize + bytes as usize > stride || first + bytes as usize > group.scratch.len() {
                let kind = FaultKind::OutOfBounds { bytes, write: access == Access::Write };
                return Err(Trap::at(kind, lane, u64::from(offset)));
            }
            places[lane] = Place(group.scratch[first..].as_mut_ptr());
        }
        Ok(places)
    }
}

fn count(wave_active: u64, group: &mut Group, bytes: u32, access: Access) {
    if group.options.count {
        let bytes = u64::from(wave_active.count_ones()) * u64::from(bytes);
        match access {
            Access::Read => group.counts.bytes_loaded += bytes,
            Access::Write => group.counts.bytes_stored += bytes,
        }
    }
}

#[inline(always)]
fn load<const N: usize, S: Space>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    bytes: u32,
    f: impl Fn(Place, u32) -> u32,
) -> Outcome {
    let active = wave.exec();
    let Operand::Vector(to) = it.to else { return Ok(()) };
    if active == 0 {
        return Ok(());
    }
    let places = S::reach(wave, it, group, it.source[1], bytes, Access::Read)?;
    count(active, group, bytes, Access::Read);
    let row = &mut wave.vectors[to as usize];
    for lane in lanes(active) {
        row[lane] = f(places[lane], row[lane]);
    }
    Ok(())
}

#[inline(always)]
fn load_words<const N: usize, S: Space, const WORDS: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
) -> Outcome {
    let active = wave.exec();
    let Operand::Vector(to) = it.to else { return Ok(()) };
    if active == 0 {
        return Ok(());
    }
    let bytes = 4 * WORDS as u32;
    let places = S::reach(wave, it, group, it.source[1], bytes, Access::Read)?;
    count(active, group, bytes, Access::Read);
    let rows = &mut wave.vectors[to as usize..to as usize + WORDS];
    each_lane::<N>(active, |lane| {
        for (word, row) in rows.iter_mut().enumerate() {
            row[lane] = places[lane].after(4 * word).word();
        }
        Ok(())
    })
}

#[inline(always)]
fn store<const N: usize, S: Space>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    bytes: u32,
    f: impl Fn(Place, u32),
) -> Outcome {
    let active = wave.exec();
    if active == 0 {
        return Ok(());
    }
    let places = S::reach(wave, it, group, it.source[2], bytes, Access::Write)?;
    count(active, group, bytes, Access::Write);
    let row = wave.words(it.source[1]);
    for lane in lanes(active) {
        f(places[lane], row[lane]);
    }
    Ok(())
}

#[inline(always)]
fn store_words<const N: usize, S: Space, const WORDS: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
) -> Outcome {
    let active = wave.exec();
    let Operand::Vector(from) = it.source[1] else { return Ok(()) };
    if active == 0 {
        return Ok(());
    }
    let bytes = 4 * WORDS as u32;
    let places = S::reach(wave, it, group, it.source[2], bytes, Access::Write)?;
    count(active, group, bytes, Access::Write);
    let rows = &wave.vectors[from as usize..from as usize + WORDS];
    each_lane::<N>(active, |lane| {
        for (word, row) in rows.iter().enumerate() {
            places[lane].after(4 * word).set_word(row[lane]);
        }
        Ok(())
    })
}

fn misaligned(lane: usize) -> Box<Trap> {
    let mut trap = Trap::new(FaultKind::Other("an atomic access that is not aligned".into()));
    trap.lane = Some(lane as u32);
    trap
}

/// An atomic of one word: the new value from the old one, the data, and the data's second word.
#[inline(always)]
fn atomic32<const N: usize, S: Space>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: impl Fn(u32, u32, u32) -> u32,
) -> Outcome {
    let active = wave.exec();
    let Operand::Vector(data) = it.source[1] else { return Ok(()) };
    if active == 0 {
        return Ok(());
    }
    let places = S::reach(wave, it, group, it.source[2], 4, Access::Write)?;
    count(active, group, 4, Access::Read);
    count(active, group, 4, Access::Write);
    let data = data as usize;
    for lane in lanes(active) {
        let (first, second) = (wave.vectors[data][lane], wave.vectors[data + 1][lane]);
        let word = places[lane].atomic32().ok_or_else(|| misaligned(lane))?;
        let Ok(old) = word.fetch_update(Relaxed, Relaxed, |old| Some(f(old, first, second))) else { continue };
        if let Operand::Vector(to) = it.to {
            wave.vectors[to as usize][lane] = old;
        }
    }
    Ok(())
}

/// ... of two words.
#[inline(always)]
fn atomic64<const N: usize, S: Space>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: impl Fn(u64, u64, u64) -> u64,
) -> Outcome {
    let active = wave.exec();
    let Operand::Vector(data) = it.source[1] else { return Ok(()) };
    if active == 0 {
        return Ok(());
    }
    let places = S::reach(wave, it, group, it.source[2], 8, Access::Write)?;
    count(active, group, 8, Access::Read);
    count(active, group, 8, Access::Write);
    // A comparison has a second pair, others may end at the last register.
    let second = if it.name.contains("cmpswap") { data + 2 } else { data };
    for lane in lanes(active) {
        let pair = |first: u16| {
            let first = first as usize;
            u64::from(wave.vectors[first][lane]) | u64::from(wave.vectors[first + 1][lane]) << 32
        };
        let (first, second) = (pair(data), pair(second));
        let word = places[lane].atomic64().ok_or_else(|| misaligned(lane))?;
        let Ok(old) = word.fetch_update(Relaxed, Relaxed, |old| Some(f(old, first, second))) else { continue };
        if let Operand::Vector(to) = it.to {
            wave.vectors[to as usize][lane] = old as u32;
            wave.vectors[to as usize + 1][lane] = (old >> 32) as u32;
        }
    }
    Ok(())
}
