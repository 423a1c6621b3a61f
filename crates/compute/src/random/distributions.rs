//! Random numbers of distributions whose parameters are tensors: normal, Bernoulli, Poisson,
//! binomial, gamma, Dirichlet.
//!
//! Each element has a counter of its own, under which it draws as many blocks of random words as
//! needed: most methods reject some of their candidates.

use crate::context::Context;
use crate::error::Result;
use crate::fault::{Fault, Refusal, refused};
use crate::pointwise::function::{Domain, Guard, Variant};
use crate::pointwise::kernel::{self, Input};
use crate::primitives::kernel::{Input as Read, KernelSpec, Output};
use crate::random::Generator;
use crate::random::functions::{DIRICHLET, NORMAL_OF};
use crate::random::methods::{self, Stream};
use crate::random::philox::{Source, draw, is_stored, sample_dtype};
use crate::reduction::axes::Axes;
use crate::reduction::sum::sum_new;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::{Layout, LayoutParameter, LayoutSpec};
use dml_engine::interface::{Each, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};
use smallvec::SmallVec;

/// A distribution, with its parameters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// 1 with probability `p`, else 0.
    Bernoulli,
    /// Poisson, with `mean`.
    Poisson,
    /// Binomial, with `count, p`.
    Binomial,
    /// Gamma with `shape`, and scale 1.
    Gamma,
}

impl Distribution {
    #[cfg(test)]
    fn parameters(self) -> usize {
        if self == Distribution::Binomial { 2 } else { 1 }
    }

    /// The error message for parameters out of range, if there are any.
    fn error_message(self) -> Option<&'static str> {
        match self {
            Distribution::Bernoulli => Some("bernoulli: a probability is not between 0 and 1"),
            Distribution::Poisson => Some("poisson: a rate is negative"),
            Distribution::Binomial => None,
            Distribution::Gamma => Some("a shape of a gamma distribution is negative"),
        }
    }

    /// Draws a sample; `v` are the parameters in their compute type.
    fn sample<'b>(self, s: &Stream<'b>, v: &[Value<'b>]) -> Value<'b> {
        match self {
            Distribution::Bernoulli => {
                let p = v[0].cast(s.dtype.compute());
                s.refuse(!(p.ge(0) & p.le(1)));
                s.uniforms()[0].lt(p)
            }
            Distribution::Poisson => methods::poisson(s, v[0]),
            Distribution::Binomial => methods::binomial(s, v[0], v[1]),
            Distribution::Gamma => methods::gamma(s, v[0]),
        }
    }
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    distribution: Distribution,
    out: DType,
    parameters: SmallVec<[DType; 4]>,
    layout: LayoutSpec,
    stored: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        parameters: Each<Read> = s.parameters.clone(),
        source: Source = s.stored,
        fault: Option<Fault> = s.distribution.error_message().map(|_| ()),
        numel: Index = s.layout.index,
        layout: LayoutParameter = s.layout,
    }
}

/// `out = noise * std + mean` of standard normal samples, `noise`; the others broadcast to it. A
/// deviation that is a tensor must not be negative.
pub fn normal_of(cx: &Context, noise: &View, mean: Input, std: Input, out: &View) -> Result<()> {
    let normal = Variant { unguarded: matches!(std, Input::Number(..)), ..(&NORMAL_OF).into() };
    kernel::run(cx, normal, &[out], &[Input::Tensor(noise.clone()), mean, std], noise.dtype)
}

/// Samples of the Dirichlet distribution, of the shape of its parameters: gamma samples as parts of
/// their sum along the last dimension.
pub fn dirichlet(cx: &Context, generator: Option<&Generator>, shape: &View, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let wide = sample_dtype(shape.dtype);
    let parts = cx.empty(wide, &shape.sizes)?;
    sample(cx, generator, Distribution::Gamma, &parts, &[shape])?;
    let rank = shape.dim();
    let axes = if rank == 0 { Axes::all(true) } else { Axes::of_dims(&[-1], rank, true) };
    let total = sum_new(cx, &parts, axes)?;
    let (least, most) = if wide == DType::F64 {
        (f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0)
    } else {
        (f64::from(f32::MIN_POSITIVE), 1.0 - f64::from(f32::EPSILON) / 2.0)
    };
    let [least, most] = [least, most].map(|x| Input::Number(Number::Double(x), wide));
    kernel::run(cx, &DIRICHLET, &[out], &[Input::Tensor(parts), Input::Tensor(total), least, most], wide)
}

/// Fills `out` with samples; the parameters broadcast to it.
pub fn sample(
    cx: &Context,
    generator: Option<&Generator>,
    distribution: Distribution,
    out: &View,
    parameters: &[&View],
) -> Result<()> {
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let source = draw(cx, generator, numel as u64)?;
    let parameters: SmallVec<[View; 2]> = parameters.iter().map(|t| t.expand(&out.sizes)).collect();
    let strides: SmallVec<[&[i64]; 3]> = [out].into_iter().chain(&parameters).map(|t| t.strides.as_slice()).collect();
    let layout = Layout::row_major(&out.sizes, &strides);
    let spec = Spec {
        distribution,
        out: out.dtype,
        parameters: parameters.iter().map(|t| t.dtype).collect(),
        layout: layout.spec(),
        stored: is_stored(source),
    };
    let arguments = Arguments {
        out,
        parameters: parameters.iter().collect(),
        source,
        fault: distribution.error_message().map(|message| cx.fault_of_value(message)),
        numel,
        layout: &layout,
    };
    cx.run_threads(&spec, &arguments, numel as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.distribution {
            Distribution::Bernoulli => "bernoulli_of",
            Distribution::Poisson => "poisson",
            Distribution::Binomial => "binomial",
            Distribution::Gamma => "standard_gamma",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (words, index) = (p.source, self.layout.index);
        let i = linear_id(b, index);
        b.if_(i.lt(p.numel), || {
            let low = words[2] + i.cast(ScalarType::U32);
            let carry = low.lt(words[2]).cast(ScalarType::U32);
            let high = if index == ScalarType::U64 { (i >> 32).cast(ScalarType::U32) } else { b.u32(0) };
            let stream = Stream {
                b,
                counter: [low, words[3] + carry + high],
                key: [words[0], words[1]],
                blocks_drawn: b.var(b.u32(0)),
                fault: p.fault,
                dtype: sample_dtype(self.out),
            };
            let offsets = p.layout.offsets(b, i);
            let values: Vec<Value> = p.parameters.iter().zip(&offsets[1..]).map(|(t, &at)| t.load(at)).collect();
            p.out.store(offsets[0], self.distribution.sample(&stream, &values));
        });
    }
}

/// The range of the third operand, a tensor of standard deviations.
pub const STD: [Guard; 1] =
    [Guard { operand: 2, domain: Domain::Deviation, refusal: Refusal::Value(refused::DEVIATION) }];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for distribution in
            [Distribution::Bernoulli, Distribution::Poisson, Distribution::Binomial, Distribution::Gamma]
        {
            for (dtype, index, stored) in [(DType::F16, ScalarType::U32, false), (DType::F64, ScalarType::U64, true)] {
                let count = distribution.parameters();
                let parameters = SmallVec::from_elem(dtype, count);
                let layout = LayoutSpec { rank: 2, operands: 1 + count as u32, index };
                accepted(&Spec { distribution, out: dtype, parameters, layout, stored }.build());
            }
        }
    }
}
