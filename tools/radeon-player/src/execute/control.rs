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
const NOTHING: [&str; 38] = [
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
];

/// The handler of an instruction that steers the wave.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    if NOTHING.contains(&name) || name.starts_with("s_prefetch") {
        return Some(control!(|_wave, _i| ()));
    }
    Some(match name {
        "s_endpgm" => control!(|wave, _i| (wave.done, wave.waiting) = (true, true)),
        "s_barrier" | "s_barrier_wait" => control!(|wave, _i| wave.waiting = true),
        // The wave stands at the wait that follows.
        "s_barrier_signal" => control!(|_wave, _i| ()),
        "s_branch" => branch!(|wave| true),
        "s_cbranch_scc0" => branch!(|wave| !wave.scc),
        "s_cbranch_scc1" => branch!(|wave| wave.scc),
        "s_cbranch_vccz" => branch!(|wave| wave.lanes(Operand::Scalar(VCC)) == 0),
        "s_cbranch_vccnz" => branch!(|wave| wave.lanes(Operand::Scalar(VCC)) != 0),
        "s_cbranch_execz" => branch!(|wave| wave.exec() == 0),
        "s_cbranch_execnz" => branch!(|wave| wave.exec() != 0),
        // Two bits for f32, two for f16 and f64.
        "s_denorm_mode" => control!(|wave, i| wave.mode = wave.mode & 0x0f | (i.offset as u32 & 15) << 4),
        "s_round_mode" => round_mode::<N>,
        "s_getpc_b64" => program_counter::<N>,
        _ => return None,
    })
}

/// Only rounding to the nearest is modelled.
fn round_mode<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    if instruction.offset & 15 != 0 {
        return Err(Trap::new(FaultKind::Other("rounding other than to the nearest".to_owned())));
    }
    wave.mode &= 0xf0;
    Ok(())
}

fn program_counter<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, group: &mut Group) -> Outcome {
    let next = group.dispatch.code + u64::from(instruction.at) + u64::from(instruction.size);
    wave.put_s64(instruction.to, next);
    Ok(())
}
