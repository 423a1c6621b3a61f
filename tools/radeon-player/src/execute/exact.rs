//! Sums and products without rounding, and roundings other than to the nearest.

/// How a result is rounded, as the register MODE has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To the nearest, and ties to even.
    Nearest,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Towards zero.
    Zero,
}

impl Mode {
    /// Of two bits.
    #[must_use]
    pub fn of(bits: u32) -> Self {
        [Self::Nearest, Self::Up, Self::Down, Self::Zero][(bits & 3) as usize]
    }
}

/// What floats of a type can be.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Bits of the fraction, with the first one.
    pub digits: i32,
    /// The power of two of the least number.
    pub least: i32,
    /// The greatest number.
    pub greatest: f64,
}

/// `f16`.
pub const HALF: Format = Format { digits: 11, least: -24, greatest: 65504.0 };
/// `f32`.
pub const SINGLE: Format = Format { digits: 24, least: -149, greatest: f32::MAX as f64 };
/// `f64`.
pub const DOUBLE: Format = Format { digits: 53, least: -1074, greatest: f64::MAX };

/// A number that is finite: whole digits times a power of two. Where digits were lost, which are
/// far below any that a result has, the lowest one is set.
#[derive(Clone, Copy, Debug)]
struct Exact {
    negative: bool,
    digits: u128,
    power: i32,
}

impl Exact {
    fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let digits = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        Self { negative: bits >> 63 != 0, digits: digits.into(), power: exponent.max(1) - 1075 }
    }

    /// Of two that have no more than 64 digits.
    fn times(self, other: Self) -> Self {
        let negative = self.negative != other.negative;
        Self { negative, digits: self.digits * other.digits, power: self.power + other.power }
    }

    /// With its first digit at a fixed place, so that two can be added.
    fn aligned(self) -> Self {
        let by = self.digits.leading_zeros() as i32 - 3;
        Self { digits: self.digits << by, power: self.power - by, ..self }
    }

    fn plus(self, other: Self, mode: Mode) -> Self {
        if self.digits == 0 || other.digits == 0 {
            return match (self.digits, other.digits) {
                (0, 0) => {
                    let both = self.negative && other.negative;
                    let either = self.negative || other.negative;
                    Self { negative: if mode == Mode::Down { either } else { both }, ..self }
                }
                (0, _) => other,
                _ => self,
            };
        }
        let (a, b) = (self.aligned(), other.aligned());
        let (large, small) = if (a.power, a.digits) >= (b.power, b.digits) { (a, b) } else { (b, a) };
        let by = (large.power - small.power).min(127) as u32;
        let lost = small.digits & ((1 << by) - 1) != 0;
        let moved = small.digits >> by | u128::from(lost);
        if large.negative == small.negative {
            return Self { digits: large.digits + moved, ..large };
        }
        match large.digits - moved {
            0 => Self { negative: mode == Mode::Down, digits: 0, power: 0 },
            digits => Self { digits, ..large },
        }
    }

    /// The number of a format that it is rounded to.
    fn round(self, format: Format, mode: Mode) -> f64 {
        let sign = if self.negative { -1.0 } else { 1.0 };
        let length = 128 - self.digits.leading_zeros() as i32;
        let drop = (length - format.digits).max(format.least - self.power);
        let (mut digits, power) = (self.digits, self.power + drop.max(0));
        if drop > 0 {
            let by = drop.min(127) as u32;
            let rest = digits & ((1 << by) - 1);
            let half = 1u128 << (by - 1);
            digits >>= by;
            // All of it is below a half where more was dropped than there is.
            let (above, tie) = if drop > 127 { (false, false) } else { (rest > half, rest == half) };
            let more = match mode {
                Mode::Nearest => above || tie && digits & 1 != 0,
                Mode::Up => rest != 0 && !self.negative,
                Mode::Down => rest != 0 && self.negative,
                Mode::Zero => false,
            };
            digits += u128::from(more);
        }
        let size = scaled(digits, power);
        let beyond = match mode {
            Mode::Nearest => true,
            Mode::Up => !self.negative,
            Mode::Down => self.negative,
            Mode::Zero => false,
        };
        sign * match size {
            size if size <= format.greatest => size,
            _ if beyond => f64::INFINITY,
            _ => format.greatest,
        }
    }
}

/// Digits that f64 holds times a power of two, infinite beyond its greatest number.
fn scaled(digits: u128, power: i32) -> f64 {
    let length = 128 - digits.leading_zeros() as i32;
    if digits != 0 && power + length > 1024 {
        return f64::INFINITY;
    }
    if digits == 0 {
        return 0.0;
    }
    // Digits of f64 may end in zeros that no format has room for.
    let (digits, power) = if length > 64 { (digits >> (length - 64), power + length - 64) } else { (digits, power) };
    let two = |power: i32| f64::from_bits(((power.clamp(-1022, 1023) + 1023) as u64) << 52);
    let half = power / 2;
    digits as f64 * two(half) * two(power - half)
}

/// A way to round to a format.
#[derive(Clone, Copy, Debug)]
pub struct Rounder {
    /// To which numbers.
    pub format: Format,
    /// To which of them.
    pub mode: Mode,
}

impl Rounder {
    /// A sum.
    #[must_use]
    pub fn add(self, a: f64, b: f64) -> f64 {
        if !a.is_finite() || !b.is_finite() {
            return a + b;
        }
        Exact::of(a).plus(Exact::of(b), self.mode).round(self.format, self.mode)
    }

    /// A product.
    #[must_use]
    pub fn multiply(self, a: f64, b: f64) -> f64 {
        if !a.is_finite() || !b.is_finite() {
            return a * b;
        }
        Exact::of(a).times(Exact::of(b)).round(self.format, self.mode)
    }

    /// A product and a sum, rounded once.
    #[must_use]
    pub fn multiply_add(self, a: f64, b: f64, c: f64) -> f64 {
        if !a.is_finite() || !b.is_finite() || !c.is_finite() {
            return a.mul_add(b, c);
        }
        Exact::of(a).times(Exact::of(b)).plus(Exact::of(c), self.mode).round(self.format, self.mode)
    }

    /// A value times a power of two.
    #[must_use]
    pub fn scale(self, value: f64, power: i32) -> f64 {
        if !value.is_finite() {
            return value;
        }
        let exact = Exact::of(value);
        Exact { power: exact.power + power.clamp(-5000, 5000), ..exact }.round(self.format, self.mode)
    }

    /// The value itself.
    #[must_use]
    pub fn value(self, value: f64) -> f64 {
        self.scale(value, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [Mode; 4] = [Mode::Nearest, Mode::Up, Mode::Down, Mode::Zero];

    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 ^ self.0 >> 29
        }

        /// Any f64, of all exponents or of those about 1.
        fn double(&mut self) -> f64 {
            let bits = self.next();
            let near = bits & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000;
            let value = f64::from_bits(if self.next().is_multiple_of(3) { bits } else { near });
            if value.is_finite() { value } else { 1.0 }
        }
    }

    #[test]
    fn nearest_is_what_the_processor_does() {
        let mut noise = Noise(1);
        let double = Rounder { format: DOUBLE, mode: Mode::Nearest };
        let single = Rounder { format: SINGLE, mode: Mode::Nearest };
        for _ in 0..200_000 {
            let (a, b, c) = (noise.double(), noise.double(), noise.double());
            assert_eq!(double.add(a, b).to_bits(), (a + b).to_bits(), "{a:e} + {b:e}");
            assert_eq!(double.multiply(a, b).to_bits(), (a * b).to_bits(), "{a:e} * {b:e}");
            assert_eq!(double.multiply_add(a, b, c).to_bits(), a.mul_add(b, c).to_bits(), "{a:e} * {b:e} + {c:e}");
            assert_eq!(single.value(a).to_bits(), f64::from(a as f32).to_bits(), "{a:e}");
            let [x, y, z] = [a as f32, b as f32, c as f32];
            if x.is_finite() && y.is_finite() && z.is_finite() {
                let sum = single.multiply_add(x.into(), y.into(), z.into());
                assert_eq!((sum as f32).to_bits(), x.mul_add(y, z).to_bits(), "{x:e} * {y:e} + {z:e}");
            }
        }
    }

    /// Where whole numbers tell what is exact.
    #[test]
    fn directed_results_enclose_what_is_exact() {
        let mut noise = Noise(2);
        for _ in 0..100_000 {
            let [a, b, c] = [0; 3].map(|_: i32| (noise.next() >> 40) as i64 - (1 << 23));
            let exact = i128::from(a) * i128::from(b) + i128::from(c);
            let f = |mode| {
                let value = Rounder { format: SINGLE, mode }.multiply_add(a as f64, b as f64, c as f64);
                assert_eq!(f64::from(value as f32), value);
                value as i128
            };
            let [near, up, down, zero] = MODES.map(f);
            assert!(down <= exact && exact <= up && (near == up || near == down), "{a} * {b} + {c}");
            assert_eq!(zero, if exact < 0 { up } else { down });
            // No f32 is between.
            assert!(up == down || (down as f32).next_up() as i128 == up, "{a} * {b} + {c}");
            assert!((exact - near).abs() <= (exact - up).abs().min((exact - down).abs()));
        }
    }

    #[test]
    fn ends_of_formats() {
        let of = |format, value: f64| MODES.map(|mode| Rounder { format, mode }.value(value));
        let (most, infinite) = (65504.0, f64::INFINITY);
        assert_eq!(of(HALF, 1e9), [infinite, infinite, most, most]);
        assert_eq!(of(HALF, -1e9), [-infinite, -most, -infinite, -most]);
        assert_eq!(of(HALF, 65519.0), [most, infinite, most, most]);
        let least = 2f64.powi(-24);
        assert_eq!(of(HALF, 1e-30), [0.0, least, 0.0, 0.0]);
        assert_eq!(of(HALF, -1e-300), [0.0, 0.0, -least, 0.0]);
        let zeros = MODES.map(|mode| Rounder { format: SINGLE, mode }.add(1.0, -1.0).is_sign_negative());
        assert_eq!(zeros, [false, false, true, false]);
        assert_eq!(Rounder { format: DOUBLE, mode: Mode::Up }.scale(1.0, -4000), 5e-324);
    }
}
