//! Division by a number that is the same for a whole launch, as a multiplication (Granlund and
//! Montgomery, "Division by invariant integers using multiplication", PLDI 1994).

use dml_engine::interface::U32;
use dml_engine::{ArgumentBlock, Parameter};
use dml_kernel::{Builder, ScalarType, Value};

/// `2^(31 + shift) / d` rounded up, and `shift = ceil(log2 d)`: then `x / d` is the high word of
/// `2 x * multiplier`, shifted, for every `x` below 2^31.
fn magic(d: u32) -> (u32, u32) {
    let shift = d.next_power_of_two().ilog2();
    ((1u64 << (31 + shift)).div_ceil(u64::from(d)) as u32, shift)
}

/// Kernel parameter: a divisor (at least 1, below 2^31).
pub struct Divisor;

/// A [`Divisor`] in a kernel.
#[derive(Copy, Clone)]
pub struct DivisorParams<'b> {
    value: Value<'b>,
    multiplier: Value<'b>,
    shift: Value<'b>,
}

impl Parameter for Divisor {
    type Type = ();
    type Argument<'a> = i64;
    type Declared<'b> = DivisorParams<'b>;

    fn declare<'b>(b: &'b Builder, name: &str, (): &()) -> DivisorParams<'b> {
        let value = b.param(name, ScalarType::U32);
        let multiplier = b.param(&format!("{name}_multiplier"), ScalarType::U32);
        DivisorParams { value, multiplier, shift: b.param(&format!("{name}_shift"), ScalarType::U32) }
    }

    #[inline]
    fn pass(d: &i64, (): &(), block: &mut ArgumentBlock) {
        let (multiplier, shift) = magic(*d as u32);
        for word in [*d as u32, multiplier, shift] {
            U32::pass(&word, &(), block);
        }
    }
}

impl<'b> DivisorParams<'b> {
    /// The divisor.
    pub fn value(self) -> Value<'b> {
        self.value
    }

    /// Quotient and remainder of a u32 below 2^31.
    pub fn divide(self, x: Value<'b>) -> (Value<'b>, Value<'b>) {
        let quotient = (x << 1).mul_high(self.multiplier) >> self.shift;
        (quotient, x - quotient * self.value)
    }
}

#[cfg(test)]
mod tests {
    use crate::matmul::divisor::magic;

    #[test]
    fn exact_below_two_to_the_31() {
        let divisors = (1..2000u32).chain([4095, 4096, 4097, 65_535, 1 << 20, (1 << 30) + 1, (1 << 31) - 1]);
        for d in divisors {
            let (multiplier, shift) = magic(d);
            let near = [0, 1, d - 1, d, d + 1, d.wrapping_mul(1000), (1 << 31) - 1, (1u32 << 31) / d * d];
            for x in near.into_iter().flat_map(|x| [x.saturating_sub(1), x]).filter(|x| *x < 1 << 31) {
                let quotient = ((u64::from(x << 1) * u64::from(multiplier)) >> 32 >> shift) as u32;
                assert_eq!(quotient, x / d, "{x} / {d}");
            }
        }
    }
}
