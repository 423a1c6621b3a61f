//! Scalar arithmetic: one value for the wave, and the condition bit.

// Closures of a table are called by the macro that gives them their types.
#![allow(clippy::redundant_closure_call)]

use super::wave::{EXEC, Wave};
use super::{Group, Handler, Outcome};
use crate::isa::instruction::{Instruction, Operand};

macro_rules! scalar {
    (|$wave:ident, $instruction:ident| $body:expr) => {{
        fn handler<const N: usize>($wave: &mut Wave<N>, $instruction: &Instruction, _: &mut Group) -> Outcome {
            $body;
            Ok(())
        }
        handler::<N>
    }};
}

/// A result of one or two sources of 32 bits; the condition bit stays.
macro_rules! word {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u32, u32) -> u32 = $value;
            let result = value(wave.s32(i.source[0]), wave.s32(i.source[1]));
            wave.put_s32(i.to, result);
        })
    };
}

/// The same; the condition bit says that the result is not zero.
macro_rules! word_set {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u32, u32) -> u32 = $value;
            let result = value(wave.s32(i.source[0]), wave.s32(i.source[1]));
            wave.put_s32(i.to, result);
            wave.scc = result != 0;
        })
    };
}

/// A result and the condition bit.
macro_rules! word_and_bit {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u32, u32, bool) -> (u32, bool) = $value;
            let (result, bit) = value(wave.s32(i.source[0]), wave.s32(i.source[1]), wave.scc);
            wave.put_s32(i.to, result);
            wave.scc = bit;
        })
    };
}

/// A result of one or two sources of 64 bits; the condition bit stays.
macro_rules! double {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u64, u64) -> u64 = $value;
            let result = value(wave.s64(i.source[0]), wave.s64(i.source[1]));
            wave.put_s64(i.to, result);
        })
    };
}

/// The same; the condition bit says that the result is not zero.
macro_rules! double_set {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u64, u64) -> u64 = $value;
            let result = value(wave.s64(i.source[0]), wave.s64(i.source[1]));
            wave.put_s64(i.to, result);
            wave.scc = result != 0;
        })
    };
}

/// A result of 64 bits of which the second source has 32; the condition bit says that it is not
/// zero.
macro_rules! double_by_word {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u64, u32) -> u64 = $value;
            let result = value(wave.s64(i.source[0]), wave.s32(i.source[1]));
            wave.put_s64(i.to, result);
            wave.scc = result != 0;
        })
    };
}

/// 32 bits of 64.
macro_rules! word_of_double {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u64) -> u32 = $value;
            let result = value(wave.s64(i.source[0]));
            wave.put_s32(i.to, result);
        })
    };
}

/// The condition bit of two words.
macro_rules! condition {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u32, u32) -> bool = $value;
            wave.scc = value(wave.s32(i.source[0]), wave.s32(i.source[1]));
        })
    };
}

/// The condition bit of a register and the instruction's number.
macro_rules! condition_of_number {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(u32, i32) -> bool = $value;
            wave.scc = value(wave.s32(i.source[0]), i.offset);
        })
    };
}

/// Exec is kept in the result, and becomes a function of the source and itself.
macro_rules! save_exec {
    ($name:expr, $value:expr) => {
        if $name.ends_with("_b64") {
            scalar!(|wave, i| {
                let value: fn(u64, u64) -> u64 = $value;
                let (source, before) = (wave.s64(i.source[0]), wave.s64(Operand::Scalar(EXEC)));
                let after = value(source, before);
                wave.put_s64(i.to, before);
                wave.put_s64(Operand::Scalar(EXEC), after);
                wave.scc = after != 0;
            })
        } else {
            scalar!(|wave, i| {
                let value: fn(u64, u64) -> u64 = $value;
                let (source, before) = (wave.s32(i.source[0]), wave.s32(Operand::Scalar(EXEC)));
                let after = value(source.into(), before.into()) as u32;
                wave.put_s32(i.to, before);
                wave.put_s32(Operand::Scalar(EXEC), after);
                wave.scc = after != 0;
            })
        }
    };
}

/// Exec becomes a function of the source and itself, which is the result too.
macro_rules! write_exec {
    ($name:expr, $value:expr) => {
        if $name.ends_with("_b64") {
            scalar!(|wave, i| {
                let value: fn(u64, u64) -> u64 = $value;
                let after = value(wave.s64(i.source[0]), wave.s64(Operand::Scalar(EXEC)));
                wave.put_s64(Operand::Scalar(EXEC), after);
                wave.put_s64(i.to, after);
                wave.scc = after != 0;
            })
        } else {
            scalar!(|wave, i| {
                let value: fn(u64, u64) -> u64 = $value;
                let after = value(wave.s32(i.source[0]).into(), wave.s32(Operand::Scalar(EXEC)).into()) as u32;
                wave.put_s32(Operand::Scalar(EXEC), after);
                wave.put_s32(i.to, after);
                wave.scc = after != 0;
            })
        }
    };
}

/// The handler of a scalar instruction.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    arithmetic(name).or_else(|| logic(name)).or_else(|| conditions(name)).or_else(|| masks(name))
}

fn arithmetic<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "s_add_u32" | "s_add_co_u32" => word_and_bit!(|a, b, _| a.overflowing_add(b)),
        "s_sub_u32" | "s_sub_co_u32" => word_and_bit!(|a, b, _| a.overflowing_sub(b)),
        "s_add_i32" | "s_add_co_i32" => word_and_bit!(|a, b, _| {
            let (sum, over) = (a as i32).overflowing_add(b as i32);
            (sum as u32, over)
        }),
        "s_sub_i32" | "s_sub_co_i32" => word_and_bit!(|a, b, _| {
            let (difference, over) = (a as i32).overflowing_sub(b as i32);
            (difference as u32, over)
        }),
        "s_addc_u32" | "s_add_co_ci_u32" => word_and_bit!(|a, b, carry| {
            let sum = u64::from(a) + u64::from(b) + u64::from(carry);
            (sum as u32, sum >> 32 != 0)
        }),
        "s_subb_u32" | "s_sub_co_ci_u32" => word_and_bit!(|a, b, borrow| {
            let take = u64::from(b) + u64::from(borrow);
            (a.wrapping_sub(take as u32), take > u64::from(a))
        }),
        "s_min_u32" => word_and_bit!(|a, b, _| (a.min(b), a < b)),
        "s_max_u32" => word_and_bit!(|a, b, _| (a.max(b), a > b)),
        "s_min_i32" => word_and_bit!(|a, b, _| ((a as i32).min(b as i32) as u32, (a as i32) < b as i32)),
        "s_max_i32" => word_and_bit!(|a, b, _| ((a as i32).max(b as i32) as u32, a as i32 > b as i32)),
        "s_lshl1_add_u32" => word_and_bit!(|a, b, _| shift_add(a, b, 1)),
        "s_lshl2_add_u32" => word_and_bit!(|a, b, _| shift_add(a, b, 2)),
        "s_lshl3_add_u32" => word_and_bit!(|a, b, _| shift_add(a, b, 3)),
        "s_lshl4_add_u32" => word_and_bit!(|a, b, _| shift_add(a, b, 4)),
        "s_mul_i32" => word!(|a, b| a.wrapping_mul(b)),
        "s_mul_hi_u32" => word!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        "s_mul_hi_i32" => word!(|a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
        "s_mul_u64" => double!(|a, b| a.wrapping_mul(b)),
        "s_add_nc_u64" | "s_add_u64" => double!(|a, b| a.wrapping_add(b)),
        "s_sub_nc_u64" | "s_sub_u64" => double!(|a, b| a.wrapping_sub(b)),
        "s_absdiff_i32" => word_set!(|a, b| (a as i32).wrapping_sub(b as i32).wrapping_abs() as u32),
        "s_abs_i32" => word_set!(|a, _| (a as i32).wrapping_abs() as u32),
        "s_sext_i32_i8" => word!(|a, _| a as i8 as u32),
        "s_sext_i32_i16" => word!(|a, _| a as i16 as u32),
        "s_movk_i32" => scalar!(|wave, i| wave.put_s32(i.to, i.offset as u32)),
        "s_cmovk_i32" => scalar!(|wave, i| {
            if wave.scc {
                wave.put_s32(i.to, i.offset as u32);
            }
        }),
        "s_addk_i32" | "s_addk_co_i32" => scalar!(|wave, i| {
            let (sum, over) = (wave.s32(i.source[0]) as i32).overflowing_add(i.offset);
            wave.put_s32(i.to, sum as u32);
            wave.scc = over;
        }),
        "s_mulk_i32" => scalar!(|wave, i| {
            let product = wave.s32(i.source[0]).wrapping_mul(i.offset as u32);
            wave.put_s32(i.to, product);
        }),
        _ => return None,
    })
}

fn shift_add(a: u32, b: u32, by: u32) -> (u32, bool) {
    let sum = (u64::from(a) << by) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}

fn logic<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "s_mov_b32" => word!(|a, _| a),
        "s_mov_b64" => double!(|a, _| a),
        "s_and_b32" => word_set!(|a, b| a & b),
        "s_or_b32" => word_set!(|a, b| a | b),
        "s_xor_b32" => word_set!(|a, b| a ^ b),
        "s_nand_b32" => word_set!(|a, b| !(a & b)),
        "s_nor_b32" => word_set!(|a, b| !(a | b)),
        "s_xnor_b32" => word_set!(|a, b| !(a ^ b)),
        "s_and_not1_b32" | "s_andn2_b32" => word_set!(|a, b| a & !b),
        "s_or_not1_b32" | "s_orn2_b32" => word_set!(|a, b| a | !b),
        "s_not_b32" => word_set!(|a, _| !a),
        "s_and_b64" => double_set!(|a, b| a & b),
        "s_or_b64" => double_set!(|a, b| a | b),
        "s_xor_b64" => double_set!(|a, b| a ^ b),
        "s_nand_b64" => double_set!(|a, b| !(a & b)),
        "s_nor_b64" => double_set!(|a, b| !(a | b)),
        "s_xnor_b64" => double_set!(|a, b| !(a ^ b)),
        "s_and_not1_b64" | "s_andn2_b64" => double_set!(|a, b| a & !b),
        "s_or_not1_b64" | "s_orn2_b64" => double_set!(|a, b| a | !b),
        "s_not_b64" => double_set!(|a, _| !a),
        "s_lshl_b32" => word_set!(|a, b| a << (b & 31)),
        "s_lshr_b32" => word_set!(|a, b| a >> (b & 31)),
        "s_ashr_i32" => word_set!(|a, b| (a as i32 >> (b & 31)) as u32),
        "s_lshl_b64" => double_by_word!(|a, b| a << (b & 63)),
        "s_lshr_b64" => double_by_word!(|a, b| a >> (b & 63)),
        "s_ashr_i64" => double_by_word!(|a, b| (a as i64 >> (b & 63)) as u64),
        "s_bfm_b32" => word!(|a, b| ((1u32 << (a & 31)) - 1) << (b & 31)),
        "s_bfm_b64" => scalar!(|wave, i| {
            let (count, low) = (wave.s32(i.source[0]) & 63, wave.s32(i.source[1]) & 63);
            wave.put_s64(i.to, ((1u64 << count) - 1) << low);
        }),
        "s_bfe_u32" => word_set!(|a, b| field(u64::from(a) >> (b & 31), b) as u32),
        "s_bfe_i32" => word_set!(|a, b| field_signed(i64::from(a as i32) >> (b & 31), b, 32) as u32),
        "s_bfe_u64" => double_by_word!(|a, b| field(a >> (b & 63), b)),
        "s_bfe_i64" => double_by_word!(|a, b| field_signed(a as i64 >> (b & 63), b, 64) as u64),
        "s_pack_ll_b32_b16" => word!(|a, b| a & 0xffff | b << 16),
        "s_pack_lh_b32_b16" => word!(|a, b| a & 0xffff | b & 0xffff_0000),
        "s_pack_hh_b32_b16" => word!(|a, b| a >> 16 | b & 0xffff_0000),
        "s_pack_hl_b32_b16" => word!(|a, b| a >> 16 | b << 16),
        "s_ff0_i32_b32" => word!(|a, _| if a == u32::MAX { a } else { a.trailing_ones() }),
        "s_ff0_i32_b64" => word_of_double!(|a| if a == u64::MAX { u32::MAX } else { a.trailing_ones() }),
        "s_brev_b32" => word!(|a, _| a.reverse_bits()),
        "s_brev_b64" => double!(|a, _| a.reverse_bits()),
        "s_clz_i32_u32" | "s_flbit_i32_b32" => word!(|a, _| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        "s_ctz_i32_b32" | "s_ff1_i32_b32" => word!(|a, _| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
        "s_clz_i32_u64" | "s_flbit_i32_b64" => word_of_double!(|a| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        "s_ctz_i32_b64" | "s_ff1_i32_b64" => word_of_double!(|a| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
        "s_cls_i32" | "s_flbit_i32" => word!(|a, _| {
            let other = a ^ (a as i32 >> 31) as u32;
            if other == 0 { u32::MAX } else { other.leading_zeros() }
        }),
        "s_cls_i32_i64" | "s_flbit_i32_i64" => word_of_double!(|a| {
            let other = a ^ (a as i64 >> 63) as u64;
            if other == 0 { u32::MAX } else { other.leading_zeros() }
        }),
        "s_bcnt0_i32_b32" => word_set!(|a, _| a.count_zeros()),
        "s_bcnt1_i32_b32" => word_set!(|a, _| a.count_ones()),
        "s_bcnt0_i32_b64" => scalar!(|wave, i| {
            let count = wave.s64(i.source[0]).count_zeros();
            wave.put_s32(i.to, count);
            wave.scc = count != 0;
        }),
        "s_bcnt1_i32_b64" => scalar!(|wave, i| {
            let count = wave.s64(i.source[0]).count_ones();
            wave.put_s32(i.to, count);
            wave.scc = count != 0;
        }),
        "s_bitset0_b32" => scalar!(|wave, i| {
            let value = wave.s32(i.to) & !(1 << (wave.s32(i.source[0]) & 31));
            wave.put_s32(i.to, value);
        }),
        "s_bitset1_b32" => scalar!(|wave, i| {
            let value = wave.s32(i.to) | 1 << (wave.s32(i.source[0]) & 31);
            wave.put_s32(i.to, value);
        }),
        "s_bitset0_b64" => scalar!(|wave, i| {
            let value = wave.s64(i.to) & !(1 << (wave.s32(i.source[0]) & 63));
            wave.put_s64(i.to, value);
        }),
        "s_bitset1_b64" => scalar!(|wave, i| {
            let value = wave.s64(i.to) | 1 << (wave.s32(i.source[0]) & 63);
            wave.put_s64(i.to, value);
        }),
        "s_bitreplicate_b64_b32" => scalar!(|wave, i| {
            let word = wave.s32(i.source[0]);
            let value = (0..64).fold(0, |value, bit| value | u64::from(word >> (bit / 2) & 1) << bit);
            wave.put_s64(i.to, value);
        }),
        // A quad is on if any of its lanes is.
        "s_wqm_b32" => word_set!(|a, _| whole_quads(a.into()) as u32),
        "s_wqm_b64" => double_set!(|a, _| whole_quads(a)),
        "s_quadmask_b32" => word_set!(|a, _| quad_bits(a.into()) as u32),
        "s_quadmask_b64" => double_set!(|a, _| quad_bits(a)),
        _ => return None,
    })
}

/// A field of as many bits as bits 16 to 22 of the second source say.
fn field(value: u64, how: u32) -> u64 {
    let count = how >> 16 & 127;
    if count >= 64 { value } else { value & ((1 << count) - 1) }
}

fn field_signed(value: i64, how: u32, bits: u32) -> i64 {
    let count = (how >> 16 & 127).min(bits);
    match count {
        0 => 0,
        _ => (value << (64 - count)) >> (64 - count),
    }
}

/// A bit of each quad that has a lane.
fn quad_bits(lanes: u64) -> u64 {
    let any = whole_quads(lanes);
    (0..16).fold(0, |bits, quad| bits | (any >> (4 * quad) & 1) << quad)
}

fn whole_quads(lanes: u64) -> u64 {
    let any = lanes | lanes >> 1 | lanes >> 2 | lanes >> 3;
    (any & 0x1111_1111_1111_1111) * 15
}

fn conditions<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "s_cselect_b32" => word_and_bit!(|a, b, bit| (if bit { a } else { b }, bit)),
        "s_cselect_b64" => scalar!(|wave, i| {
            let value = wave.s64(i.source[usize::from(!wave.scc)]);
            wave.put_s64(i.to, value);
        }),
        "s_cmov_b32" => scalar!(|wave, i| {
            if wave.scc {
                let value = wave.s32(i.source[0]);
                wave.put_s32(i.to, value);
            }
        }),
        "s_cmov_b64" => scalar!(|wave, i| {
            if wave.scc {
                let value = wave.s64(i.source[0]);
                wave.put_s64(i.to, value);
            }
        }),
        "s_cmp_eq_u32" | "s_cmp_eq_i32" => condition!(|a, b| a == b),
        "s_cmp_lg_u32" | "s_cmp_lg_i32" => condition!(|a, b| a != b),
        "s_cmp_gt_u32" => condition!(|a, b| a > b),
        "s_cmp_ge_u32" => condition!(|a, b| a >= b),
        "s_cmp_lt_u32" => condition!(|a, b| a < b),
        "s_cmp_le_u32" => condition!(|a, b| a <= b),
        "s_cmp_gt_i32" => condition!(|a, b| a as i32 > b as i32),
        "s_cmp_ge_i32" => condition!(|a, b| a as i32 >= b as i32),
        "s_cmp_lt_i32" => condition!(|a, b| (a as i32) < b as i32),
        "s_cmp_le_i32" => condition!(|a, b| a as i32 <= b as i32),
        "s_cmp_eq_u64" => scalar!(|wave, i| wave.scc = wave.s64(i.source[0]) == wave.s64(i.source[1])),
        "s_cmp_lg_u64" => scalar!(|wave, i| wave.scc = wave.s64(i.source[0]) != wave.s64(i.source[1])),
        "s_bitcmp0_b32" => condition!(|a, b| a >> (b & 31) & 1 == 0),
        "s_bitcmp1_b32" => condition!(|a, b| a >> (b & 31) & 1 != 0),
        "s_bitcmp0_b64" => scalar!(|wave, i| wave.scc = wave.s64(i.source[0]) >> (wave.s32(i.source[1]) & 63) & 1 == 0),
        "s_bitcmp1_b64" => scalar!(|wave, i| wave.scc = wave.s64(i.source[0]) >> (wave.s32(i.source[1]) & 63) & 1 != 0),
        "s_cmpk_eq_i32" => condition_of_number!(|a, b| a as i32 == b),
        "s_cmpk_lg_i32" => condition_of_number!(|a, b| a as i32 != b),
        "s_cmpk_gt_i32" => condition_of_number!(|a, b| a as i32 > b),
        "s_cmpk_ge_i32" => condition_of_number!(|a, b| a as i32 >= b),
        "s_cmpk_lt_i32" => condition_of_number!(|a, b| (a as i32) < b),
        "s_cmpk_le_i32" => condition_of_number!(|a, b| a as i32 <= b),
        "s_cmpk_eq_u32" => condition_of_number!(|a, b| a == u32::from(b as u16)),
        "s_cmpk_lg_u32" => condition_of_number!(|a, b| a != u32::from(b as u16)),
        "s_cmpk_gt_u32" => condition_of_number!(|a, b| a > u32::from(b as u16)),
        "s_cmpk_ge_u32" => condition_of_number!(|a, b| a >= u32::from(b as u16)),
        "s_cmpk_lt_u32" => condition_of_number!(|a, b| a < u32::from(b as u16)),
        "s_cmpk_le_u32" => condition_of_number!(|a, b| a <= u32::from(b as u16)),
        _ => return None,
    })
}

fn masks<const N: usize>(name: &str) -> Option<Handler<N>> {
    let operation = name.strip_suffix("_b32").or_else(|| name.strip_suffix("_b64"))?;
    Some(match operation {
        "s_and_saveexec" => save_exec!(name, |a, exec| a & exec),
        "s_or_saveexec" => save_exec!(name, |a, exec| a | exec),
        "s_xor_saveexec" => save_exec!(name, |a, exec| a ^ exec),
        "s_nand_saveexec" => save_exec!(name, |a, exec| !(a & exec)),
        "s_nor_saveexec" => save_exec!(name, |a, exec| !(a | exec)),
        "s_xnor_saveexec" => save_exec!(name, |a, exec| !(a ^ exec)),
        "s_and_not1_saveexec" | "s_andn2_saveexec" => save_exec!(name, |a, exec| a & !exec),
        "s_and_not0_saveexec" | "s_andn1_saveexec" => save_exec!(name, |a, exec| !a & exec),
        "s_or_not1_saveexec" | "s_orn2_saveexec" => save_exec!(name, |a, exec| a | !exec),
        "s_or_not0_saveexec" | "s_orn1_saveexec" => save_exec!(name, |a, exec| !a | exec),
        "s_and_not1_wrexec" | "s_andn2_wrexec" => write_exec!(name, |a, exec| a & !exec),
        "s_and_not0_wrexec" | "s_andn1_wrexec" => write_exec!(name, |a, exec| !a & exec),
        _ => return None,
    })
}
