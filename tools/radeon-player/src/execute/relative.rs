//! Moves between registers whose numbers are counted from m0.

use super::wave::{M0, Wave};
use super::{Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

/// The handler of such a move.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "v_movrels_b32" => |w, i, _| vector(w, i, [whole(w), 0], false),
        "v_movreld_b32" => |w, i, _| vector(w, i, [0, whole(w)], false),
        "v_movrelsd_b32" => |w, i, _| vector(w, i, [whole(w); 2], false),
        "v_movrelsd_2_b32" => |w, i, _| vector(w, i, two(w), false),
        "v_swaprel_b32" => |w, i, _| vector(w, i, two(w), true),
        "s_movrels_b32" => |w, i, _| scalar(w, i, [whole(w), 0], false),
        "s_movreld_b32" => |w, i, _| scalar(w, i, [0, whole(w)], false),
        "s_movrelsd_2_b32" => |w, i, _| scalar(w, i, two(w), false),
        "s_movrels_b64" => |w, i, _| scalar(w, i, [whole(w), 0], true),
        "s_movreld_b64" => |w, i, _| scalar(w, i, [0, whole(w)], true),
        _ => return None,
    })
}

fn whole<const N: usize>(wave: &Wave<N>) -> u32 {
    wave.scalars[usize::from(M0)]
}

/// Two distances, of the source and of the result.
fn two<const N: usize>(wave: &Wave<N>) -> [u32; 2] {
    [whole(wave) & 0x3ff, whole(wave) >> 16 & 0x3ff]
}

/// A register so far from another; none beyond the last.
fn moved(operand: Operand, by: u32) -> Result<Operand, Box<Trap>> {
    let beyond = |kind: char, at: u64| {
        let text = format!("{kind}{at}, which m0 leads to, is no register");
        Trap::new(FaultKind::Other(text))
    };
    match operand {
        Operand::Vector(register) if by > 0 => {
            let at = u64::from(register) + u64::from(by);
            if at < 256 { Ok(Operand::Vector(at as u16)) } else { Err(beyond('v', at)) }
        }
        Operand::Scalar(register) if by > 0 => {
            let at = u64::from(register) + u64::from(by);
            if at < 106 { Ok(Operand::Scalar(at as u16)) } else { Err(beyond('s', at)) }
        }
        other => Ok(other),
    }
}

fn vector<const N: usize>(wave: &mut Wave<N>, it: &Instruction, by: [u32; 2], swap: bool) -> Outcome {
    let (from, to) = (moved(it.source[0], by[0])?, moved(it.to, by[1])?);
    let (value, old) = (wave.words(from), wave.words(to));
    wave.put(to, &value);
    if swap {
        wave.put(from, &old);
    }
    Ok(())
}

fn scalar<const N: usize>(wave: &mut Wave<N>, it: &Instruction, by: [u32; 2], wide: bool) -> Outcome {
    let (from, to) = (moved(it.source[0], by[0])?, moved(it.to, by[1])?);
    if wide {
        wave.put_s64(to, wave.s64(from));
    } else {
        wave.put_s32(to, wave.s32(from));
    }
    Ok(())
}
