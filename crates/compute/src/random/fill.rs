//! Fills tensors with samples from one distribution. Invocation `i` encrypts counter `first + i`
//! and makes samples of the four words.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{InDType, KernelSpec, Output};
use crate::random::Generator;
use crate::random::philox::{
    Source, Words, draw, is_stored, normals, per_block, philox, sample_dtype, uniform_open, unit,
};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::{Layout, LayoutParameter, LayoutSpec};
use dml_engine::interface::{Each, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};
use smallvec::smallvec;

/// A distribution; the list of numbers has its parameters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sample {
    /// In `[from, to)`.
    Uniform,
    /// In `[0, 1)`.
    Unit,
    /// Parameters: `mean, std`.
    Normal,
    /// Mean 0 and standard deviation 1.
    StandardNormal,
    /// Exponentials of normal samples of `mean, std`.
    LogNormal,
    /// Parameters: `median, sigma`. The tangent of a uniform angle.
    Cauchy,
    /// Number of trials until the first success. Parameter: `log(1 - p)`.
    Geometric,
    /// Parameter: `lambda`.
    Exponential,
    /// Exponential of rate 1, without a parameter: multinomial divides by it.
    StandardExponential,
    /// Ones with probability `p`.
    Bernoulli,
    /// Integers. Parameters: `from, range`, with a range of less than 2^32.
    Integers,
    /// Integers. Parameters: `from, range`.
    WideIntegers,
}

impl Sample {
    /// The dtype of the parameters, and of the samples before they are stored to a tensor of dtype
    /// `out`.
    pub fn dtype(self, out: DType) -> DType {
        match self {
            Sample::Geometric => sample_dtype(out),
            Sample::Bernoulli => DType::F32,
            Sample::Integers => DType::I32,
            Sample::WideIntegers => DType::I64,
            _ => out,
        }
    }

    /// Number of parameters.
    fn numbers(self) -> usize {
        match self {
            Sample::Unit | Sample::StandardNormal | Sample::StandardExponential => 0,
            Sample::Geometric | Sample::Exponential | Sample::Bernoulli => 1,
            _ => 2,
        }
    }

    /// The samples from a block of words; `v` are the parameters.
    fn values<'b>(self, dtype: DType, words: Words<'b>, v: &[Value<'b>]) -> Vec<Value<'b>> {
        match self {
            Sample::Uniform => unit(words, dtype)
                .into_iter()
                .map(|u| {
                    // Rounding may give `to`, which is not in the range.
                    let x = dml_kernel::convert(u * (v[1] - v[0]) + v[0], dtype);
                    (x.ge(v[1]) & v[1].gt(v[0])).select(v[0], x)
                })
                .collect(),
            Sample::Unit => unit(words, dtype),
            Sample::Normal => normals(words, dtype).into_iter().map(|z| z * v[1] + v[0]).collect(),
            Sample::StandardNormal => normals(words, dtype),
            Sample::LogNormal => normals(words, dtype).into_iter().map(|z| math::exp(z * v[1] + v[0])).collect(),
            Sample::Cauchy => {
                let angles = uniform_open(words, dtype).into_iter().map(|u| (u - 0.5) * std::f64::consts::PI);
                angles.map(|angle| math::tan(angle) * v[1] + v[0]).collect()
            }
            Sample::Geometric => uniform_open(words, dtype).into_iter().map(|u| (math::log(u) / v[0]).ceil()).collect(),
            Sample::Exponential => uniform_open(words, dtype).into_iter().map(|u| -math::log(u) / v[0]).collect(),
            Sample::StandardExponential => uniform_open(words, dtype).into_iter().map(|u| -math::log(u)).collect(),
            Sample::Bernoulli => unit(words, dtype).into_iter().map(|u| u.lt(v[0])).collect(),
            Sample::Integers => {
                let (from, range) = (v[0], v[1].bitcast(ScalarType::U32));
                // High half of the product: the word as a fraction of the range.
                words.iter().map(|w| w.mul_high(range).bitcast(ScalarType::I32) + from).collect()
            }
            Sample::WideIntegers => {
                let (from, range) = (v[0], v[1].bitcast(ScalarType::U64));
                [(words[0], words[1]), (words[2], words[3])]
                    .into_iter()
                    .map(|(low, high)| {
                        let word = low.cast(ScalarType::U64) | (high.cast(ScalarType::U64) << 32);
                        (word % range).bitcast(ScalarType::I64) + from
                    })
                    .collect()
            }
        }
    }
}

/// Fills `out` with samples. `numbers` are the parameters of [`Sample`]. Elements of `out` do not
/// share memory.
pub fn fill(cx: &Context, generator: Option<&Generator>, sample: Sample, out: &View, numbers: &[Number]) -> Result<()> {
    let numel = out.numel();
    if numel == 0 {
        return Ok(());
    }
    let each = per_block(sample.dtype(out.dtype));
    let blocks = (numel as u64).div_ceil(u64::from(each));
    let source = draw(cx, generator, blocks)?;
    let layout = Layout::new(&[out]);
    let together = is_flat(&layout) && out.data.is_multiple_of(u64::from(each) * out.dtype.bytes());
    let spec = Spec { sample, out: out.dtype, layout: layout.spec(), together, stored: is_stored(source) };
    cx.run_threads(&spec, &Arguments { out, source, numbers: numbers.into(), numel, layout: &layout }, blocks)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    sample: Sample,
    out: DType,
    layout: LayoutSpec,
    /// The samples of a block are adjacent, and are stored in one access.
    together: bool,
    stored: bool,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        source: Source = s.stored,
        numbers: Each<InDType> = smallvec![s.sample.dtype(s.out); s.sample.numbers()],
        numel: Index = s.layout.index,
        layout: LayoutParameter = s.layout,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.sample {
            Sample::Uniform => "uniform",
            Sample::Unit => "unit",
            Sample::Normal => "normal",
            Sample::StandardNormal => "normals",
            Sample::LogNormal => "log_normal",
            Sample::Cauchy => "cauchy",
            Sample::Geometric => "geometric",
            Sample::Exponential => "exponential",
            Sample::StandardExponential => "multinomial_noise",
            Sample::Bernoulli => "bernoulli",
            Sample::Integers => "random",
            Sample::WideIntegers => "random_wide",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let (words, index, dtype) = (p.source, self.layout.index, self.sample.dtype(self.out));
        let block = linear_id(b, index);
        let first = block * per_block(dtype);
        b.if_(first.lt(p.numel), || {
            let values = self.sample.values(dtype, words_of(words, block), &p.numbers);
            let singly = || {
                for (i, &value) in values.iter().enumerate() {
                    let at = first + i as u32;
                    b.if_(at.lt(p.numel), || p.out.store(p.layout.offsets(b, at)[0], value));
                }
            };
            if self.together {
                let whole = (first + (per_block(dtype) - 1)).lt(p.numel);
                b.if_else(whole, || p.out.store_chunk(block, &values), singly);
            } else {
                singly();
            }
        });
    }
}

/// Whether the layout's order is the order of memory, element by element.
pub fn is_flat(layout: &Layout) -> bool {
    layout.rank() == 1 && layout.strides.iter().all(|strides| strides[0] == 1)
}

/// The random words of a block, given its index in the kernel's and the [`Source`].
pub fn words_of<'b>(source: Words<'b>, block: Value<'b>) -> Words<'b> {
    let b = block.builder();
    let low_index = block.cast(ScalarType::U32);
    let low = source[2] + low_index;
    let carry = low.lt(low_index).cast(ScalarType::U32);
    let high_index = if block.scalar() == ScalarType::U64 { (block >> 32).cast(ScalarType::U32) } else { b.u32(0) };
    philox(b, [low, source[3] + carry + high_index, b.u32(0), b.u32(0)], [source[0], source[1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        let floats = [
            Sample::Uniform,
            Sample::Unit,
            Sample::Normal,
            Sample::StandardNormal,
            Sample::LogNormal,
            Sample::Cauchy,
            Sample::Geometric,
            Sample::Exponential,
            Sample::StandardExponential,
        ];
        let others = [Sample::Bernoulli, Sample::Integers, Sample::WideIntegers];
        let floats =
            floats.into_iter().flat_map(|sample| [DType::F16, DType::F32, DType::F64].map(|out| (sample, out)));
        let others = others.into_iter().flat_map(|sample| [DType::U8, DType::I64].map(|out| (sample, out)));
        for (sample, out) in floats.chain(others) {
            for (stored, index, rank) in [(false, ScalarType::U32, 1), (true, ScalarType::U64, 3)] {
                let layout = LayoutSpec { rank, operands: 1, index };
                let together = rank == 1;
                crate::primitives::validate::accepted(&Spec { sample, out, layout, together, stored }.build());
            }
        }
    }
}
