//! Leaky relu with a random slope for each negative element.

use crate::operator::argument::{AnyTensor, Out};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator::{check_float, float_operator, result_tensor, strided};
use crate::random::fill::uniform;
use crate::{check, operators};
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::pointwise::rrelu as functions;
use dml_compute::random::Generator;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    rrelu(self, noise, lower, upper, training, generator, out) {
        "aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
        "aten::rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)",
        "aten::rrelu_with_noise.out(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// In training the noise is overwritten by each element's slope, 1 where the element is positive. A
/// new result is contiguous.
fn rrelu(
    call: &mut Call,
    x: &View,
    noise: &View,
    lower: f64,
    upper: f64,
    training: bool,
    generator: Option<Generator>,
    out: Out,
) -> Result<()> {
    let (mut result, contiguous) = (None, View::contiguous_strides(&x.sizes));
    let out = strided(call, out, &mut result, x.dtype, (&x.sizes, &contiguous))?;
    if !training {
        let slope = [Number::Double((lower + upper) / 2.0)];
        return float_operator(call, out, &functions::RRELU, &[AnyTensor(x)], &slope);
    }
    check_float(x, "rrelu_with_noise_out_cpu")?;
    check!(
        x.sizes == noise.sizes,
        Runtime,
        "noise tensor shape must match self tensor shape. Got self.shape = {:?} noise.shape = {:?}",
        x.sizes.as_slice(),
        noise.sizes.as_slice()
    );
    check!(lower <= upper, Runtime, "Expected from <= to to be true, but got false: lower={lower}, upper={upper}");
    let dtype = x.dtype;
    let out = result_tensor(call, out, dtype, &[Input::Tensor(x.clone())])?;
    uniform(call, generator.as_ref(), noise, lower, upper)?;
    let inputs = [x, noise].map(|t| Input::Tensor(t.clone()));
    kernel::run(call, &functions::RRELU_NOISE, &[&out, noise], &inputs, dtype)?;
    call.ret(out);
    Ok(())
}
