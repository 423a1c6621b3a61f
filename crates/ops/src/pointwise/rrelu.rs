//! Leaky relu with a random slope for each negative element.

use crate::check;
use crate::operator::Operator;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::overloads;
use crate::pointwise::elementwise::{self, Out, float_operator};
use crate::pointwise::kernel::{self, Input};
use crate::random::philox::fill_uniform;

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] =
    &[&overloads!(rrelu, "aten::rrelu_with_noise", "aten::rrelu_with_noise_", "aten::rrelu_with_noise.out" @ 6)];

/// `rrelu_with_noise(self, noise, lower, upper, training, generator)`: in training the noise becomes each element's
/// slope, 1 where the element is positive.
fn rrelu(call: &mut Call, out: Out) -> Result<()> {
    let (x, noise) = (call.tensor(0)?.clone(), call.tensor(1)?.clone());
    let (lower, upper, training) = (call.double(2)?, call.double(3)?, call.flag(4)?);
    if !training {
        let slope = [Number::Double((lower + upper) / 2.0)];
        return float_operator(call, out, "rrelu", &[0], &slope, |_, v| v[0].gt(0).select(v[0], v[0] * v[1]));
    }
    elementwise::check_float(call, 0, "rrelu_with_noise_out_cpu")?;
    check!(
        x.sizes == noise.sizes,
        Runtime,
        "noise tensor shape must match self tensor shape. Got self.shape = {:?} noise.shape = {:?}",
        x.sizes.as_slice(),
        noise.sizes.as_slice()
    );
    check!(lower <= upper, Runtime, "Expected from <= to to be true, but got false: lower={lower}, upper={upper}");
    let dtype = x.dtype;
    let out = elementwise::result_tensor(call, out, dtype, &[Input::Tensor(x.clone())])?;
    fill_uniform(call, 5, &noise, lower, upper)?;
    let inputs = [Input::Tensor(x), Input::Tensor(noise.clone())];
    kernel::run(call, "rrelu_noise", 0, &[&out, &noise], &inputs, dtype, |_, v| {
        let negative = v[0].le(0);
        vec![negative.select(v[0] * v[1], v[0]), negative.select(v[1], v[1].like(1.0))]
    })?;
    call.ret(out);
    Ok(())
}
