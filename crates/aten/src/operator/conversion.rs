//! Which numbers a dtype can represent.

use crate::check;
use crate::operator::error::Result;
use dml_compute::bounds::{Bounds, overflow_message};
use dml_compute::scalar::Scalar;
use dml_kernel::DType;
use dml_kernel::float8::Format;

/// Checks that a dtype can represent a number.
pub fn check_fits(value: Scalar, dtype: DType) -> Result<()> {
    let bounds = Bounds::of(dtype);
    let fits = match value {
        Scalar::Int(i) => {
            let (low, high) = bounds.of_integers();
            (low..=high).contains(&i128::from(i))
        }
        // No dtype here is complex.
        Scalar::Complex(_, imaginary) if imaginary != 0.0 => false,
        _ => {
            let x = value.to_f64();
            let (low, high) = bounds.of_floats();
            (low <= x && x <= high)
                || (bounds.special() && x.is_nan())
                || (bounds.special() && x.is_infinite() && Format::of(dtype).is_none_or(Format::has_infinities))
        }
    };
    check!(fits, Runtime, "{}", overflow_message(dtype));
    Ok(())
}

/// [`check_fits`] for several numbers.
pub fn check_all_fit(numbers: &[Scalar], dtype: DType) -> Result<()> {
    numbers.iter().try_for_each(|&x| check_fits(x, dtype))
}
