//! Polynomials and constants with a version for each float type.

use super::sum::{Sum, fast_two_sum};
use crate::builder::Value;
use crate::types::ScalarType;

/// A polynomial in `u = (x - centre) * scale`. The constant coefficient comes in two parts.
pub struct Polynomial {
    pub centre: f64,
    pub scale: f64,
    pub single: &'static [f64],
    pub double: &'static [f64],
}

/// A number to twice the precision of each type: its leading part and the rest.
pub struct Constant {
    pub single: [f64; 2],
    pub double: [f64; 2],
}

impl Constant {
    /// The two parts for values like `x`.
    pub fn of<'b>(&self, x: Value<'b>) -> Sum<'b> {
        let parts = if x.scalar() == ScalarType::F64 { self.double } else { self.single };
        Sum { hi: x.like(parts[0]), lo: x.like(parts[1]) }
    }
}

impl Polynomial {
    fn coefficients(&self, scalar: ScalarType) -> &'static [f64] {
        if scalar == ScalarType::F64 { self.double } else { self.single }
    }

    /// The value at `x`, with its rounding error.
    pub fn sum<'b>(&self, x: Value<'b>) -> Sum<'b> {
        let c = self.coefficients(x.scalar());
        let u = (x - self.centre) * self.scale;
        let tail = c[2..].iter().rev().fold(x.like(0.0), |sum, &c| sum * u + c);
        fast_two_sum(x.like(c[0]), tail * u + c[1])
    }

    /// The value at `x`.
    pub fn at<'b>(&self, x: Value<'b>) -> Value<'b> {
        self.sum(x).hi
    }
}

/// The value at `x` of the last polynomial whose condition holds, or of `otherwise` if none does.
pub fn piecewise<'b>(x: Value<'b>, otherwise: &Polynomial, pieces: &[(Value<'b>, &Polynomial)]) -> Sum<'b> {
    let choose = |of: &dyn Fn(&Polynomial) -> f64| {
        pieces.iter().fold(x.like(of(otherwise)), |value, (cond, piece)| cond.select(x.like(of(piece)), value))
    };
    let coefficient = |i: usize| choose(&|p: &Polynomial| p.coefficients(x.scalar()).get(i).copied().unwrap_or(0.0));
    let lengths = pieces.iter().map(|(_, p)| p.coefficients(x.scalar()).len());
    let length = lengths.fold(otherwise.coefficients(x.scalar()).len(), usize::max);
    let u = (x - choose(&|p| p.centre)) * choose(&|p| p.scale);
    let tail = (2..length).rev().fold(x.like(0.0), |sum, i| sum * u + coefficient(i));
    fast_two_sum(coefficient(0), tail * u + coefficient(1))
}
