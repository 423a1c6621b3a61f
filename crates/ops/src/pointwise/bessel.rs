//! Bessel functions and the Airy function.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::pointwise::elementwise::{self, Out, Rule, Slot, heavy_operator};
use dml_kernel::{Value, math};
use math::special;

/// `name Refused body;` for each function: functional and `out=`.
macro_rules! functions {
    ($($name:literal $check:ident |$x:ident| $body:expr;)*) => {
        /// This family's overloads.
        pub const OPERATORS: &[Operator] = &[
            op("aten::i0_", |c| run(c, Out::InPlace, "i0", any, |x| special::i0(x))),
            $(
                op(concat!("aten::", $name), |c| run(c, Out::New, $name, $check, |$x| $body)),
                op(concat!("aten::", $name, ".out"), |c| run(c, Out::Arg(1), $name, $check, |$x| $body)),
            )*
        ];
    };
}

functions! {
    "i0" any |x| special::i0(x);
    "special_i0e" any |x| special::i0e(x);
    "special_i1" any |x| special::i1(x);
    "special_i1e" any |x| special::i1e(x);
    "special_modified_bessel_i0" not_half |x| special::i0(x);
    "special_modified_bessel_i1" not_half |x| special::i1(x);
    "special_modified_bessel_k0" not_half |x| special::k0(x);
    "special_modified_bessel_k1" not_half |x| special::k1(x);
    "special_scaled_modified_bessel_k0" not_half |x| special::k0e(x);
    "special_scaled_modified_bessel_k1" not_half |x| special::k1e(x);
    "special_bessel_j0" not_half |x| special::j0(x);
    "special_bessel_j1" not_half |x| special::j1(x);
    "special_bessel_y0" not_half |x| special::y0(x);
    "special_bessel_y1" not_half |x| special::y1(x);
    "special_spherical_bessel_j0" not_half |x| spherical(x);
    "special_airy_ai" not_half |x| special::airy_ai(x);
}

fn any(_: &Call, _: &str) -> Result<()> {
    Ok(())
}

fn not_half(call: &Call, name: &str) -> Result<()> {
    elementwise::check_not_half(call, &[0], name)
}

fn run(
    call: &mut Call,
    out: Out,
    name: &'static str,
    check: fn(&Call, &str) -> Result<()>,
    body: math::Unary,
) -> Result<()> {
    check(call, name)?;
    heavy_operator(call, out, Rule::Float, name, &[Slot::Tensor(0)], |_, v| body(v[0]))
}

/// `sin(x) / x`, by its series near zero.
fn spherical(x: Value<'_>) -> Value<'_> {
    let t = x * x;
    let series =
        [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    let near = series.iter().rev().fold(x.like(0.0), |sum, &c| sum * t + c);
    let far = math::sin(x) / x;
    x.is_inf().select(x.like(0.0), x.abs().lt(0.5).select(near, far))
}
