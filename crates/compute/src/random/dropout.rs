//! Dropout and its gradient.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::cast;
use crate::pointwise::kernel::{self, Input as Factor};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::random::Generator;
use crate::random::fill::{is_flat, words_of};
use crate::random::functions::APPLY_MASK;
use crate::random::philox::{Source, draw, is_stored, unit};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::{Layout, index_type};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, convert};

/// Draws the mask and applies it in one launch, with the same samples and bits as with two, if
/// result, mask and input have the same strides. Returns whether they do.
pub fn fused_dropout_kernel(
    cx: &Context,
    generator: Option<&Generator>,
    tensors: [&View; 3],
    keep: f64,
    scale: f64,
) -> Result<bool> {
    let [out, mask, input] = tensors;
    let numel = out.numel();
    let wide = tensors.iter().all(|t| t.data.is_multiple_of(u64::from(ELEMENTS_PER_INVOCATION) * t.dtype.bytes()));
    if numel == 0 || !wide || !is_flat(&Layout::new(&tensors)) {
        return Ok(false);
    }
    let blocks = (numel as u64).div_ceil(u64::from(ELEMENTS_PER_INVOCATION));
    let source = draw(cx, generator, blocks)?;
    let index = index_type(numel);
    let spec = DropoutKernel { dtype: input.dtype, mask: mask.dtype, index, stored: is_stored(source) };
    let [keep, scale] = [keep, scale].map(Number::Double);
    cx.run_threads(&spec, &DropArguments { out, mask, input, source, keep, scale, numel }, blocks)?;
    Ok(true)
}

/// Elements of an invocation: the samples from one block of words.
const ELEMENTS_PER_INVOCATION: u32 = 4;

/// Draws a mask and applies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DropoutKernel {
    dtype: DType,
    mask: DType,
    index: ScalarType,
    stored: bool,
}

parameters! {
    DropoutKernel as s => DropArguments, DropParameters {
        out: Output = s.dtype,
        mask: Output = s.mask,
        input: Input = s.dtype,
        source: Source = s.stored,
        keep: InDType = DType::F32,
        scale: InDType = s.dtype,
        numel: Index = s.index,
    }
}

impl KernelSpec for DropoutKernel {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn write<'b>(&self, b: &'b Builder, p: DropParameters<'b>) {
        let block = linear_id(b, self.index);
        let first = block * ELEMENTS_PER_INVOCATION;
        let apply = |x: Value<'b>, stays: Value<'b>| {
            let mask = stays.select(x.like(1.0), x.like(0.0));
            masked(self.dtype, x, mask, p.scale)
        };
        b.if_(first.lt(p.numel), || {
            let samples = unit(words_of(p.source, block), DType::F32);
            let mask: Vec<Value> = samples.into_iter().map(|u| u.lt(p.keep)).collect();
            b.if_else(
                (first + (ELEMENTS_PER_INVOCATION - 1)).lt(p.numel),
                || {
                    let x = p.input.load_chunk(block, ELEMENTS_PER_INVOCATION);
                    let values: Vec<Value> = x.iter().zip(&mask).map(|(&x, &stays)| apply(x, stays)).collect();
                    p.out.store_chunk(block, &values);
                    p.mask.store_chunk(block, &mask);
                },
                || {
                    for (i, &stays) in mask.iter().enumerate() {
                        let at = first + i as u32;
                        b.if_(at.lt(p.numel), || {
                            p.out.store(at, apply(p.input.load(at), stays));
                            p.mask.store(at, stays);
                        });
                    }
                },
            );
        });
    }
}

/// `x * mask * scale`
pub fn apply_mask(cx: &Context, out: &View, x: &View, mask: &View, scale: f64) -> Result<()> {
    let mask = if mask.dtype == DType::Bool { mask.clone() } else { cast(cx, mask, DType::Bool)? };
    let scale = Factor::Number(Number::Double(scale), x.dtype);
    let inputs = [Factor::Tensor(x.clone()), Factor::Tensor(mask), scale];
    kernel::run(cx, APPLY_MASK.of(x.dtype), &[out], &inputs, x.dtype)
}

/// `x * mask * scale`; the first product is rounded to the dtype.
pub(super) fn masked<'b>(dtype: DType, x: Value<'b>, mask: Value<'b>, scale: Value<'b>) -> Value<'b> {
    convert(x * mask, dtype) * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (dtype, mask, index, stored) in [
            (DType::F16, DType::Bool, ScalarType::U32, false),
            (DType::F32, DType::U8, ScalarType::U64, true),
            (DType::F64, DType::Bool, ScalarType::U32, false),
        ] {
            crate::primitives::validate::accepted(&DropoutKernel { dtype, mask, index, stored }.build());
        }
    }
}
