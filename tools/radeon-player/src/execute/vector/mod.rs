//! Vector arithmetic: what an instruction computes in each lane.
//!
//! A line of a table is an instruction: its name, the types that it reads, the type that it writes,
//! and an expression of one lane. The compiler makes the processor's vector instructions of the
//! loop over lanes.

mod bytes;
mod compare;
mod conversion;
pub(super) mod directed;
mod division;
pub(super) mod double;
mod half;
mod halves;
mod integer;
mod lane;
mod matrix;
mod packed;
pub(super) mod single;
mod small;
mod special;

pub use special::set_side;

/// What scalar floats need of roundings.
pub(super) mod approximate {
    pub use super::conversion::half_toward_zero;
    pub use super::halves::odd_single;
    pub use super::special::{given, near};
}

use super::Handler;

/// A table of handlers: `"name"(a: type, ...) -> type { expression }`. A second expression, after
/// `or`, is for results that are kept within their limits. The table's function is `find`.
macro_rules! operations {
    ($($name:literal $(| $more:literal)* ($($argument:ident: $type:ty),*) -> $result:ty $body:block $(or $limited:block)?)*) => {
        pub(super) fn find<const N: usize>(name: &str) -> Option<$crate::execute::Handler<N>> {
            use $crate::execute::vector::lane::Value;
            use $crate::execute::{Group, Outcome, wave::Wave};
            use $crate::isa::instruction::Instruction;
            match name {
                $($name $(| $more)* => {
                    // The last count of arguments is not read, and a table may have no argument.
                    #[allow(unused_assignments, unused_mut, unused_variables, clippy::needless_range_loop)]
                    fn run<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
                        // Rows to compute in are the wave's, since zeros for new ones would take
                        // longer than most instructions.
                        let Some(mut rooms) = wave.rooms.take() else { unreachable!("each instruction gives them back") };
                        let [first, second, third, out] = &mut *rooms;
                        {
                            let mut rooms = [Some(first), Some(second), Some(third)].into_iter().flatten();
                            let mut at = 0;
                            $(
                                let $argument = match rooms.next() {
                                    Some(room) => <$type as Value>::read(wave, instruction, at, room),
                                    None => unreachable!("three arguments at most"),
                                };
                                at += 1;
                            )*
                            if instruction.clamp && !<$result as Value>::LIMITS {
                                $crate::execute::vector::limited!(
                                    lane, out, N, $result,
                                    [$(let $argument = <$type as Value>::of($argument, lane);)*]
                                    [$($limited)?]
                                );
                            } else {
                                $crate::execute::vector::each(out, |out, lane| {
                                    $(let $argument = <$type as Value>::of($argument, lane);)*
                                    let result: $result = $body;
                                    result.put(out, lane);
                                });
                            }
                        }
                        <$result as Value>::write(wave, instruction, out);
                        wave.rooms = Some(rooms);
                        Ok(())
                    }
                    Some(run::<N>)
                })*
                _ => None,
            }
        }
    };
}
use operations;

/// The loop over lanes whose results are kept within their limits, of an instruction that can do
/// so.
macro_rules! limited {
    ($lane:ident, $out:ident, $count:expr, $result:ty, [$($arguments:tt)*] []) => {
        return Err($crate::execute::Trap::new($crate::fault::FaultKind::Missing))
    };
    ($lane:ident, $out:ident, $count:expr, $result:ty, [$($arguments:tt)*] [$limited:block]) => {
        for $lane in 0..$count {
            $($arguments)*
            let result: $result = $limited;
            result.put($out, $lane);
        }
    };
}
use limited;

/// Calls a function for each lane. That it has the result's rows alone lets the compiler compute
/// many lanes at once.
#[inline(always)]
fn each<const N: usize>(out: &mut lane::Rows<N>, f: impl Fn(&mut lane::Rows<N>, usize)) {
    for lane in 0..N {
        f(out, lane);
    }
}

/// Who carries out an instruction of vector arithmetic, by its name.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    [
        single::find,
        integer::find,
        bytes::find,
        conversion::find,
        division::find,
        half::find,
        double::find,
        packed::find,
        special::find,
        special::find_masked,
        compare::find,
        matrix::find,
        small::find,
    ]
    .into_iter()
    .find_map(|find| find(name))
}
