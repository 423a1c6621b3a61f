//! Fills tensors with samples whose distribution is the same for all elements. Invocation `i`
//! encrypts counter `first + i` and makes samples of the four words.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::tensor::overlap;
use dml_compute::random::Generator;
use dml_compute::random::fill::{Arguments, Sample, Spec, is_flat};
use dml_compute::random::philox::{draw, is_stored, per_block};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_compute::view::layout::Layout;

/// Fills `out` with samples. `numbers` are those of [`Sample`].
pub fn fill(call: &Call, generator: Option<&Generator>, sample: Sample, out: &View, numbers: &[Number]) -> Result<()> {
    overlap::check_internal(out)?;
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let each = per_block(sample.dtype(out.dtype));
    let blocks = (numel as u64).div_ceil(u64::from(each));
    let source = draw(call, generator, blocks)?;
    let layout = Layout::new(&[out]);
    let together = is_flat(&layout) && out.data.is_multiple_of(u64::from(each) * out.dtype.bytes());
    let spec = Spec { sample, out: out.dtype, layout: layout.spec(), together, stored: is_stored(source) };
    Ok(call.run_threads(&spec, &Arguments { out, source, numbers: numbers.into(), numel, layout: &layout }, blocks)?)
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
