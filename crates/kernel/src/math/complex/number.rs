//! A complex number in a kernel.

use crate::builder::Value;
use crate::math::special::flipped_by;

/// `re + i im`, both of one float type.
#[derive(Copy, Clone)]
pub struct Complex<'b> {
    /// The real part.
    pub re: Value<'b>,
    /// The imaginary part.
    pub im: Value<'b>,
}

impl<'b> Complex<'b> {
    /// From its parts.
    pub fn new(re: Value<'b>, im: Value<'b>) -> Self {
        Self { re, im }
    }

    /// A real number.
    pub fn real(re: Value<'b>) -> Self {
        Self { re, im: re.like(0.0) }
    }

    /// A constant real number of the same type.
    pub fn like(self, re: f64) -> Self {
        Self::real(self.re.like(re))
    }

    /// Its parts.
    pub fn parts(self) -> Vec<Value<'b>> {
        vec![self.re, self.im]
    }

    /// Applies a function to both parts.
    pub fn map(self, f: impl Fn(Value<'b>) -> Value<'b>) -> Self {
        Self { re: f(self.re), im: f(self.im) }
    }

    /// Both parts times a real number.
    pub fn times(self, factor: Value<'b>) -> Self {
        self.map(|x| x * factor)
    }

    /// `-z`, by flipping the sign bits.
    pub fn negated(self) -> Self {
        self.map(|x| flipped_by(x, x.like(-1.0)))
    }

    /// The conjugate.
    pub fn conjugate(self) -> Self {
        Self { re: self.re, im: flipped_by(self.im, self.im.like(-1.0)) }
    }

    /// `i z`
    pub fn times_i(self) -> Self {
        Self { re: flipped_by(self.im, self.im.like(-1.0)), im: self.re }
    }

    /// `-i z`
    pub fn times_minus_i(self) -> Self {
        Self { re: self.im, im: flipped_by(self.re, self.re.like(-1.0)) }
    }

    /// `a` if `condition`, else `b`.
    pub fn select(condition: Value<'b>, a: Self, b: Self) -> Self {
        Self { re: condition.select(a.re, b.re), im: condition.select(a.im, b.im) }
    }

    /// Whether both parts are 0.
    pub fn is_zero(self) -> Value<'b> {
        self.re.is_zero() & self.im.is_zero()
    }

    /// Whether a part is NaN.
    pub fn is_nan(self) -> Value<'b> {
        self.re.is_nan() | self.im.is_nan()
    }

    /// Whether a part is infinite.
    pub fn is_inf(self) -> Value<'b> {
        self.re.is_inf() | self.im.is_inf()
    }
}
