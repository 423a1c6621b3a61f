//! Branches, barriers, waits and the end.

use super::wave::{VCC, Wave};
use super::{Group, Handler, Outcome, Trap};
use crate::fault::FaultKind;
use crate::isa::instruction::{Instruction, Operand};

macro_rules! control {
    (|$wave:ident, $instruction:ident| $body:expr) => {{
        #[allow(clippy::no_effect)] // Of what does nothing.
        fn handler<const N: usize>($wave: &mut Wave<N>, $instruction: &Instruction, _: &mut Group) -> Outcome {
            $body;
            Ok(())
        }
        handler::<N>
    }};
}

macro_rules! branch {
    (|$wave:ident| $taken:expr) => {{
        control!(|$wave, i| {
            if $taken {
                $wave.next = i.target as usize;
            }
        })
    }};
}

/// What changes nothing that is modelled: waits, hints, caches.
const NOTHING: [&str; 52] = [
    "s_nop",
    "s_sleep",
    "s_clause",
    "s_delay_alu",
    "s_waitcnt",
    "s_waitcnt_depctr",
    "s_wait_idle",
    "s_wait_event",
    "s_waitcnt_vscnt",
    "s_waitcnt_vmcnt",
    "s_waitcnt_lgkmcnt",
    "s_waitcnt_expcnt",
    "s_wait_loadcnt",
    "s_wait_storecnt",
    "s_wait_samplecnt",
    "s_wait_bvhcnt",
    "s_wait_expcnt",
    "s_wait_dscnt",
    "s_wait_kmcnt",
    "s_wait_loadcnt_dscnt",
    "s_wait_storecnt_dscnt",
    "s_wait_alu",
    "s_set_inst_prefetch_distance",
    "s_inst_prefetch",
    "s_setprio",
    "s_sendmsg",
    "s_icache_inv",
    "s_dcache_inv",
    "s_gl1_inv",
    "s_code_end",
    "s_ttracedata_imm",
    "s_version",
    "buffer_gl0_inv",
    "buffer_gl1_inv",
    "global_inv",
    "global_wb",
    "global_wbinv",
    "v_nop",
    "v_clrexcp",
    "v_pipeflush",
    "s_sleep_var",
    "s_ttracedata",
    "s_wakeup",
    "s_incperflevel",
    "s_decperflevel",
    "s_setkill",
    "s_singleuse_vdst",
    "s_dcache_wb",
    // Branches that a debugger has taken.
    "s_cbranch_cdbgsys",
    "s_cbranch_cdbguser",
    "s_cbranch_cdbgsys_or_user",
    "s_cbranch_cdbgsys_and_user",
];

/// The handler of an instruction that steers the wave.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    if NOTHING.contains(&name) || name.starts_with("s_prefetch") || name == "s_buffer_prefetch_data" {
        return Some(control!(|_wave, _i| ()));
    }
    Some(match name {
        "s_endpgm" => control!(|wave, _i| (wave.done, wave.waiting) = (true, true)),
        "s_barrier" => control!(|wave, _i| wave.waiting = true),
        "s_barrier_wait" => barrier_wait,
        "s_barrier_signal" => barrier_signal::<N, false>,
        "s_barrier_signal_isfirst" => barrier_signal::<N, true>,
        "s_branch" => branch!(|wave| true),
        "s_cbranch_scc0" => branch!(|wave| !wave.scc),
        "s_cbranch_scc1" => branch!(|wave| wave.scc),
        "s_cbranch_vccz" => branch!(|wave| wave.lanes(Operand::Scalar(VCC)) == 0),
        "s_cbranch_vccnz" => branch!(|wave| wave.lanes(Operand::Scalar(VCC)) != 0),
        "s_cbranch_execz" => branch!(|wave| wave.exec() == 0),
        "s_cbranch_execnz" => branch!(|wave| wave.exec() != 0),
        // Two bits for f32, two for f16 and f64.
        "s_denorm_mode" => control!(|wave, i| wave.mode = wave.mode & !0xf0 | (i.offset as u32 & 15) << 4),
        "s_round_mode" => control!(|wave, i| wave.mode = wave.mode & !0xf | i.offset as u32 & 15),
        "s_getpc_b64" => program_counter::<N>,
        "s_setpc_b64" => control!(|wave, i| wave.jump_to(wave.s64(i.source[0]))),
        "s_swappc_b64" => swap_program_counter,
        "s_call_b64" => call,
        _ => return None,
    })
}

/// The barrier of the workgroup is number -1; others are of traps, or of GPUs that come later.
fn is_of_workgroup(number: i32) -> Outcome {
    match number {
        -1 => Ok(()),
        other => Err(Trap::new(FaultKind::Other(format!("barrier {other}, which is not the workgroup's")))),
    }
}

/// The wave stands at the wait that follows.
fn barrier_signal<const N: usize, const FIRST: bool>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    group: &mut Group,
) -> Outcome {
    is_of_workgroup(wave.s32(instruction.source[0]) as i32)?;
    let first = group.shared.signal();
    if FIRST {
        wave.scc = first;
    }
    Ok(())
}

fn barrier_wait<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    is_of_workgroup(instruction.offset)?;
    wave.waiting = true;
    Ok(())
}

fn swap_program_counter<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
    let target = wave.s64(instruction.source[0]);
    program_counter(wave, instruction, group)?;
    wave.jump_to(target);
    Ok(())
}

fn call<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
    program_counter(wave, instruction, group)?;
    wave.next = instruction.target as usize;
    Ok(())
}

fn program_counter<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
    let next = group.dispatch.code + u64::from(instruction.at) + u64::from(instruction.size);
    wave.put_s64(instruction.to, next);
    Ok(())
}
