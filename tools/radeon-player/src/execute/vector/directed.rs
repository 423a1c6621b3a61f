//! Arithmetic of floats that is rounded as the register MODE says. Programs that never leave the
//! rounding to the nearest, which are nearly all, do not come here.

use super::halves::{Half, InHalf, Mixed, Pair, Wide};
use super::lane::{Own, Value};
use crate::execute::exact::{DOUBLE, HALF, Mode, Rounder, SINGLE};
use crate::execute::{Group, Handler, Outcome, Trap, wave::Wave};
use crate::fault::FaultKind;
use crate::isa::instruction::Instruction;

/// A type of results: how its values are rounded.
trait Rounded: Value {
    fn rounder(mode: u32) -> Rounder;
    /// Of a value that the type holds.
    fn of_rounded(value: f64) -> Self;
}

macro_rules! rounded {
    ($type:ty, $format:expr, $first:literal, $value:ident => $of:expr) => {
        impl Rounded for $type {
            fn rounder(mode: u32) -> Rounder {
                Rounder { format: $format, mode: Mode::of(mode >> $first) }
            }
            fn of_rounded($value: f64) -> Self {
                $of
            }
        }
    };
}
rounded!(f32, SINGLE, 0, value => value as f32);
rounded!(Half, HALF, 2, value => Half(value as f32));
rounded!(InHalf<false>, HALF, 2, value => InHalf(value as f32));
rounded!(InHalf<true>, HALF, 2, value => InHalf(value as f32));
rounded!(f64, DOUBLE, 2, value => value);

/// A type of sources: its values as f64.
trait Exact {
    fn exact(self) -> f64;
}

macro_rules! exact {
    ($($type:ty: $it:ident => $value:expr;)*) => {
        $(impl Exact for $type {
            fn exact(self) -> f64 {
                let $it = self;
                $value
            }
        })*
    };
}
exact! {
    f32: it => f64::from(it);
    f64: it => it;
    Half: it => f64::from(it.0);
    Wide: it => it.0;
    Mixed: it => f64::from(it.0);
    i32: it => f64::from(it);
    u32: it => f64::from(it);
    i16: it => f64::from(it);
    u16: it => f64::from(it);
    Own<f32>: it => f64::from(it.0);
    Own<f64>: it => it.0;
    Own<Half>: it => f64::from(it.0.0);
}

/// A table of handlers: `"name"(a: type, ...) -> type |rounder| expression`, of values as f64.
macro_rules! directed {
    ($($name:literal $(| $more:literal)* ($($argument:ident: $type:ty),*) -> $result:ty, |$round:ident| $body:expr;)*) => {
        fn table<const N: usize>(name: &str) -> Option<Handler<N>> {
            match name {
                $($name $(| $more)* => {
                    // The last count of arguments is not read.
                    #[allow(unused_assignments)]
                    fn run<const N: usize>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
                        let $round = <$result as Rounded>::rounder(wave.mode);
                        let mut at = 0;
                        $(
                            let mut room = [[0; N]; 2];
                            let $argument = <$type as Value>::read(wave, it, at, &mut room);
                            at += 1;
                        )*
                        let mut out = [[0; N]; 2];
                        for lane in 0..N {
                            $(let $argument = <$type as Value>::of($argument, lane).exact();)*
                            <$result as Rounded>::of_rounded($body).put(&mut out, lane);
                        }
                        <$result as Value>::write(wave, it, &mut out);
                        Ok(())
                    }
                    Some(run::<N>)
                })*
                _ => None,
            }
        }
    };
}

directed! {
    "v_add_f32"(a: f32, b: f32) -> f32, |to| to.add(a, b);
    "v_sub_f32"(a: f32, b: f32) -> f32, |to| to.add(a, -b);
    "v_subrev_f32"(a: f32, b: f32) -> f32, |to| to.add(b, -a);
    "v_mul_f32"(a: f32, b: f32) -> f32, |to| to.multiply(a, b);
    "v_mul_dx9_zero_f32"(a: f32, b: f32) -> f32, |to| if a == 0.0 || b == 0.0 { 0.0 } else { to.multiply(a, b) };
    "v_fma_f32" | "v_fmaak_f32" | "v_fmamk_f32"(a: f32, b: f32, c: f32) -> f32, |to| to.multiply_add(a, b, c);
    "v_fmac_f32"(a: f32, b: f32, c: Own<f32>) -> f32, |to| to.multiply_add(a, b, c);
    "v_mad_f32" | "v_madak_f32" | "v_madmk_f32"(a: f32, b: f32, c: f32) -> f32, |to| to.add(to.multiply(a, b), c);
    "v_mac_f32"(a: f32, b: f32, c: Own<f32>) -> f32, |to| to.add(to.multiply(a, b), c);
    "v_fma_mix_f32"(a: Mixed, b: Mixed, c: Mixed) -> f32, |to| to.multiply_add(a, b, c);
    "v_fma_mixlo_f16"(a: Mixed, b: Mixed, c: Mixed) -> InHalf<false>, |to| to.multiply_add(a, b, c);
    "v_fma_mixhi_f16"(a: Mixed, b: Mixed, c: Mixed) -> InHalf<true>, |to| to.multiply_add(a, b, c);
    "v_ldexp_f32"(a: f32, b: i32) -> f32, |to| to.scale(a, b as i32);
    "v_cvt_f32_i32"(a: i32) -> f32, |to| to.value(a);
    "v_cvt_f32_u32"(a: u32) -> f32, |to| to.value(a);
    "v_cvt_f32_f64"(a: f64) -> f32, |to| to.value(a);
    "v_add_f16"(a: Half, b: Half) -> Half, |to| to.add(a, b);
    "v_sub_f16"(a: Half, b: Half) -> Half, |to| to.add(a, -b);
    "v_subrev_f16"(a: Half, b: Half) -> Half, |to| to.add(b, -a);
    "v_mul_f16"(a: Half, b: Half) -> Half, |to| to.multiply(a, b);
    "v_fma_f16" | "v_fmaak_f16" | "v_fmamk_f16"(a: Half, b: Half, c: Half) -> Half, |to| to.multiply_add(a, b, c);
    "v_fmac_f16"(a: Half, b: Half, c: Own<Half>) -> Half, |to| to.multiply_add(a, b, c);
    "v_ldexp_f16"(a: Half, b: i16) -> Half, |to| to.scale(a, b as i32);
    "v_cvt_f16_f32"(a: f32) -> Half, |to| to.value(a);
    "v_cvt_f16_u16"(a: u16) -> Half, |to| to.value(a);
    "v_cvt_f16_i16"(a: i16) -> Half, |to| to.value(a);
    "v_add_f64"(a: f64, b: f64) -> f64, |to| to.add(a, b);
    "v_mul_f64"(a: f64, b: f64) -> f64, |to| to.multiply(a, b);
    "v_fma_f64"(a: f64, b: f64, c: f64) -> f64, |to| to.multiply_add(a, b, c);
    "v_fmac_f64"(a: f64, b: f64, c: Own<f64>) -> f64, |to| to.multiply_add(a, b, c);
    "v_ldexp_f64"(a: f64, b: i32) -> f64, |to| to.scale(a, b as i32);
}

/// Two results of halves, each rounded.
fn pairs<const N: usize>(
    wave: &mut Wave<N>,
    it: &Instruction,
    own: bool,
    f: fn(Rounder, f64, f64, f64) -> f64,
) -> Outcome {
    let to = Half::rounder(wave.mode);
    let mut rooms = [[[0; N]; 2]; 3];
    let [first, second, third] = &mut rooms;
    let a = Pair::<f64>::read(wave, it, 0, first);
    let b = Pair::<f64>::read(wave, it, 1, second);
    let c = if own { Own::<Pair<f64>>::read(wave, it, 2, third) } else { Pair::<f64>::read(wave, it, 2, third) };
    let mut out = [[0; N]; 2];
    for lane in 0..N {
        let [a, b, c] = [a, b, c].map(|rows| Pair::<f64>::of(rows, lane).0);
        Pair([0, 1].map(|k| f(to, a[k], b[k], c[k]))).put(&mut out, lane);
    }
    Pair::<f64>::write(wave, it, &mut out);
    Ok(())
}

/// What has no way to be rounded otherwise.
fn nearest_only<const N: usize>(wave: &mut Wave<N>, it: &Instruction, group: &mut Group) -> Outcome {
    if wave.mode & 15 != 0 {
        return Err(Trap::new(FaultKind::Other("rounding other than to the nearest, which this is not".to_owned())));
    }
    match super::handler::<N>(it.name) {
        Some(handler) => handler(wave, it, group),
        None => Err(Trap::new(FaultKind::Missing)),
    }
}

/// The handler of an instruction whose result MODE rounds.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    Some(match name {
        "v_pk_add_f16" => |w, i, _| pairs(w, i, false, |to, a, b, _| to.add(a, b)),
        "v_pk_mul_f16" => |w, i, _| pairs(w, i, false, |to, a, b, _| to.multiply(a, b)),
        "v_pk_fma_f16" => |w, i, _| pairs(w, i, false, |to, a, b, c| to.multiply_add(a, b, c)),
        "v_pk_fmac_f16" => |w, i, _| pairs(w, i, true, |to, a, b, c| to.multiply_add(a, b, c)),
        "v_div_fmas_f32" | "v_div_fmas_f64" | "v_fma_dx9_zero_f32" | "v_fmac_dx9_zero_f32" => nearest_only,
        _ => return table(name),
    })
}
