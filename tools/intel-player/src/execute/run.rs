//! Runs the threads of a workgroup.

use super::thread::Thread;
use super::{Group, Outcome, Trap, fast, float, integer, message, systolic};
use crate::dispatch::Dispatch;
use crate::fault::{Fault, FaultKind};
use crate::isa::file;
use crate::isa::instruction::{Instruction, Operation, Place, Plan};
use crate::isa::{Generation, Program, sources};
use crate::memory::Memory;
use crate::report::{Counts, Options};

/// Runs one workgroup to its end.
///
/// # Errors
///
/// The first fault of the workgroup.
pub fn run_workgroup(
    program: &Program,
    dispatch: &Dispatch,
    id: [u32; 3],
    memory: &Memory,
    options: &Options,
    counts: &mut Counts,
) -> Result<(), Fault> {
    let scratch = vec![0xa5; dispatch.scratch() * dispatch.threads as usize];
    let mut group = Group { dispatch, memory, shared: vec![0xa5; dispatch.shared as usize], scratch };
    let mut threads: Vec<_> = (0..dispatch.threads).map(|number| start(dispatch, id, number)).collect();
    loop {
        let mut left = false;
        for (number, thread) in threads.iter_mut().enumerate() {
            if thread.done {
                continue;
            }
            left = true;
            run(program, thread, &mut group, options.most(), counts).map_err(|mut fault| {
                fault.thread = number as u32;
                *fault
            })?;
        }
        if !left {
            return Ok(());
        }
        // All that have not ended are at the barrier.
        for thread in &mut threads {
            (thread.at_barrier, thread.has_signalled) = (false, false);
        }
    }
}

/// A thread with what a launch puts into its registers.
fn start(dispatch: &Dispatch, id: [u32; 3], number: u32) -> Thread {
    let all = u32::MAX >> (32 - dispatch.channels);
    let channels = if number + 1 == dispatch.threads { all & dispatch.last } else { all };
    let mut thread = Thread::new(channels);
    thread.file[..32].fill(0);
    for (word, value) in [(1, id[0]), (6, id[1]), (7, id[2])] {
        thread.set_word(4 * word, value);
    }
    if dispatch.scratch() > 0 {
        // As a power of two from 1 KiB on.
        thread.set_word(12, (dispatch.scratch() / 1024).trailing_zeros());
        let start = message::SCRATCH_START + number * dispatch.scratch() as u32;
        let in_surface = dispatch.generation == Generation::XeHpg;
        thread.set_word(20, if in_surface { message::scratch_surface(number) } else { start });
    }
    let own = number as usize * dispatch.own_bytes;
    let (common, own) = (&dispatch.common[..], &dispatch.own[own..own + dispatch.own_bytes]);
    let constants = if dispatch.own_first { [own, common] } else { [common, own] }.concat();
    if dispatch.own_first {
        thread.set_word(0, dispatch.word);
        thread.set_word(8, number);
    }
    let bytes = constants.len().min(file::GENERAL - 32);
    thread.file[32..32 + bytes].copy_from_slice(&constants[..bytes]);
    thread
}

/// Runs a thread to a barrier or its end.
fn run(
    program: &Program,
    thread: &mut Thread,
    group: &mut Group,
    most: u64,
    counts: &mut Counts,
) -> Result<(), Box<Fault>> {
    let before = thread.executed;
    let outcome = loop {
        let Some(it) = program.instructions.get(thread.next) else {
            let kind = FaultKind::Other("execution left the program".into());
            break Err(Box::new(Fault::new(kind, "", group.dispatch.code)));
        };
        if it.is_target {
            thread.join(thread.next);
        }
        let outcome =
            if thread.executed == most { Err(Trap::new(FaultKind::Endless(most))) } else { step(it, thread, group) };
        thread.executed += 1;
        if let Err(trap) = outcome {
            let mut fault = Fault::new(trap.kind, it.to_string(), group.dispatch.code + u64::from(it.at));
            (fault.channel, fault.address) = (trap.channel, trap.address);
            break Err(Box::new(fault));
        }
        if thread.done || thread.at_barrier {
            break Ok(());
        }
    };
    counts.instructions += thread.executed - before;
    outcome
}

/// Carries out an instruction.
#[inline(always)]
fn step(it: &Instruction, thread: &mut Thread, group: &mut Group) -> Outcome {
    match it.operation {
        Operation::If
        | Operation::Else
        | Operation::Endif
        | Operation::While
        | Operation::Break
        | Operation::Cont
        | Operation::Halt
        | Operation::Jmpi => return thread.branch(it),
        Operation::Nop => {}
        Operation::Sync => {
            // The others are hints of what to wait for, and nothing here is late.
            if it.condition == 14 && thread.has_signalled {
                thread.at_barrier = true;
            }
        }
        Operation::Wait => thread.at_barrier = thread.has_signalled,
        Operation::Send | Operation::Sendc | Operation::Sends => {
            let mask = thread.mask(it) & thread.predicate(it);
            message::send(it, thread, group, mask)?;
        }
        Operation::Illegal => return Err(Trap::missing("an illegal instruction")),
        _ => compute(it, thread)?,
    }
    thread.next += 1;
    Ok(())
}

/// Carries out arithmetic.
///
/// # Errors
///
/// What is missing here.
#[inline(always)]
pub fn compute(it: &Instruction, thread: &mut Thread) -> Outcome {
    let predicate = thread.predicate(it);
    let mut mask = thread.mask(it);
    if it.operation != Operation::Sel {
        mask &= predicate;
    }
    match (it.plan, it.channels) {
        (Plan::Words, 8) => {
            fast::words::<8>(thread, it, mask, predicate);
            return Ok(());
        }
        (Plan::Words, 16) => {
            fast::words::<16>(thread, it, mask, predicate);
            return Ok(());
        }
        // Other roundings are rare, and known there.
        (Plan::Singles, _) if thread.mode().rounding() != 0 => {}
        (Plan::Singles, 8) => {
            fast::singles::<8>(thread, it, mask, predicate);
            return Ok(());
        }
        (Plan::Singles, 16) => {
            fast::singles::<16>(thread, it, mask, predicate);
            return Ok(());
        }
        _ => {}
    }
    if it.operation == Operation::Dpas {
        return systolic::run(thread, it, mask);
    }
    let count = sources(it.operation, it.condition);
    let used = &it.source[..count];
    for source in used {
        if let Place::File(byte) = source.place
            && usize::from(byte) >= file::MASK
        {
            if usize::from(byte) < file::MASK + 32 {
                thread.set_word(file::MASK, thread.active);
            } else if usize::from(byte) >= file::NOTIFICATION {
                return Err(Trap::missing("this register"));
            }
        }
    }
    if it.operation == Operation::Math && it.condition >= 11 {
        return match it.condition {
            12 | 13 => integer::divide(thread, it, mask),
            _ => Err(Trap::missing("this function")),
        };
    }
    let converts = it.operation == Operation::Mov && it.to.kind.is_float();
    if converts || used.iter().any(|source| source.kind.is_float()) {
        float::run(thread, it, mask, predicate)
    } else {
        integer::run(thread, it, mask, predicate)
    }
}
