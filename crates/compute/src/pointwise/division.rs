//! Division that rounds, and remainders.

use crate::fault::{Refusal, refused};
use crate::functions;
use crate::pointwise::binary::copysign;
use crate::pointwise::complex;
use crate::pointwise::function::{Domain, Function, Guard, Options, Variant};
use crate::pointwise::rule::Rule;
use dml_kernel::{DType, Value, convert, math};

/// The 16-bit float dtype to which something is rounded, if any.
#[derive(Copy, Clone)]
struct Precision(Option<DType>);

impl Precision {
    /// Of operands that meet in a dtype of 16 bits, where `holds`.
    fn of(options: &Options, holds: bool) -> Self {
        let half = matches!(options.dtype, DType::F16 | DType::BF16) && holds;
        Precision(half.then_some(options.dtype))
    }

    fn round(self, x: Value<'_>) -> Value<'_> {
        self.0.map_or(x, |dtype| convert(x, dtype))
    }
}

/// The options of a division of operands that meet in a dtype: what of it is rounded to that dtype
/// if it is of 16 bits. As on the CPU, numbers are rounded before, and every step of a quotient is,
/// unless one number divides all: that is taken as it was given, and only the result is rounded.
pub struct Rounding {
    /// The steps of a quotient.
    pub steps: bool,
    /// The dividend.
    pub dividend: bool,
    /// The divisor of a remainder.
    pub divisor: bool,
}

impl Rounding {
    /// A division with these options.
    pub fn of(self, function: &'static Function, common: DType) -> Variant {
        function.with([self.steps, self.dividend, self.divisor]).of(common)
    }
}

fn steps(options: &Options) -> Precision {
    Precision::of(options, options.flags[0])
}

fn dividend<'b>(x: Value<'b>, options: &Options) -> Value<'b> {
    Precision::of(options, options.flags[1]).round(x)
}

fn divisor<'b>(y: Value<'b>, options: &Options) -> Value<'b> {
    Precision::of(options, options.flags[2]).round(y)
}

functions! {
    /// `x / y` of floats.
    DIV = "div"(x, y).rule(Rule::Float).of_complex(&complex::DIV) => x / y;
    /// `trunc(x / y)`; integers by zero are refused.
    DIV_TRUNC = "div_trunc"(x, y | o).divides().guarded(DIVISOR) => quotient(dividend(x, o), y, steps(o));
    /// `floor(x / y)`; integers by zero are refused.
    DIV_FLOOR = "div_floor"(x, y | o).divides().guarded(DIVISOR) => floor_quotient(dividend(x, o), y, steps(o));
    /// The remainder with the sign of the divisor, as Python's `%`.
    REMAINDER = "remainder"(x, y | o).divides().guarded(DIVISOR) => modulo(dividend(x, o), divisor(y, o));
    /// The remainder with the sign of the dividend, as C's `%`.
    FMOD = "fmod"(x, y | o).divides().guarded(DIVISOR) => remainder(dividend(x, o), divisor(y, o));
}

/// The second operand, which the CPU does not divide integers by where it is zero.
const DIVISOR: &[Guard] = &[Guard { operand: 1, domain: Domain::Divisor, refusal: Refusal::Value(refused::DIVISOR) }];

/// An integer divisor that no driver divides by wrongly: 1 in place of 0, and of -1, whose quotient
/// is a negation.
fn safe_divisor<'b>(divisor: Value<'b>) -> Value<'b> {
    let zero = divisor.eq(0);
    let unsafe_ = if divisor.scalar().is_signed() { zero | divisor.eq(-1) } else { zero };
    unsafe_.select(divisor.like(1.0), divisor)
}

/// `trunc(a / b)`; integers by zero yield 0.
fn quotient<'b>(a: Value<'b>, b: Value<'b>, steps: Precision) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => steps.round(a / b).trunc(),
        s => {
            let plain = a / safe_divisor(b);
            let quotient = if s.is_signed() { b.eq(-1).select(-a, plain) } else { plain };
            b.eq(0).select(a.like(0.0), quotient)
        }
    }
}

/// `a - b * trunc(a / b)`, exact. Not by a remainder instruction: Vulkan leaves it undefined for
/// negative numbers.
fn remainder<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => math::fmod(a, b),
        _ => b.eq(0).select(a.like(0.0), a - b * quotient(a, b, Precision(None))),
    }
}

/// Whether a remainder's sign is not the divisor's, and it is not zero.
fn has_wrong_sign<'b>(rest: Value<'b>, b: Value<'b>) -> Value<'b> {
    if rest.scalar().is_float() {
        let divisor = b.is_below_zero();
        return (rest.is_above_zero() & divisor) | (rest.is_below_zero() & !divisor);
    }
    rest.ne(0) & (rest.lt(0) ^ b.lt(0))
}

/// The remainder with the divisor's sign.
fn modulo<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let rest = remainder(a, b);
    let other = if a.scalar().is_float() { math::special::sum(rest, b) } else { rest + b };
    has_wrong_sign(rest, b).select(other, rest)
}

/// The quotient rounded down. For floats by Python's algorithm, which CPU follows: `a - mod` is a
/// multiple of `b`.
fn floor_quotient<'b>(a: Value<'b>, b: Value<'b>, steps: Precision) -> Value<'b> {
    match a.scalar() {
        s if s.is_float() => {
            let modulus = math::fmod(a, b);
            let exact = steps.round(steps.round(math::special::sum(a, -modulus)) / b);
            let exact = has_wrong_sign(modulus, b).select(steps.round(exact - 1.0), exact);
            let floor = exact.floor();
            let floor = (exact - floor).gt(0.5).select(floor + 1.0, floor);
            let plain = a / b;
            let zero = copysign(a.like(0.0), plain);
            b.is_zero().select(plain, exact.eq(0).select(zero, floor))
        }
        _ => {
            let (q, r) = (quotient(a, b, steps), remainder(a, b));
            has_wrong_sign(r, b).select(q - 1, q)
        }
    }
}
