//! Samples from rows of weights: multinomial.
//!
//! Without replacement the samples are the largest values of `weight / exponential` (P. Efraimidis
//! and P. Spirakis, "Weighted random sampling with a reservoir", 2006); with replacement the
//! running sums of the weights are searched.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::random::fill::fill;
use crate::{check, operators};
use dml_compute::primitives::row_operands::Operands;
use dml_compute::random::Generator;
use dml_compute::random::fill::Sample;
use dml_compute::random::multinomial::{scores as divide, search};
use dml_compute::random::philox::sample_dtype;
use dml_compute::reduction::histogram::extremes;
use dml_compute::reduction::{extremum, scan};
use dml_compute::scalar::Scalar as Number;
use dml_compute::sorting::rank;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    multinomial(self, num_samples, replacement, generator, out) {
        "aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
        "aten::multinomial.out(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// Waits for the check of the weights.
fn multinomial(
    call: &mut Call,
    input: &View,
    count: i64,
    replacement: bool,
    generator: Option<Generator>,
    out: Out,
) -> Result<()> {
    check!((1..=2).contains(&input.dim()), Runtime, "prob_dist must be 1 or 2 dim");
    check!(
        input.dtype.is_float(),
        Runtime,
        "multinomial only supports floating-point dtypes for input, got: {}",
        input.dtype
    );
    if let Some(given) = out.given() {
        check!(given.dtype == DType::I64, Runtime, "multinomial expects Long tensor out, got: {}", given.dtype);
    }
    check!(count > 0, Runtime, "cannot sample n_sample <= 0 samples");
    let dim = input.dim() - 1;
    let n = input.sizes[dim];
    check!(
        replacement || count <= n,
        Runtime,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
    );
    check!(n <= 1 << 24, Runtime, "number of categories cannot exceed 2^24");
    let mut sizes = input.sizes.clone();
    sizes[dim] = count;
    let out = structured::result(call, out.given(), DType::I64, &sizes)?;
    if out.numel() > 0 {
        let several = replacement && count > 1;
        check_weights(call, input, dim, several)?;
        if several {
            with_replacement(call, input, dim, generator.as_ref(), &out)?;
        } else {
            without_replacement(call, input, dim, generator.as_ref(), &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

/// For several draws with replacement (`several`) the CPU's error says which weights are invalid.
fn check_weights(call: &Call, input: &View, dim: usize, several: bool) -> Result<()> {
    let [least, most] = extremes(call, input)?.map(Number::to_f64);
    if several {
        let invalid = "invalid multinomial distribution (encountering probability entry";
        check!(least >= 0.0, Runtime, "{invalid} < 0)");
        check!(most < f64::INFINITY, Runtime, "{invalid} = infinity or NaN)");
    }
    check!(
        least >= 0.0 && most < f64::INFINITY,
        Runtime,
        "probability tensor contains either `inf`, `nan` or element < 0"
    );
    let axes = crate::reduction::axes::axes_listed(call, &[dim as i64], input.dim(), false)?;
    let sizes = axes.sizes(&input.sizes);
    let (low, high) = (call.empty(input.dtype, &sizes)?, call.empty(input.dtype, &sizes)?);
    extremum::both(call, input, [&low, &high], axes)?;
    let [least, _] = extremes(call, &high)?.map(Number::to_f64);
    check!(least > 0.0, Runtime, "invalid multinomial distribution (sum of probabilities <= 0)");
    Ok(())
}

fn without_replacement(call: &Call, input: &View, dim: usize, generator: Option<&Generator>, out: &View) -> Result<()> {
    let wide = sample_dtype(input.dtype);
    let scores = call.empty(wide, &input.sizes)?;
    fill(call, generator, Sample::StandardExponential, &scores, &[])?;
    divide(call, input, &scores)?;
    let values = call.empty(wide, &out.sizes)?;
    Ok(rank::first(call, &Operands::new(&scores, dim, &values, out), out.sizes[dim], true, true)?)
}

fn with_replacement(call: &Call, input: &View, dim: usize, generator: Option<&Generator>, out: &View) -> Result<()> {
    let wide = sample_dtype(input.dtype);
    let (sums, noise) = (call.empty(wide, &input.sizes)?, call.empty(wide, &out.sizes)?);
    scan::sums(call, input, &sums, dim)?;
    fill(call, generator, Sample::Unit, &noise, &[])?;
    Ok(search(call, &sums, &noise, out)?)
}
