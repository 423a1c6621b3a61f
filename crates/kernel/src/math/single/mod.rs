//! The functions in f32.
//!
//! No f64 is used: some adapters lack it. Special values are tested and produced by their bits,
//! because a driver may assume that float operations have no NaN operands, and may flush subnormal
//! numbers. Subnormal arguments and results are nevertheless precise: no float operation has a
//! subnormal operand or result.

use crate::builder::Value;
use crate::types::ScalarType::F32;

mod division;
mod error_function;
mod exact;
mod exponential;
mod hyperbolic;
mod inverse_trigonometric;
mod logarithm;
mod multiplication;
mod power;
mod subnormal;
mod trigonometric;

pub use division::{div, fmod, reciprocal, rsqrt, sqrt};
pub(super) use error_function::erfc_scaled;
pub use error_function::{erf, erfc};
pub use exponential::{exp, exp2, expm1, sigmoid};
pub use hyperbolic::{cosh, sinh, tanh};
pub use inverse_trigonometric::{acos, asin, atan, atan2};
pub use logarithm::{log, log1p, log2, log10};
pub use multiplication::mul;
pub use power::pow;
pub(super) use power::pow_scaled;
pub use trigonometric::{cos, sin, tan};

pub(super) use division::near_sqrt;
pub(super) use exact::{Sum, two_product};
pub(super) use exponential::{exp_scaled, exp_times};
pub(super) use logarithm::{log_sum, normal_log};
pub(super) use subnormal::{lowered, product, sum};
pub(super) use trigonometric::turn_sin_cos;

use division::reciprocal_significand;

/// Bits of the smallest normal number.
const MIN_NORMAL: u32 = 0x0080_0000;
/// Bits of one.
const ONE: u32 = 0x3f80_0000;
/// Bits of infinity.
const INF: u32 = 0x7f80_0000;
/// Bits of the NaN that is returned.
const NAN: u32 = 0x7fc0_0000;
/// The mask of all bits but the sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// The sign.
const SIGN: u32 = 0x8000_0000;

/// The f32 with the bits `special` if `cond`, else with `bits` (u32).
fn select_bits<'b>(cond: Value<'b>, special: u32, bits: Value<'b>) -> Value<'b> {
    cond.select(bits.builder().u32(special), bits).bitcast(F32)
}

/// `n / d` to more than f32's precision, for d in [1, 2] and a quotient whose square is far from
/// underflow.
fn ratio<'b>(n: Sum<'b>, d: Sum<'b>) -> Sum<'b> {
    let r = reciprocal_significand(d.hi);
    let hi = n.hi * r;
    let p = two_product(hi, d.hi);
    let rest = ((n.hi - p.hi) - p.lo) + (n.lo - hi * d.lo);
    Sum { hi, lo: rest * r }
}
