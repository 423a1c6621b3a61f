//! From a program to waves that run: handlers found once, registers as a launch starts them,
//! barriers.

use super::strict::Strict;
use super::timeline::Timeline;
use super::{Group, Handler, Outcome, Trap, wave};
use crate::fault::{Fault, FaultKind};
use crate::isa::instruction::{Encoding, Instruction, Operand, Part, Rest};
use crate::isa::{Generation, Program};
use crate::report::Kind;
use std::cell::RefCell;
use std::sync::OnceLock;
use std::thread::LocalKey;
use wave::{EXEC, Wave};

/// How an instruction is carried out.
pub struct Step<const N: usize> {
    handler: Handler<N>,
    /// Of a pair the second half.
    second: Handler<N>,
    form: Form,
    kind: Kind,
}

/// What the loop does besides calling the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    /// The first source is gathered from other lanes.
    Moved,
    /// Parts of registers are taken and written.
    Parts,
    /// Two instructions in one, of which the second reads what the first writes.
    Crossed,
    /// Two instructions in one.
    Pair,
}

/// The handlers of a program for each size of wave, found when it first runs so: those that round
/// to the nearest, and those that round as MODE says.
#[derive(Default)]
pub struct Handlers {
    of_32: [OnceLock<Vec<Step<32>>>; 2],
    of_64: [OnceLock<Vec<Step<64>>>; 2],
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handlers")
    }
}

/// Sizes of waves.
pub trait Size<const N: usize>: Sized {
    /// The program's handlers for this size.
    fn steps(program: &Program, rounds: bool) -> &[Self];
    /// Waves that a thread has run, whose memory is used again.
    fn used() -> &'static LocalKey<RefCell<Vec<Wave<N>>>>;
}

macro_rules! size {
    ($lanes:literal, $handlers:ident) => {
        impl Size<$lanes> for Step<$lanes> {
            fn steps(program: &Program, rounds: bool) -> &[Self] {
                let steps = &program.handlers.$handlers[usize::from(rounds)];
                steps.get_or_init(|| program.instructions.iter().map(|it| bind(it, rounds)).collect())
            }

            fn used() -> &'static LocalKey<RefCell<Vec<Wave<$lanes>>>> {
                thread_local!(static USED: RefCell<Vec<Wave<$lanes>>> = const { RefCell::new(Vec::new()) });
                &USED
            }
        }
    };
}
size!(32, of_32);
size!(64, of_64);

fn missing<const N: usize>(_: &mut Wave<N>, _: &Instruction, _: &mut Group) -> Outcome {
    Err(Trap::new(FaultKind::Missing))
}

fn undecodable<const N: usize>(_: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let words = instruction.source.iter().filter_map(|source| match source {
        Operand::Literal(word) => Some(*word),
        _ => None,
    });
    Err(Trap::new(FaultKind::Undecodable(words.collect())))
}

/// Finds the handler of an instruction.
fn bind<const N: usize>(instruction: &Instruction, rounds: bool) -> Step<N> {
    let refused = super::modifiers::ignored(instruction).is_some();
    let handler = if refused { super::modifiers::refuse } else { handler(instruction.name, rounds) };
    let (mut second, mut form) = (missing as Handler<N>, Form::Plain);
    match &instruction.second {
        Some(_) if instruction.dpp.is_some() => form = Form::Moved,
        Some(_) if instruction.sdwa.is_some() => form = Form::Parts,
        Some(other) => {
            second = self::handler(other.name, rounds);
            // An accumulator is a source too.
            let read = other.source.contains(&instruction.to) || other.to == instruction.to;
            form = if read { Form::Crossed } else { Form::Pair };
        }
        None => {}
    }
    Step { handler, second, form, kind: kind(instruction) }
}

fn handler<const N: usize>(name: &str, rounds: bool) -> Handler<N> {
    if name == "undecodable" {
        return undecodable;
    }
    if rounds { super::rounding_handler(name) } else { super::handler(name) }.unwrap_or(missing)
}

/// What an instruction counts as.
fn kind(instruction: &Instruction) -> Kind {
    let name = instruction.name;
    let has = |part: &str| name.contains(part);
    match instruction.encoding {
        Encoding::Sopp if name == "s_barrier" => Kind::Barrier,
        Encoding::Sopp if has("branch") || has("endpgm") => Kind::Branch,
        Encoding::Sopp => Kind::Wait,
        Encoding::Sopk if has("waitcnt") => Kind::Wait,
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk | Encoding::Sopc => Kind::Scalar,
        Encoding::Smem => Kind::ScalarMemory,
        Encoding::Ds => Kind::Shared,
        Encoding::Flat | Encoding::Scratch | Encoding::Global | Encoding::Mubuf | Encoding::Mtbuf | Encoding::Mimg => {
            Kind::VectorMemory
        }
        _ if has("wmma") => Kind::Matrix,
        _ if has("_f64") => Kind::Double,
        _ if ["v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32"].contains(&name) || has("mad_u64") || has("mad_i64") => {
            Kind::Quarter
        }
        _ if has("fma") || has("_dot") || has("_mad_") || has("mac_") => Kind::MultiplyAdd,
        _ if ["v_rcp", "v_rsq", "v_sqrt", "v_exp", "v_log", "v_sin", "v_cos"]
            .iter()
            .any(|start| name.starts_with(start)) =>
        {
            Kind::Transcendental
        }
        _ => Kind::Vector,
    }
}

/// Runs all waves of a workgroup to their end.
pub fn run<const N: usize>(program: &Program, group: &mut Group) -> Result<(), Box<Fault>>
where
    Step<N>: Size<N>,
{
    let dispatch = group.dispatch;
    let rounds = dispatch.float_mode() & 15 != 0 || program.sets_rounding();
    let steps = Step::<N>::steps(program, rounds);
    let threads = dispatch.threads_of(group.id);
    let total: u32 = threads.iter().product();
    let count = total.div_ceil(N as u32);
    let mut waves = Step::<N>::used().take();
    waves.resize_with(waves.len().max(count as usize), Wave::new);
    let mut rest = waves.split_off(count as usize);
    for (index, wave) in waves.iter_mut().enumerate() {
        start(wave, group, threads, index as u32, count);
        wave.timeline = group.sample.is_some().then(|| Box::new(Timeline::new(dispatch)));
    }
    loop {
        let mut left = 0;
        for wave in waves.iter_mut().filter(|wave| !wave.done) {
            match (group.options.count, group.options.strict) {
                (false, false) => execute::<N, false, false>(program, steps, wave, group)?,
                (true, false) => execute::<N, true, false>(program, steps, wave, group)?,
                (_, true) => execute::<N, true, true>(program, steps, wave, group)?,
            }
            left += usize::from(!wave.done);
        }
        meet(&mut waves, group, left == 0);
        if left == 0 {
            waves.append(&mut rest);
            Step::<N>::used().set(waves);
            return Ok(());
        }
        group.shared.barrier();
    }
}

/// Waves are at a barrier, or have all ended: none goes on before the last one is there.
fn meet<const N: usize>(waves: &mut [Wave<N>], group: &mut Group, ended: bool) {
    let Some(sample) = &mut group.sample else { return };
    let timelines = || waves.iter().filter_map(|wave| wave.timeline.as_ref());
    let last = timelines().map(|it| it.now()).max().unwrap_or(0);
    if ended {
        sample.cycles = last;
        sample.memory_wait = timelines().map(|it| it.memory_wait).sum();
        sample.shared_wait = timelines().map(|it| it.shared_wait).sum();
        return;
    }
    for wave in waves.iter_mut().filter(|wave| !wave.done) {
        if let Some(timeline) = &mut wave.timeline {
            timeline.meet(last);
        }
    }
}

/// A wave as a launch starts it.
fn start<const N: usize>(wave: &mut Wave<N>, group: &Group, threads: [u32; 3], index: u32, count: u32) {
    let (dispatch, id, strict) = (group.dispatch, group.id, group.options.strict);
    wave.reset(dispatch.vector_registers() as usize);
    wave.index = index;
    wave.mode = dispatch.mode();
    let total: u32 = threads.iter().product();
    let lanes = (total - index * N as u32).min(N as u32);
    let exec = if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 };
    wave.scalars[EXEC as usize] = exec as u32;
    wave.scalars[EXEC as usize + 1] = (exec >> 32) as u32;
    let mut at = dispatch.user_count();
    wave.scalars[..at].copy_from_slice(&dispatch.user[..at]);
    if dispatch.generation == Generation::Rdna4 {
        // In registers of the trap handler: ttmp7, ttmp8 and ttmp9.
        wave.scalars[108 + 8] = index << 25;
        wave.scalars[108 + 7] = id[1] & 0xffff | id[2] << 16;
        wave.scalars[108 + 9] = id[0];
    } else {
        for (axis, number) in id.into_iter().enumerate() {
            if dispatch.has_group(axis) {
                wave.scalars[at] = number;
                at += 1;
            }
        }
        if dispatch.has_group_size() {
            wave.scalars[at] = count | index << 20;
        }
    }
    let apart = dispatch.generation < Generation::Rdna3;
    let given = if apart { (dispatch.rsrc2 >> 11 & 3) as usize + 1 } else { 1 };
    wave.strict = strict.then(|| Box::new(Strict::new(dispatch.generation, given)));
    for lane in 0..lanes as usize {
        let thread = index * N as u32 + lane as u32;
        let (x, rest) = (thread % threads[0], thread / threads[0]);
        let (y, z) = (rest % threads[1], rest / threads[1]);
        if apart {
            for (axis, value) in [x, y, z].into_iter().enumerate().take(given) {
                wave.vectors[axis][lane] = value;
            }
        } else {
            wave.vectors[0][lane] = x | y << 10 | z << 20;
        }
    }
}

/// Runs a wave to a barrier or to its end.
fn execute<const N: usize, const COUNT: bool, const STRICT: bool>(
    program: &Program,
    steps: &[Step<N>],
    wave: &mut Wave<N>,
    group: &mut Group,
) -> Result<(), Box<Fault>> {
    wave.waiting = false;
    let left = group.options.most().saturating_sub(wave.executed);
    let mut count = 0;
    while !wave.waiting {
        if wave.next == usize::MAX {
            wave.next = program.index_of(wave.jump).ok_or_else(|| jumped_out(program, wave))?;
        }
        let at = wave.next;
        let (Some(instruction), Some(step)) = (program.instructions.get(at), steps.get(at)) else {
            return Err(Box::new(Fault::new(
                FaultKind::Other("execution left the program".to_owned()),
                "",
                program.address,
            )));
        };
        if count == left {
            return Err(endless(program, instruction, wave, group));
        }
        wave.next += 1;
        count += 1;
        if COUNT {
            group.counts.kinds[step.kind as usize] += 1;
            group.counts.pairs += u64::from(matches!(step.form, Form::Pair | Form::Crossed));
        }
        if STRICT && let Some(mut strict) = wave.strict.take() {
            let looked = strict.before(wave, instruction);
            wave.strict = Some(strict);
            looked.map_err(|trap| fault(*trap, program, instruction, wave.index, group.id))?;
        }
        let exec = if STRICT { wave.exec() } else { 0 };
        let before = if COUNT { work(group, step.kind) } else { 0 };
        let outcome = match step.form {
            Form::Plain => (step.handler)(wave, instruction, group),
            form => special(form, step, wave, instruction, group),
        };
        if STRICT && let Some(strict) = &mut wave.strict {
            strict.after::<N>(exec, instruction);
        }
        if let Err(trap) = outcome {
            return Err(fault(*trap, program, instruction, wave.index, group.id));
        }
        if COUNT && wave.timeline.is_some() {
            note(wave, instruction, step.kind, group, before);
        }
    }
    wave.executed += count;
    group.counts.instructions += count;
    Ok(())
}

#[cold]
fn endless<const N: usize>(program: &Program, instruction: &Instruction, wave: &Wave<N>, group: &Group) -> Box<Fault> {
    let trap = Trap::new(FaultKind::Endless(group.options.most()));
    fault(*trap, program, instruction, wave.index, group.id)
}

#[cold]
fn jumped_out<const N: usize>(program: &Program, wave: &Wave<N>) -> Box<Fault> {
    let text = format!("a jump to {:#x}, which is no instruction of the program", wave.jump);
    Box::new(Fault { wave: wave.index, ..Fault::new(FaultKind::Other(text), "", program.address) })
}

/// What was done so far of the work that instructions of a kind may take much of.
fn work(group: &Group, kind: Kind) -> u64 {
    group.sample.as_ref().map_or(0, |sample| match kind {
        Kind::Shared => sample.shared_cycles,
        Kind::VectorMemory => sample.requests,
        _ => 0,
    })
}

/// Notes an instruction that was carried out in the wave's timeline.
#[inline(never)]
fn note<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, kind: Kind, group: &mut Group, before: u64) {
    let mut done = work(group, kind) - before;
    if kind == Kind::Shared
        && done == 0
        && let Some(sample) = &mut group.sample
    {
        // What lanes exchange passes through shared memory, 32 lanes at a time.
        done = N as u64 / 32;
        sample.shared_cycles += done;
    }
    if let Some(timeline) = &mut wave.timeline {
        timeline.step(instruction, kind, group.dispatch.generation, N, done);
    }
}

/// What is not one call of a handler.
#[inline(never)]
fn special<const N: usize>(
    form: Form,
    step: &Step<N>,
    wave: &mut Wave<N>,
    instruction: &Instruction,
    group: &mut Group,
) -> Outcome {
    let Some(second) = &instruction.second else { return Ok(()) };
    match form {
        Form::Plain => Ok(()),
        Form::Moved => moved(step, wave, instruction, second, group),
        Form::Parts => parts(step, wave, instruction, second, group),
        Form::Pair => {
            (step.handler)(wave, instruction, group)?;
            (step.second)(wave, second, group)
        }
        Form::Crossed => {
            // Both read before either writes.
            let Operand::Vector(to) = instruction.to else { return Ok(()) };
            let before = wave.vectors[usize::from(to)];
            (step.handler)(wave, instruction, group)?;
            let result = std::mem::replace(&mut wave.vectors[usize::from(to)], before);
            (step.second)(wave, second, group)?;
            wave.vectors[usize::from(to)] = result;
            Ok(())
        }
    }
}

/// Gathers the first source from other lanes, and carries the instruction out for those lanes that
/// get one.
fn moved<const N: usize>(
    step: &Step<N>,
    wave: &mut Wave<N>,
    instruction: &Instruction,
    second: &Instruction,
    group: &mut Group,
) -> Outcome {
    let (Some(dpp), Operand::Vector(from)) = (&instruction.dpp, instruction.source[0]) else { return Ok(()) };
    let exec = wave.exec();
    let source = wave.vectors[usize::from(from)];
    let mut gathered = [0; N];
    let mut on = 0u64;
    for (lane, value) in gathered.iter_mut().enumerate() {
        let (row, bank) = (lane / 16, lane / 4 % 4);
        if dpp.rows >> row & 1 == 0 || dpp.banks >> bank & 1 == 0 {
            continue;
        }
        let within = dpp.from[lane % 16];
        let other = row * 16 + usize::from(within & 15);
        if within != crate::isa::instruction::Dpp::NONE && (dpp.inactive || exec >> other & 1 != 0) {
            *value = source[other];
            on |= 1 << lane;
        } else if dpp.zero {
            on |= 1 << lane;
        }
    }
    wave.vectors[256] = gathered;
    wave.set_exec(exec & on);
    let outcome = (step.handler)(wave, second, group);
    if instruction.to != Operand::Scalar(EXEC) {
        wave.set_exec(exec);
    }
    outcome
}

/// Takes the parts of the sources, carries the instruction out, and writes its part of the result.
fn parts<const N: usize>(
    step: &Step<N>,
    wave: &mut Wave<N>,
    instruction: &Instruction,
    second: &Instruction,
    group: &mut Group,
) -> Outcome {
    let Some(sdwa) = &instruction.sdwa else { return Ok(()) };
    for (k, part) in sdwa.sources.iter().enumerate().filter(|(_, part)| part.select != Part::ALL) {
        let (first, count) = Part::bits(part.select);
        let taken = wave.words(instruction.source[k]).map(|word| {
            let high = word << (32 - first - count);
            if part.signed { (high as i32 >> (32 - count)) as u32 } else { high >> (32 - count) }
        });
        wave.vectors[256 + k] = taken;
    }
    (step.handler)(wave, second, group)?;
    if sdwa.result == Part::ALL {
        return Ok(());
    }
    let (first, count) = Part::bits(sdwa.result);
    let mask = (1 << count) - 1;
    let (result, old) = (wave.vectors[258], wave.words(instruction.to));
    let row = std::array::from_fn(|lane| {
        let part = result[lane] & mask;
        match sdwa.rest {
            Rest::Zero => part << first,
            Rest::Sign => (((part << (32 - count)) as i32 >> (32 - count)) as u32) << first,
            Rest::Keep => old[lane] & !(mask << first) | part << first,
        }
    });
    wave.put(instruction.to, &row);
    Ok(())
}

fn fault(trap: Trap, program: &Program, instruction: &Instruction, wave: u32, workgroup: [u32; 3]) -> Box<Fault> {
    let Trap { kind, lane, address } = trap;
    let code = program.address + u64::from(instruction.at);
    Box::new(Fault { lane, address, wave, workgroup, ..Fault::new(kind, instruction.to_string(), code) })
}
