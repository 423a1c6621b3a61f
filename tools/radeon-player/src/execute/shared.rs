//! Instructions of shared memory, and the lanes' exchanges through it.

use super::float::{add_brains, add_halves};
use super::local::Access;
use super::memory::{each_lane, exchange_if_equal, exchange_wide_if_equal, lanes, wide_float};
use super::vector::{double, single};
use super::wave::{M0, Row, Wave};
use super::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

/// The handler of an instruction of shared memory by its name.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "ds_load_b32" => |w, i, g| load_words::<N, 1>(w, i, g),
        "ds_load_b64" => |w, i, g| load_words::<N, 2>(w, i, g),
        "ds_load_b96" => |w, i, g| load_words::<N, 3>(w, i, g),
        "ds_load_b128" => |w, i, g| load_words::<N, 4>(w, i, g),
        "ds_load_2addr_b32" => |w, i, g| load_two::<N, 1>(w, i, g, 4),
        "ds_load_2addr_b64" => |w, i, g| load_two::<N, 2>(w, i, g, 8),
        "ds_load_2addr_stride64_b32" => |w, i, g| load_two::<N, 1>(w, i, g, 256),
        "ds_load_2addr_stride64_b64" => |w, i, g| load_two::<N, 2>(w, i, g, 512),
        "ds_load_u8" => |w, i, g| load(w, i, g, |[byte], _| u32::from(byte)),
        "ds_load_i8" => |w, i, g| load(w, i, g, |[byte], _| byte as i8 as u32),
        "ds_load_u16" => |w, i, g| load(w, i, g, |half, _| u32::from(u16::from_le_bytes(half))),
        "ds_load_i16" => |w, i, g| load(w, i, g, |half, _| i16::from_le_bytes(half) as u32),
        "ds_load_u8_d16" => |w, i, g| load(w, i, g, |[byte], old| low(old, byte.into())),
        "ds_load_i8_d16" => |w, i, g| load(w, i, g, |[byte], old| low(old, byte as i8 as u16)),
        "ds_load_u16_d16" => |w, i, g| load(w, i, g, |half, old| low(old, u16::from_le_bytes(half))),
        "ds_load_u8_d16_hi" => |w, i, g| load(w, i, g, |[byte], old| high(old, byte.into())),
        "ds_load_i8_d16_hi" => |w, i, g| load(w, i, g, |[byte], old| high(old, byte as i8 as u16)),
        "ds_load_u16_d16_hi" => |w, i, g| load(w, i, g, |half, old| high(old, u16::from_le_bytes(half))),
        "ds_store_b32" => |w, i, g| store_words::<N, 1>(w, i, g),
        "ds_store_b64" => |w, i, g| store_words::<N, 2>(w, i, g),
        "ds_store_b96" => |w, i, g| store_words::<N, 3>(w, i, g),
        "ds_store_b128" => |w, i, g| store_words::<N, 4>(w, i, g),
        "ds_store_2addr_b32" => |w, i, g| store_two::<N, 1>(w, i, g, 4),
        "ds_store_2addr_b64" => |w, i, g| store_two::<N, 2>(w, i, g, 8),
        "ds_store_2addr_stride64_b32" => |w, i, g| store_two::<N, 1>(w, i, g, 256),
        "ds_store_2addr_stride64_b64" => |w, i, g| store_two::<N, 2>(w, i, g, 512),
        "ds_store_b8" => |w, i, g| store(w, i, g, |word| [word as u8]),
        "ds_store_b16" => |w, i, g| store(w, i, g, |word| (word as u16).to_le_bytes()),
        "ds_store_b8_d16_hi" => |w, i, g| store(w, i, g, |word| [(word >> 16) as u8]),
        "ds_store_b16_d16_hi" => |w, i, g| store(w, i, g, |word| ((word >> 16) as u16).to_le_bytes()),
        "ds_add_u32" | "ds_add_rtn_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.wrapping_add(by)),
        "ds_sub_u32" | "ds_sub_rtn_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.wrapping_sub(by)),
        "ds_rsub_u32" | "ds_rsub_rtn_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| by.wrapping_sub(old)),
        "ds_min_u32" | "ds_min_rtn_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.min(by)),
        "ds_max_u32" | "ds_max_rtn_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.max(by)),
        "ds_min_i32" | "ds_min_rtn_i32" => |w, i, g| atomic32(w, i, g, |old, by, _| (old as i32).min(by as i32) as u32),
        "ds_max_i32" | "ds_max_rtn_i32" => |w, i, g| atomic32(w, i, g, |old, by, _| (old as i32).max(by as i32) as u32),
        "ds_and_b32" | "ds_and_rtn_b32" => |w, i, g| atomic32(w, i, g, |old, by, _| old & by),
        "ds_or_b32" | "ds_or_rtn_b32" => |w, i, g| atomic32(w, i, g, |old, by, _| old | by),
        "ds_xor_b32" | "ds_xor_rtn_b32" => |w, i, g| atomic32(w, i, g, |old, by, _| old ^ by),
        "ds_mskor_b32" | "ds_mskor_rtn_b32" => |w, i, g| atomic32(w, i, g, |old, mask, by| old & !mask | by),
        "ds_storexchg_rtn_b32" => |w, i, g| atomic32(w, i, g, |_, new, _| new),
        "ds_cmpstore_b32" | "ds_cmpstore_rtn_b32" => {
            |w, i, g| atomic32(w, i, g, |old, new, is| if old == is { new } else { old })
        }
        // RDNA1 and RDNA2 have the two data the other way round.
        "ds_cmpst_b32" | "ds_cmpst_rtn_b32" => {
            |w, i, g| atomic32(w, i, g, |old, is, new| if old == is { new } else { old })
        }
        "ds_inc_u32" | "ds_inc_rtn_u32" => {
            |w, i, g| atomic32(w, i, g, |old, top, _| if old >= top { 0 } else { old + 1 })
        }
        "ds_dec_u32" | "ds_dec_rtn_u32" => {
            |w, i, g| atomic32(w, i, g, |old, top, _| if old == 0 || old > top { top } else { old - 1 })
        }
        "ds_add_f32" | "ds_add_rtn_f32" => |w, i, g| atomic32(w, i, g, |old, by, _| float(old, by, |a, b| a + b)),
        "ds_min_f32" | "ds_min_rtn_f32" | "ds_min_num_f32" | "ds_min_num_rtn_f32" => {
            |w, i, g| atomic32(w, i, g, |old, by, _| float(old, by, single::min))
        }
        "ds_max_f32" | "ds_max_rtn_f32" | "ds_max_num_f32" | "ds_max_num_rtn_f32" => {
            |w, i, g| atomic32(w, i, g, |old, by, _| float(old, by, single::max))
        }
        "ds_add_u64" | "ds_add_rtn_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.wrapping_add(by)),
        "ds_sub_u64" | "ds_sub_rtn_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.wrapping_sub(by)),
        "ds_min_u64" | "ds_min_rtn_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.min(by)),
        "ds_max_u64" | "ds_max_rtn_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| old.max(by)),
        "ds_min_i64" | "ds_min_rtn_i64" => |w, i, g| atomic64(w, i, g, |old, by, _| (old as i64).min(by as i64) as u64),
        "ds_max_i64" | "ds_max_rtn_i64" => |w, i, g| atomic64(w, i, g, |old, by, _| (old as i64).max(by as i64) as u64),
        "ds_and_b64" | "ds_and_rtn_b64" => |w, i, g| atomic64(w, i, g, |old, by, _| old & by),
        "ds_or_b64" | "ds_or_rtn_b64" => |w, i, g| atomic64(w, i, g, |old, by, _| old | by),
        "ds_xor_b64" | "ds_xor_rtn_b64" => |w, i, g| atomic64(w, i, g, |old, by, _| old ^ by),
        "ds_storexchg_rtn_b64" => |w, i, g| atomic64(w, i, g, |_, new, _| new),
        "ds_cmpstore_b64" | "ds_cmpstore_rtn_b64" => {
            |w, i, g| atomic64(w, i, g, |old, new, is| if old == is { new } else { old })
        }
        "ds_cmpst_b64" | "ds_cmpst_rtn_b64" => {
            |w, i, g| atomic64(w, i, g, |old, is, new| if old == is { new } else { old })
        }
        "ds_inc_u64" | "ds_inc_rtn_u64" => {
            |w, i, g| atomic64(w, i, g, |old, top, _| if old >= top { 0 } else { old + 1 })
        }
        "ds_dec_u64" | "ds_dec_rtn_u64" => {
            |w, i, g| atomic64(w, i, g, |old, top, _| if old == 0 || old > top { top } else { old - 1 })
        }
        "ds_rsub_u64" | "ds_rsub_rtn_u64" => |w, i, g| atomic64(w, i, g, |old, by, _| by.wrapping_sub(old)),
        "ds_mskor_b64" | "ds_mskor_rtn_b64" => |w, i, g| atomic64(w, i, g, |old, mask, by| old & !mask | by),
        "ds_min_f64" | "ds_min_rtn_f64" | "ds_min_num_f64" | "ds_min_num_rtn_f64" => {
            |w, i, g| atomic64(w, i, g, |old, by, _| wide_float(old, by, double::min))
        }
        "ds_max_f64" | "ds_max_rtn_f64" | "ds_max_num_f64" | "ds_max_num_rtn_f64" => {
            |w, i, g| atomic64(w, i, g, |old, by, _| wide_float(old, by, double::max))
        }
        "ds_cmpstore_f32" | "ds_cmpstore_rtn_f32" => |w, i, g| atomic32(w, i, g, exchange_if_equal),
        "ds_cmpstore_f64" | "ds_cmpstore_rtn_f64" => |w, i, g| atomic64(w, i, g, exchange_wide_if_equal),
        "ds_cmpst_f32" | "ds_cmpst_rtn_f32" => {
            |w, i, g| atomic32(w, i, g, |old, is, new| exchange_if_equal(old, new, is))
        }
        "ds_cmpst_f64" | "ds_cmpst_rtn_f64" => {
            |w, i, g| atomic64(w, i, g, |old, is, new| exchange_wide_if_equal(old, new, is))
        }
        "ds_cond_sub_u32" | "ds_cond_sub_rtn_u32" => {
            |w, i, g| atomic32(w, i, g, |old, by, _| old.checked_sub(by).unwrap_or(old))
        }
        "ds_sub_clamp_u32" | "ds_sub_clamp_rtn_u32" => |w, i, g| atomic32(w, i, g, |old, by, _| old.saturating_sub(by)),
        "ds_wrap_rtn_b32" => {
            |w, i, g| atomic32(w, i, g, |old, by, more| old.checked_sub(by).unwrap_or_else(|| old.wrapping_add(more)))
        }
        "ds_pk_add_f16" | "ds_pk_add_rtn_f16" => |w, i, g| atomic32(w, i, g, |old, by, _| add_halves(old, by)),
        "ds_pk_add_bf16" | "ds_pk_add_rtn_bf16" => |w, i, g| atomic32(w, i, g, |old, by, _| add_brains(old, by)),
        // Each half is exchanged whose uppermost bit is set in the data, which is not stored.
        "ds_condxchg32_rtn_b64" => |w, i, g| {
            atomic64(w, i, g, |old, new, _| {
                let half = |at: u32| {
                    let (old, new) = ((old >> at) as u32, (new >> at) as u32);
                    u64::from(if new >> 31 != 0 { new & 0x7fff_ffff } else { old }) << at
                };
                half(0) | half(32)
            })
        },
        "ds_storexchg_2addr_rtn_b32" => |w, i, g| exchange_two::<N, 1>(w, i, g, 4),
        "ds_storexchg_2addr_stride64_rtn_b32" => |w, i, g| exchange_two::<N, 1>(w, i, g, 256),
        "ds_storexchg_2addr_rtn_b64" => |w, i, g| exchange_two::<N, 2>(w, i, g, 8),
        "ds_storexchg_2addr_stride64_rtn_b64" => |w, i, g| exchange_two::<N, 2>(w, i, g, 512),
        "ds_load_addtid_b32" => |w, i, g| {
            let Operand::Vector(to) = i.to else { return Ok(()) };
            let places = places_of_lanes(w, i);
            read_words::<N, 1>(w, g, to, &places)
        },
        "ds_store_addtid_b32" => |w, i, g| {
            let places = places_of_lanes(w, i);
            write_words::<N, 1>(w, g, i.source[0], &places)
        },
        "ds_append" => |w, i, g| count_lanes(w, i, g, u32::wrapping_add),
        "ds_consume" => |w, i, g| count_lanes(w, i, g, u32::wrapping_sub),
        "ds_bpermute_b32" => gather,
        "ds_permute_b32" => scatter,
        "ds_swizzle_b32" => swizzle,
        "ds_nop" => |_, _, _| Ok(()),
        _ => return None,
    })
}

fn low(old: u32, half: u16) -> u32 {
    old & 0xffff_0000 | u32::from(half)
}

fn high(old: u32, half: u16) -> u32 {
    old & 0xffff | u32::from(half) << 16
}

fn float(a: u32, b: u32, f: impl Fn(f32, f32) -> f32) -> u32 {
    f(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

/// Gives a fault the lane that it is of.
fn of_lane<T>(lane: usize, outcome: Result<T, Box<Trap>>) -> Result<T, Box<Trap>> {
    outcome.map_err(|mut trap| {
        trap.lane = Some(lane as u32);
        trap
    })
}

/// The places of lanes: the address and the instruction's offset.
#[inline(always)]
fn places<const N: usize>(wave: &Wave<N>, it: &Instruction, offset: u32) -> Row<N> {
    let row = wave.words(it.source[0]);
    std::array::from_fn(|lane| row[lane].wrapping_add(offset))
}

/// The word of each lane's number, from the place on that m0 names.
fn places_of_lanes<const N: usize>(wave: &Wave<N>, it: &Instruction) -> Row<N> {
    let first = (wave.scalars[usize::from(M0)] & 0xffff).wrapping_add(it.offset as u32);
    std::array::from_fn(|lane| first.wrapping_add(4 * lane as u32))
}

/// Counts the lanes that are on up or down in a word; all get what was there.
fn count_lanes<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: fn(u32, u32) -> u32,
) -> Outcome {
    let place = (wave.scalars[usize::from(M0)] >> 16).wrapping_add(it.offset as u32);
    let lanes = wave.exec().count_ones();
    let change = |old| f(u32::from_le_bytes(old), lanes).to_le_bytes();
    let old = group.shared.change(wave.index, place as usize, change)?;
    wave.put(it.to, &[u32::from_le_bytes(old); N]);
    Ok(())
}

/// Counts the cycles of an access, in workgroups that are sampled.
#[inline(always)]
fn count<const N: usize>(active: u64, places: &Row<N>, words: usize, group: &mut Group) {
    if let Some(sample) = &mut group.sample {
        let (cycles, passes) = cycles(active, places, words);
        sample.shared_cycles += cycles;
        sample.bank_conflicts += cycles - passes;
    }
}

/// The cycles that an access takes, and how many of them it would take if no lanes met in a bank.
/// Lanes of a pass that want different words of the same bank wait for each other; wider accesses
/// take more passes of fewer lanes.
fn cycles<const N: usize>(active: u64, places: &Row<N>, words: usize) -> (u64, u64) {
    let per_pass = 32 / words.next_power_of_two();
    let (mut cycles, mut passes) = (0, 0);
    let mut wanted = [0; 32];
    for first in (0..N).step_by(per_pass) {
        let mut count = 0;
        for lane in lanes(active >> first & (u64::MAX >> (64 - per_pass))) {
            for word in 0..words as u32 {
                wanted[count] = places[first + lane] / 4 + word;
                count += 1;
            }
        }
        if count > 0 {
            cycles += longest(&mut wanted[..count]);
            passes += 1;
        }
    }
    (cycles, passes)
}

/// How many different words are wanted of the bank of which most are.
fn longest(wanted: &mut [u32]) -> u64 {
    let (mut seen, mut word_of) = (0u32, [0; 32]);
    let alone = wanted.iter().all(|&word| {
        let bank = word as usize % 32;
        let fresh = seen >> bank & 1 == 0;
        if fresh {
            seen |= 1 << bank;
            word_of[bank] = word;
        }
        fresh || word_of[bank] == word
    });
    if alone {
        return 1;
    }
    wanted.sort_unstable();
    let (mut per_bank, mut last) = ([0; 32], None);
    for &word in wanted.iter() {
        if last != Some(word) {
            per_bank[word as usize % 32] += 1;
            last = Some(word);
        }
    }
    per_bank.into_iter().max().unwrap_or(1)
}

#[inline(always)]
fn load<const N: usize, const SIZE: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: impl Fn([u8; SIZE], u32) -> u32,
) -> Outcome {
    let Operand::Vector(to) = it.to else { return Ok(()) };
    let (active, places) = (wave.exec(), places(wave, it, it.offset as u32));
    count(active, &places, 1, group);
    let row = &mut wave.vectors[to as usize];
    for lane in lanes(active) {
        let bytes = of_lane(lane, group.shared.read(wave.index, places[lane] as usize))?;
        row[lane] = f(bytes, row[lane]);
    }
    Ok(())
}

/// Reads words to the register and those after it.
#[inline(always)]
fn read_words<const N: usize, const WORDS: usize>(
    wave: &mut Wave<N>,
    group: &mut Group,
    to: u16,
    places: &Row<N>,
) -> Outcome {
    let active = wave.exec();
    count(active, places, WORDS, group);
    let rows = &mut wave.vectors[to as usize..to as usize + WORDS];
    each_lane::<N>(active, |lane| {
        let at = places[lane] as usize;
        // One look at the bounds for all words.
        group.shared.note(wave.index, at, 4 * WORDS, Access::Read).or_else(|trap| of_lane(lane, Err(trap)))?;
        let Some(bytes) = group.shared.bytes.get(at..at + 4 * WORDS) else {
            return of_lane(lane, Err(group.shared.outside(at)));
        };
        for (row, bytes) in rows.iter_mut().zip(bytes.as_chunks::<4>().0) {
            row[lane] = u32::from_le_bytes(*bytes);
        }
        Ok(())
    })
}

#[inline(always)]
fn load_words<const N: usize, const WORDS: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group) -> Outcome {
    let Operand::Vector(to) = it.to else { return Ok(()) };
    let places = places(wave, it, it.offset as u32);
    read_words::<N, WORDS>(wave, group, to, &places)
}

#[inline(always)]
fn load_two<const N: usize, const WORDS: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    unit: u32,
) -> Outcome {
    let Operand::Vector(to) = it.to else { return Ok(()) };
    // Both addresses before the first result, which may be written over them.
    let first = places(wave, it, it.offset as u32 * unit);
    let second = places(wave, it, u32::from(it.offset1) * unit);
    read_words::<N, WORDS>(wave, group, to, &first)?;
    read_words::<N, WORDS>(wave, group, to + WORDS as u16, &second)
}

#[inline(always)]
fn store<const N: usize, const SIZE: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: impl Fn(u32) -> [u8; SIZE],
) -> Outcome {
    let (active, places, row) = (wave.exec(), places(wave, it, it.offset as u32), wave.words(it.source[1]));
    count(active, &places, 1, group);
    for lane in lanes(active) {
        of_lane(lane, group.shared.write(wave.index, places[lane] as usize, f(row[lane])))?;
    }
    Ok(())
}

/// Writes words from the register and those after it.
#[inline(always)]
fn write_words<const N: usize, const WORDS: usize>(
    wave: &mut Wave<N>,
    group: &mut Group,
    from: Operand,
    places: &Row<N>,
) -> Outcome {
    let Operand::Vector(from) = from else { return Ok(()) };
    let active = wave.exec();
    count(active, places, WORDS, group);
    let rows = &wave.vectors[from as usize..from as usize + WORDS];
    each_lane::<N>(active, |lane| {
        let at = places[lane] as usize;
        group.shared.note(wave.index, at, 4 * WORDS, Access::Write).or_else(|trap| of_lane(lane, Err(trap)))?;
        let Some(bytes) = group.shared.bytes.get_mut(at..at + 4 * WORDS) else {
            return of_lane(lane, Err(group.shared.outside(at)));
        };
        for (row, bytes) in rows.iter().zip(bytes.as_chunks_mut::<4>().0) {
            *bytes = row[lane].to_le_bytes();
        }
        Ok(())
    })
}

#[inline(always)]
fn store_words<const N: usize, const WORDS: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group) -> Outcome {
    let places = places(wave, it, it.offset as u32);
    write_words::<N, WORDS>(wave, group, it.source[1], &places)
}

#[inline(always)]
fn store_two<const N: usize, const WORDS: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    unit: u32,
) -> Outcome {
    let first = places(wave, it, it.offset as u32 * unit);
    let second = places(wave, it, u32::from(it.offset1) * unit);
    write_words::<N, WORDS>(wave, group, it.source[1], &first)?;
    write_words::<N, WORDS>(wave, group, it.source[2], &second)
}

/// Exchanges values at two places, of so many words each.
fn exchange_two<const N: usize, const WORDS: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    unit: u32,
) -> Outcome {
    let Operand::Vector(to) = it.to else { return Ok(()) };
    // All is read before a result is written, which may be over it.
    let offsets = [it.offset as u32, u32::from(it.offset1)];
    let places = offsets.map(|offset| places(wave, it, offset * unit));
    let data = [it.source[1], it.source[2]].map(|operand| match operand {
        Operand::Vector(first) => std::array::from_fn(|word| wave.vectors[usize::from(first) + word]),
        _ => [[0; N]; WORDS],
    });
    for lane in lanes(wave.exec()) {
        for (k, (places, data)) in places.iter().zip(&data).enumerate() {
            for (word, row) in data.iter().enumerate() {
                let at = places[lane] as usize + 4 * word;
                let old = of_lane(lane, group.shared.change(wave.index, at, |_: [u8; 4]| row[lane].to_le_bytes()))?;
                wave.vectors[usize::from(to) + k * WORDS + word][lane] = u32::from_le_bytes(old);
            }
        }
    }
    Ok(())
}

/// An atomic: the new value from the old one and the two data.
#[inline(always)]
fn atomic32<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: impl Fn(u32, u32, u32) -> u32,
) -> Outcome {
    let (active, places) = (wave.exec(), places(wave, it, it.offset as u32));
    let (first, second) = (wave.words(it.source[1]), wave.words(it.source[2]));
    count(active, &places, 1, group);
    for lane in lanes(active) {
        let change = |old| f(u32::from_le_bytes(old), first[lane], second[lane]).to_le_bytes();
        let old = of_lane(lane, group.shared.change(wave.index, places[lane] as usize, change))?;
        if let Operand::Vector(to) = it.to {
            wave.vectors[to as usize][lane] = u32::from_le_bytes(old);
        }
    }
    Ok(())
}

/// ... of two words.
#[inline(always)]
fn atomic64<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    group: &mut Group,
    f: impl Fn(u64, u64, u64) -> u64,
) -> Outcome {
    let (active, places) = (wave.exec(), places(wave, it, it.offset as u32));
    let (first, second) = (wave.doubles(it.source[1]), wave.doubles(it.source[2]));
    count(active, &places, 2, group);
    for lane in lanes(active) {
        let change = |old| f(u64::from_le_bytes(old), first[lane], second[lane]).to_le_bytes();
        let old = of_lane(lane, group.shared.change(wave.index, places[lane] as usize, change))?;
        if let Operand::Vector(to) = it.to {
            let old = u64::from_le_bytes(old);
            wave.vectors[to as usize][lane] = old as u32;
            wave.vectors[to as usize + 1][lane] = (old >> 32) as u32;
        }
    }
    Ok(())
}

/// Each lane reads the lane that its address names, of its own 32; one that is off gives zero.
fn gather<const N: usize>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let (from, values, active) = (places(wave, it, it.offset as u32), wave.words(it.source[1]), wave.exec());
    let row = std::array::from_fn(|lane| {
        let other = (from[lane] >> 2 & 31) as usize + (lane & 32);
        if active >> other & 1 != 0 { values[other] } else { 0 }
    });
    wave.put(it.to, &row);
    Ok(())
}

/// Each lane writes the lane that its address names, of its own 32; lanes that none writes get
/// zero.
fn scatter<const N: usize>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let (to, values) = (places(wave, it, it.offset as u32), wave.words(it.source[1]));
    let mut row = [0; N];
    for lane in lanes(wave.exec()) {
        row[(to[lane] >> 2 & 31) as usize + (lane & 32)] = values[lane];
    }
    wave.put(it.to, &row);
    Ok(())
}

/// Lanes read each other in a pattern of the instruction's offset.
fn swizzle<const N: usize>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let (values, active, pattern) = (wave.words(it.source[0]), wave.exec(), it.offset as usize & 0xffff);
    if pattern >= 0xe000 {
        return Err(Trap::new(FaultKind::Missing));
    }
    let row = std::array::from_fn(|lane| {
        let other = if pattern >= 0xc000 {
            // Rotated within 32, to the right if bit 10 is set, as far as bits 5 to 9 say; bits 0
            // to 4 stay.
            let (by, keep) = (pattern >> 5 & 31, pattern & 31);
            let turned = if pattern >> 10 & 1 != 0 { lane + 32 - by } else { lane + by } & 31;
            lane & keep | turned & !keep
        } else if pattern >= 0x8000 {
            lane & 28 | pattern >> (2 * (lane & 3)) & 3
        } else {
            (lane & pattern & 31 | pattern >> 5 & 31) ^ (pattern >> 10 & 31)
        };
        let other = other | lane & 32;
        if active >> other & 1 != 0 { values[other] } else { 0 }
    });
    wave.put(it.to, &row);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_of_banks() {
        let of = |stride: u32| cycles::<32>(u64::MAX >> 32, &std::array::from_fn(|k| k as u32 * stride), 1);
        assert_eq!([4, 0, 8, 128].map(of), [(1, 1), (1, 1), (2, 1), (32, 1)]);
        // Two passes of 32 lanes, of which one has none that are on; four of 8 lanes with 4 words.
        let row = std::array::from_fn(|k| k as u32 * 16);
        assert_eq!(cycles::<64>(1 << 40, &row, 1), (1, 1));
        assert_eq!(cycles::<32>(u64::MAX >> 32, &std::array::from_fn(|k| k as u32 * 16), 4), (4, 4));
    }
}
