//! Host scalars.

/// A scalar argument of a computation.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Double(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// The number as a double; the real part of a complex number.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Double(d) | Scalar::Complex(d, _) => d,
        }
    }

    /// The number as an integer, truncated toward zero.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => i64::from(b),
            Scalar::Int(i) => i,
            Scalar::Double(d) | Scalar::Complex(d, _) => d as i64,
        }
    }
}
