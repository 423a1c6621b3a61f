//! The Airy function Ai: polynomials between -4.5 and 2, the first two zeros divided out, and its
//! asymptotic forms elsewhere (DLMF 9.7).

use super::polynomial::piecewise;
use super::sum::{Sum, exp_times, two_product};
use super::tables::*;
use crate::builder::Value;
use crate::math;
use std::f64::consts::PI;

const LEFT: f64 = -4.5;
const RIGHT: f64 = 2.0;
/// Beyond this argument the phase has no correct digit in either type (f32: from about -1e9 on),
/// and only the amplitude is meaningful.
const REACH: f64 = 1e20;

/// Ai(x); NaN at the infinities.
pub fn airy_ai(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let a = x.abs();
    let middle = x.ge(LEFT) & x.le(RIGHT);
    let oscillates = x.lt(-2.0);
    let c = middle.select(x, x.like(0.0));
    let near = piecewise(c, &AIRY, &[(oscillates, &AIRY_LEFT), (x.gt(1e-30), &AIRY_RIGHT)]).value();
    let zeros = [&AIRY_ZERO_1, &AIRY_ZERO_2].iter().fold(x.like(1.0), |product, zero| {
        let zero = zero.of(x);
        product * ((c - zero.hi) - zero.lo)
    });
    let near = oscillates.select(near * zeros, near);
    let result = b.var(near);
    b.if_(!middle, || {
        // z = 2/3 c^(3/2), and its rounding error.
        let c = a.min(REACH);
        let root = math::sqrt(c);
        let product = two_product(c, root);
        let lost = two_product(root, root);
        let root_rest = ((c - lost.hi) - lost.lo) / (2.0 * root);
        let cube = Sum { hi: product.hi, lo: product.lo + c * root_rest };
        let z = cube.times(Sum { hi: x.like(2.0 / 3.0), lo: third_rest(x) });
        let amplitude = math::rsqrt(math::sqrt(a));
        let v = math::reciprocal(z.hi);
        b.if_else(
            x.gt(0),
            || {
                let decay = AIRY_FAR.sum(v).times(Sum::exact(amplitude));
                result.set(exp_times(Sum { hi: -z.hi, lo: -z.lo }, decay));
            },
            || {
                let square = v * v;
                let (p, q) = (AIRY_P.at(square), AIRY_Q.at(square) * v);
                // sqrt(2) times sine and cosine of z + pi/4. The rounding error of z is treated as
                // an angle of its own, since it is large for a large z.
                let ((s, c), (sl, cl)) = ((math::sin(z.hi), math::cos(z.hi)), (math::sin(z.lo), math::cos(z.lo)));
                let (s, c) = (s * cl + c * sl, c * cl - s * sl);
                result.set(amplitude * (1.0 / (2.0 * PI).sqrt()) * (p * (s + c) - q * (c - s)));
            },
        );
    });
    (x.is_nan() | x.is_inf()).select(x.like(f64::NAN), result.get())
}

/// The rounding error of 2/3.
fn third_rest(x: Value<'_>) -> Value<'_> {
    if x.scalar() == crate::types::ScalarType::F64 {
        x.like(3.700_743_415_417_188e-17)
    } else {
        x.like(2.0 / 3.0 - f64::from(2.0f32 / 3.0f32))
    }
}
