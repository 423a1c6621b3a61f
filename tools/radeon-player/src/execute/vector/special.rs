//! Approximate functions, and instructions with masks of lanes: carries and choices.

use std::sync::atomic::{AtomicI8, Ordering::Relaxed};

use super::lane::{Value, write_long};
use crate::execute::{Group, Handler, Outcome, wave::Wave};
use crate::isa::instruction::{Instruction, Operand};
use crate::report::Side;

/// 1 where approximate results lie above the exact ones, -1 where below.
static SIDE: AtomicI8 = AtomicI8::new(0);

/// Puts approximate results on a side of the exact ones, for the whole process.
pub fn set_side(side: Side) {
    let value = match side {
        Side::Nearest => 0,
        Side::Up => 1,
        Side::Down => -1,
    };
    SIDE.store(value, Relaxed);
}

/// A result that may be off by one unit in the last place: the nearest value, or that on the other
/// side of the exact one.
#[inline(always)]
pub fn near(exact: f64) -> f32 {
    let nearest = exact as f32;
    match SIDE.load(Relaxed) {
        1 if f64::from(nearest) < exact => nearest.next_up(),
        -1 if f64::from(nearest) > exact => nearest.next_down(),
        _ => nearest,
    }
}

/// A source as these take it: zero for what is subnormal, whatever the mode says. Compilers scale
/// such numbers before.
#[inline(always)]
pub fn given(value: f32) -> f64 {
    f64::from(if value.is_subnormal() { 0f32.copysign(value) } else { value })
}

super::operations! {
    "v_rcp_f32" | "v_rcp_iflag_f32"(a: f32) -> f32 { near(1.0 / given(a)) }
    "v_sqrt_f32"(a: f32) -> f32 { near(given(a).sqrt()) }
    "v_rsq_f32"(a: f32) -> f32 { near(1.0 / given(a).sqrt()) }
    "v_exp_f32"(a: f32) -> f32 { near(f64::from(a).exp2()) }
    "v_log_f32"(a: f32) -> f32 { near(given(a).log2()) }
    "v_sin_f32"(a: f32) -> f32 { near((f64::from(a) * std::f64::consts::TAU).sin()) }
    "v_cos_f32"(a: f32) -> f32 { near((f64::from(a) * std::f64::consts::TAU).cos()) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Add,
    Subtract,
    Reversed,
}

/// A sum or difference with carries out, and in where `source[2]` is a mask.
#[inline(always)]
fn carry<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, sum: Sum, carry_in: bool) -> Outcome {
    let (a, b) = (wave.words(instruction.source[0]), wave.words(instruction.source[1]));
    let mask = if carry_in { wave.lanes(instruction.source[2]) } else { 0 };
    let (mut out, mut carries) = ([0; N], 0);
    for lane in 0..N {
        let more = mask >> lane & 1;
        let (a, b) = (u64::from(a[lane]), u64::from(b[lane]));
        let result = match sum {
            Sum::Add => a + b + more,
            Sum::Subtract => a.wrapping_sub(b).wrapping_sub(more),
            Sum::Reversed => b.wrapping_sub(a).wrapping_sub(more),
        };
        out[lane] = result as u32;
        carries |= (result >> 32 & 1) << lane;
    }
    wave.put(instruction.to, &out);
    wave.put_lanes(instruction.also, carries & wave.exec());
    Ok(())
}

fn add<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    carry(w, i, Sum::Add, false)
}
fn add_with<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    carry(w, i, Sum::Add, true)
}
fn subtract<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    carry(w, i, Sum::Subtract, false)
}
fn subtract_with<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    carry(w, i, Sum::Subtract, true)
}
fn reversed<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    carry(w, i, Sum::Reversed, false)
}
fn reversed_with<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    carry(w, i, Sum::Reversed, true)
}

/// A product of words added to 64 bits, with a mask of overflows.
#[inline(always)]
fn wide_product<const N: usize>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    each: impl Fn(u32, u32, u64) -> (u64, bool),
) -> Outcome {
    let (a, b) = (wave.words(instruction.source[0]), wave.words(instruction.source[1]));
    let c = wave.doubles(instruction.source[2]);
    let (mut out, mut over) = ([[0; N]; 2], 0);
    for lane in 0..N {
        let (value, beyond) = each(a[lane], b[lane], c[lane]);
        value.put(&mut out, lane);
        over |= u64::from(beyond) << lane;
    }
    write_long(wave, instruction.to, &out);
    wave.put_lanes(instruction.also, over & wave.exec());
    Ok(())
}

fn unsigned_product<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    wide_product(w, i, |a, b, c| (u64::from(a) * u64::from(b)).overflowing_add(c))
}

fn signed_product<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    wide_product(w, i, |a, b, c| {
        let (sum, beyond) = (i64::from(a as i32) * i64::from(b as i32)).overflowing_add(c as i64);
        (sum as u64, beyond)
    })
}

/// The second source where the mask of the third has a bit, otherwise the first.
#[inline(always)]
fn select<T: Value, const N: usize>(wave: &mut Wave<N>, instruction: &Instruction) -> Row<N> {
    let mask = wave.lanes(match instruction.source[2] {
        Operand::None => Operand::Scalar(crate::execute::wave::VCC),
        given => given,
    });
    let Some(mut rooms) = wave.rooms.take() else { unreachable!("each instruction gives them back") };
    let [first, second, ..] = &mut *rooms;
    let a = T::read(wave, instruction, 0, first)[0];
    let b = T::read(wave, instruction, 1, second)[0];
    let mut out = [0; N];
    // Masks of 32 lanes have shifts of 32 bits, of which the processor does more at once.
    for start in (0..N).step_by(32) {
        let half = (mask >> start) as u32;
        for k in 0..32 {
            let lane = start + k;
            let chosen = 0u32.wrapping_sub(half >> k & 1);
            out[lane] = a[lane] & !chosen | b[lane] & chosen;
        }
    }
    wave.rooms = Some(rooms);
    out
}

use crate::execute::wave::Row;

/// Words whose signs may change; a choice makes no zero of a subnormal.
fn select_words<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let out = if (instruction.negate | instruction.absolute) & 3 == 0 {
        select::<u32, N>(wave, instruction)
    } else {
        let mode = std::mem::replace(&mut wave.mode, 0xf0);
        let out = select::<f32, N>(wave, instruction);
        wave.mode = mode;
        out
    };
    wave.put(instruction.to, &out);
    Ok(())
}

fn select_halves<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let out = select::<u16, N>(wave, instruction);
    u16::write(wave, instruction, &mut [out, [0; N]]);
    Ok(())
}

/// How many bits of a mask are those of lanes below, and more.
#[inline(always)]
fn count_below<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, first: usize) -> Outcome {
    let (a, mut b) = (wave.words(instruction.source[0]), wave.words(instruction.source[1]));
    for lane in 0..N {
        let below = (1u64 << lane.saturating_sub(first).min(32)) - 1;
        b[lane] = b[lane].wrapping_add((a[lane] & below as u32).count_ones());
    }
    wave.put(instruction.to, &b);
    Ok(())
}

fn count_low<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    count_below(w, i, 0)
}
fn count_high<const N: usize>(w: &mut Wave<N>, i: &Instruction, _: &mut Group) -> Outcome {
    count_below(w, i, 32)
}

pub(super) fn find_masked<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "v_add_co_u32" => add,
        "v_add_co_ci_u32" => add_with,
        "v_sub_co_u32" => subtract,
        "v_sub_co_ci_u32" => subtract_with,
        "v_subrev_co_u32" => reversed,
        "v_subrev_co_ci_u32" => reversed_with,
        "v_mad_u64_u32" => unsigned_product,
        "v_mad_i64_i32" => signed_product,
        "v_cndmask_b32" => select_words,
        "v_cndmask_b16" => select_halves,
        "v_mbcnt_lo_u32_b32" => count_low,
        "v_mbcnt_hi_u32_b32" => count_high,
        _ => return None,
    })
}
