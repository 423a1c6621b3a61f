//! Random numbers of distributions whose parameters are tensors: normal, Bernoulli, Poisson,
//! binomial, gamma, Dirichlet.
//!
//! Each element has a counter of its own, and draws as many blocks of random words under it as its
//! method takes: most methods reject some of their candidates.

use crate::context::Context;
use crate::error::Result;
use crate::fault::{Fault, Refusal};
use crate::pointwise::function::{Domain, Guard};
use crate::primitives::kernel::{Input as Read, KernelSpec, Output};
use crate::random::Generator;
use crate::random::methods::{self, Stream};
use crate::random::philox::{Source, draw, is_stored, sample_dtype};
use crate::view::View;
use crate::view::layout::{Layout, LayoutSpec, Walked};
use dml_engine::interface::{Each, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value};
use smallvec::SmallVec;

/// What is drawn, with the parameters that it takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Ones with probability `p`.
    Bernoulli,
    /// Of `mean`.
    Poisson,
    /// Of `count, p`.
    Binomial,
    /// Of `shape`, of scale 1.
    Gamma,
}

impl Distribution {
    #[cfg(test)]
    fn parameters(self) -> usize {
        if self == Distribution::Binomial { 2 } else { 1 }
    }

    /// What to say of parameters that it does not take, if there are such.
    fn refusal(self) -> Option<&'static str> {
        match self {
            Distribution::Bernoulli => Some("bernoulli: a probability is not between 0 and 1"),
            Distribution::Poisson => Some("poisson: a rate is negative"),
            Distribution::Binomial => None,
            Distribution::Gamma => Some("a shape of a gamma distribution is negative"),
        }
    }

    /// A sample; `v` are the parameters in their compute type.
    fn sample<'b>(self, s: &Stream<'b>, v: &[Value<'b>]) -> Value<'b> {
        match self {
            Distribution::Bernoulli => {
                let p = v[0].cast(s.dtype.compute());
                s.refuse(!(p.ge(0) & p.le(1)));
                s.units()[0].lt(p)
            }
            Distribution::Poisson => methods::poisson(s, v[0]),
            Distribution::Binomial => methods::binomial(s, v[0], v[1]),
            Distribution::Gamma => methods::gamma(s, v[0]),
        }
    }
}

/// Everything that changes the code.
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
        fault: Option<Fault> = s.distribution.refusal().map(|_| ()),
        numel: Index = s.layout.index,
        layout: Walked = s.layout,
    }
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
        fault: distribution.refusal().map(|message| cx.fault_of_value(message)),
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
                drawn: b.var(b.u32(0)),
                fault: p.fault,
                dtype: sample_dtype(self.out),
            };
            let offsets = p.layout.offsets(b, i);
            let values: Vec<Value> = p.parameters.iter().zip(&offsets[1..]).map(|(t, &at)| t.load(at)).collect();
            p.out.store(offsets[0], self.distribution.sample(&stream, &values));
        });
    }
}

/// What a tensor of deviations, the third operand, must hold.
pub const STD: [Guard; 1] = [Guard {
    operand: 2,
    domain: Domain::Deviation,
    refusal: Refusal::Value("normal expects all elements of std >= 0.0"),
}];

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
