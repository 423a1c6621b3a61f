//! Values that go from lanes to scalar registers, back, and to other lanes.

use super::wave::Wave;
use super::{Group, Handler, Outcome};
use crate::isa::instruction::{Instruction, Operand};

/// The handler of an exchange.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "v_readfirstlane_b32" => read_first_lane,
        "v_readlane_b32" => read_lane,
        "v_writelane_b32" => write_lane,
        "v_swap_b32" => swap,
        "v_swap_b16" => swap_halves,
        "v_permlane16_b32" => permute_rows::<N, false>,
        "v_permlanex16_b32" => permute_rows::<N, true>,
        "v_permlane16_var_b32" => permute_rows_by_lane::<N, false>,
        "v_permlanex16_var_b32" => permute_rows_by_lane::<N, true>,
        "v_permlane64_b32" => exchange_halves,
        _ => return None,
    })
}

/// A lane's value, or the scalar.
fn of_lane<const N: usize>(wave: &Wave<N>, source: Operand, lane: usize) -> u32 {
    match source {
        Operand::Vector(register) => wave.vectors[usize::from(register)][lane % N],
        other => wave.s32(other),
    }
}

fn read_first_lane<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let exec = wave.exec();
    let lane = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
    let value = of_lane(wave, instruction.source[0], lane);
    wave.put_s32(instruction.to, value);
    Ok(())
}

fn read_lane<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let lane = wave.s32(instruction.source[1]) as usize;
    let value = of_lane(wave, instruction.source[0], lane);
    wave.put_s32(instruction.to, value);
    Ok(())
}

fn write_lane<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let (value, lane) = (wave.s32(instruction.source[0]), wave.s32(instruction.source[1]) as usize);
    if let Operand::Vector(register) = instruction.to {
        wave.vectors[usize::from(register)][lane % N] = value;
    }
    Ok(())
}

fn swap<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let (a, b) = (wave.words(instruction.to), wave.words(instruction.source[0]));
    wave.put(instruction.to, &b);
    wave.put(instruction.source[0], &a);
    Ok(())
}

fn swap_halves<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let [high, other_high] = [3, 0].map(|bit| instruction.high >> bit & 1 != 0);
    let (to, from) = (instruction.to, instruction.source[0]);
    let (a, b) = (wave.halves_of(to, high), wave.halves_of(from, other_high));
    wave.put_half(to, high, &b);
    wave.put_half(from, other_high, &a);
    Ok(())
}

/// Lanes of a row of 16 by the numbers in two scalars: of the own row, or of its neighbour.
fn permute_rows<const N: usize, const OTHER: bool>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    _: &mut Group,
) -> Outcome {
    let source = wave.words(instruction.source[0]);
    let (low, high) = (wave.s32(instruction.source[1]), wave.s32(instruction.source[2]));
    let numbers = u64::from(low) | u64::from(high) << 32;
    let (exec, old) = (wave.exec(), wave.words(instruction.to));
    // Where other instructions choose halves stand the bits that let lanes take part that are off,
    // and that give zero for them.
    let (inactive, zero) = (instruction.high & 1 != 0, instruction.high & 2 != 0);
    let row = std::array::from_fn(|lane| {
        let row = (lane & !15) ^ if OTHER { 16 } else { 0 };
        let from = row + (numbers >> (4 * (lane & 15)) & 15) as usize;
        match () {
            () if inactive || exec >> from & 1 != 0 => source[from],
            () if zero => 0,
            () => old[lane],
        }
    });
    wave.put(instruction.to, &row);
    Ok(())
}

/// The same by numbers of the lanes' own.
fn permute_rows_by_lane<const N: usize, const OTHER: bool>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    _: &mut Group,
) -> Outcome {
    let (source, numbers) = (wave.words(instruction.source[0]), wave.words(instruction.source[1]));
    let (exec, old) = (wave.exec(), wave.words(instruction.to));
    let (inactive, zero) = (instruction.high & 1 != 0, instruction.high & 2 != 0);
    let row = std::array::from_fn(|lane| {
        let from = ((lane & !15) ^ if OTHER { 16 } else { 0 }) + (numbers[lane] & 15) as usize;
        match () {
            () if inactive || exec >> from & 1 != 0 => source[from],
            () if zero => 0,
            () => old[lane],
        }
    });
    wave.put(instruction.to, &row);
    Ok(())
}

fn exchange_halves<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let source = wave.words(instruction.source[0]);
    let row = std::array::from_fn(|lane| if N == 64 { source[lane ^ 32] } else { source[lane] });
    wave.put(instruction.to, &row);
    Ok(())
}
