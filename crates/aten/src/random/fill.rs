//! Fills tensors with samples from one distribution.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::overlap;
use dml_compute::random::Generator;
use dml_compute::random::fill::{self, Sample};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

/// Fills `out` with samples. `numbers` are the parameters of [`Sample`].
pub fn fill(call: &Call, generator: Option<&Generator>, sample: Sample, out: &View, numbers: &[Number]) -> Result<()> {
    overlap::check_internal(out)?;
    Ok(fill::fill(call, generator, sample, out, numbers)?)
}

/// Fills a float tensor with samples in [from, to).
pub fn uniform(call: &Call, generator: Option<&Generator>, out: &View, from: f64, to: f64) -> Result<()> {
    fill(call, generator, Sample::Uniform, out, &[from, to].map(Number::Double))
}

/// Ones with probability `p`.
pub fn bernoulli(call: &Call, generator: Option<&Generator>, out: &View, p: f64) -> Result<()> {
    check!((0.0..=1.0).contains(&p), Runtime, "bernoulli_ expects p to be in [0, 1], but got p={p}");
    fill(call, generator, Sample::Bernoulli, out, &[Number::Double(p)])
}
