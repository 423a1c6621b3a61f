//! What a wave asks the hardware: registers of its state, clocks, messages that are answered.

use super::wave::Wave;
use super::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::Generation;
use crate::isa::instruction::Instruction;

/// The handler of an instruction that asks.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "s_getreg_b32" => get,
        "s_setreg_b32" | "s_setreg_imm32_b32" => set,
        "s_memtime" => |w, i, _| {
            w.put_s64(i.to, cycles());
            Ok(())
        },
        "s_memrealtime" => |w, i, _| {
            w.put_s64(i.to, ticks());
            Ok(())
        },
        "s_get_waveid_in_workgroup" => |w, i, _| {
            w.put_s32(i.to, w.index);
            Ok(())
        },
        "s_sendmsg_rtn_b32" | "s_sendmsg_rtn_b64" => message,
        _ => return None,
    })
}

/// The clock of timestamps: 100 MHz, as AMD's cards have it.
#[must_use]
pub fn ticks() -> u64 {
    crate::shim::now() as u64 / 10
}

/// Cycles of a GPU of 2 GHz.
fn cycles() -> u64 {
    crate::shim::now() as u64 * 2
}

// Numbers of the registers.
const MODE: u32 = 1;
const STATUS: u32 = 2;
const FLAT_SCRATCH: [u32; 2] = [20, 21];
const CYCLES: u32 = 29;
const CYCLES_HIGH: u32 = 30;

/// Which register, from which bit on, and a mask of as many bits.
fn field(instruction: &Instruction) -> (u32, u32, u32) {
    let what = instruction.offset as u32;
    let count = (what >> 11 & 31) + 1;
    (what & 63, what >> 6 & 31, (1u64 << count).wrapping_sub(1) as u32)
}

fn unknown(register: u32) -> Box<Trap> {
    Trap::new(FaultKind::Other(format!("hardware register {register} is not modelled")))
}

fn get<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
    let (register, first, mask) = field(instruction);
    let generation = group.dispatch.generation;
    let value = match register {
        MODE => wave.mode,
        // SCC, and in bits 9 and 10 whether exec and vcc are zero.
        STATUS => {
            let vcc = wave.lanes(crate::isa::instruction::Operand::Scalar(super::wave::VCC));
            u32::from(wave.scc) | u32::from(wave.exec() == 0) << 9 | u32::from(vcc == 0) << 10
        }
        // 20 bits before RDNA4.
        CYCLES if generation < Generation::Rdna4 => cycles() as u32 & 0xf_ffff,
        CYCLES => cycles() as u32,
        CYCLES_HIGH if generation == Generation::Rdna4 => (cycles() >> 32) as u32,
        other => return Err(unknown(other)),
    };
    wave.put_s32(instruction.to, value >> first & mask);
    Ok(())
}

fn set<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
    let (register, first, mask) = field(instruction);
    // Where scratch memory is: here it is the workgroup's own, wherever the driver has put it.
    // Later generations get it from the hardware.
    if FLAT_SCRATCH.contains(&register) && group.dispatch.generation < Generation::Rdna3 {
        return Ok(());
    }
    if register != MODE {
        return Err(unknown(register));
    }
    let mask = mask << first;
    let mode = wave.mode & !mask | wave.s32(instruction.source[0]) << first & mask;
    // Clamping of what is no number, and what becomes of signalling ones, are as they are.
    if (mode ^ wave.mode) & 0x300 != 0 {
        return Err(Trap::new(FaultKind::Other("DX10_CLAMP and IEEE of MODE are not modelled".to_owned())));
    }
    wave.mode = mode;
    Ok(())
}

/// A message and its answer. The numbers start at 128, where operands have whole numbers from 0.
fn message<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    const REAL_TIME: u32 = 131;
    match wave.s32(instruction.source[0]).wrapping_add(128) {
        REAL_TIME if instruction.name.ends_with("b64") => wave.put_s64(instruction.to, ticks()),
        REAL_TIME => wave.put_s32(instruction.to, ticks() as u32),
        other => return Err(Trap::new(FaultKind::Other(format!("message {other} is not answered")))),
    }
    Ok(())
}
