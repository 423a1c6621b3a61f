//! Dropout and its gradient.

use crate::movement::copy::{cast, device_copy, fill_with};
use crate::operator::argument::{AnyTensor, Generator, Out};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::pointwise::arithmetic::product;
use crate::pointwise::kernel::{self, Input as Factor};
use crate::pointwise::operator::{Argument, Rule, common_dtype, input, operator_of, result_tensor};
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::random::fill::{bernoulli, is_flat, words_of};
use crate::random::philox::{Source, draw, is_stored, unit};
use crate::tensor::Tensor;
use crate::tensor::layout::{Layout, index_type};
use crate::{check, operators};
use dml_engine::{interface::Index, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, convert};

operators! {
    native_dropout(input, p, train) {
        "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    }
    native_dropout_backward(grad_output, mask, scale) {
        "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    }
    fused_dropout(self, p, generator) {
        "aten::_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)",
    }
    masked_scale(self, mask, scale) {
        "aten::_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
    }
}

/// The result and the mask.
fn native_dropout(call: &mut Call, input: &Tensor, p: f64, train: Option<bool>) -> Result<()> {
    if train.unwrap_or(true) && p != 0.0 {
        check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {p}");
        return dropout(call, input, 1.0 - p, None, DType::Bool);
    }
    let inputs = [Factor::Tensor(input.clone())];
    let out = result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = result_tensor(call, Out::New, DType::Bool, &inputs)?;
    device_copy(call, input, &out)?;
    fill_with(call, &mask, Number::Bool(true))?;
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// The result and the mask; `p` is the probability of staying.
fn fused_dropout(call: &mut Call, input: &Tensor, p: f64, generator: Option<Generator>) -> Result<()> {
    check!((0.0..=1.0).contains(&p), Runtime, "dropout probability has to be between 0 and 1, but got {}", 1.0 - p);
    dropout(call, input, p, generator, DType::U8)
}

/// Elements stay with probability `keep`, scaled so that their mean does too.
fn dropout(call: &mut Call, input: &Tensor, keep: f64, generator: Option<Generator>, mask: DType) -> Result<()> {
    check!(input.dtype.is_float(), NotImplemented, "\"dropout\" not implemented for '{}'", input.dtype);
    let inputs = [Factor::Tensor(input.clone())];
    let out = result_tensor(call, Out::New, input.dtype, &inputs)?;
    let mask = result_tensor(call, Out::New, mask, &inputs)?;
    let scale = if keep == 0.0 { 0.0 } else { 1.0 / keep };
    if !drop_together(call, generator.as_ref(), [&out, &mask, input], keep, scale)? {
        bernoulli(call, generator.as_ref(), &mask, keep)?;
        apply_mask(call, &out, input, &mask, scale)?;
    }
    call.ret(out);
    call.ret(mask);
    Ok(())
}

/// Draws the mask and applies it in one launch, with the samples and bits of two, where result, mask and input lie alike.
/// Returns whether they do.
fn drop_together(
    call: &Call,
    generator: Option<&Generator>,
    tensors: [&Tensor; 3],
    keep: f64,
    scale: f64,
) -> Result<bool> {
    let [out, mask, input] = tensors;
    let numel = out.numel();
    let wide = tensors.iter().all(|t| t.data.is_multiple_of(u64::from(EACH) * t.dtype.bytes()));
    if numel == 0 || !wide || !is_flat(&Layout::new(&tensors)) {
        return Ok(false);
    }
    let blocks = (numel as u64).div_ceil(u64::from(EACH));
    let source = draw(call, generator, blocks)?;
    let index = index_type(numel);
    let spec = Drop { dtype: input.dtype, mask: mask.dtype, index, stored: is_stored(source) };
    let [keep, scale] = [keep, scale].map(Number::Double);
    call.run_threads(&spec, &DropArguments { out, mask, input, source, keep, scale, numel }, blocks)?;
    Ok(true)
}

/// Elements of an invocation: the samples of a block of words.
const EACH: u32 = 4;

/// Draws a mask and applies it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Drop {
    dtype: DType,
    mask: DType,
    index: ScalarType,
    stored: bool,
}

parameters! {
    Drop as s => DropArguments, DropParameters {
        out: Output = s.dtype,
        mask: Output = s.mask,
        input: Input = s.dtype,
        source: Source = s.stored,
        keep: InDType = DType::F32,
        scale: InDType = s.dtype,
        numel: Index = s.index,
    }
}

impl KernelSpec for Drop {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn write<'b>(&self, b: &'b Builder, p: DropParameters<'b>) {
        let block = linear_id(b, self.index);
        let first = block * EACH;
        let apply = |x: Value<'b>, stays: Value<'b>| {
            let mask = stays.select(x.like(1.0), x.like(0.0));
            masked(self.dtype, &[x, mask, p.scale])
        };
        b.if_(first.lt(p.numel), || {
            let samples = unit(words_of(p.source, block), DType::F32);
            let mask: Vec<Value> = samples.into_iter().map(|u| u.lt(p.keep)).collect();
            b.if_else(
                (first + (EACH - 1)).lt(p.numel),
                || {
                    let x = p.input.load_chunk(block, EACH);
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

/// `grad * mask * scale`, each product in the dtype that its factors meet in: integers become floats with the second.
fn native_dropout_backward(call: &mut Call, grad: AnyTensor, mask: AnyTensor, scale: f64) -> Result<()> {
    let common = common_dtype(call, &[grad, mask]);
    let factors = [Argument::Tensor(grad), Argument::Tensor(mask), Argument::Number(Number::Double(scale))];
    if common.is_float() {
        return operator_of(call, Out::New, Rule::Promote, "apply_mask", &factors, |_, v| masked(common, v));
    }
    let inputs = [input(call, &grad)?, input(call, &mask)?];
    let masked = result_tensor(call, Out::New, common, &inputs)?;
    kernel::run(call, "mul", &[&masked], &inputs, common, |_, v| vec![product(v[0], v[1])])?;
    let factors = [Argument::Tensor(AnyTensor(&masked)), Argument::Scalar(Number::Double(scale))];
    operator_of(call, Out::New, Rule::Promote, "mul", &factors, |_, v| product(v[0], v[1]))
}

/// Of a mask of bytes.
fn masked_scale(call: &mut Call, x: &Tensor, mask: &Tensor, scale: f64) -> Result<()> {
    check!(mask.dtype == DType::U8, Runtime, "mask should be torch.uint8 dtype");
    let inputs = [Factor::Tensor(x.clone()), Factor::Tensor(mask.clone())];
    let out = result_tensor(call, Out::New, x.dtype, &inputs)?;
    apply_mask(call, &out, x, mask, scale)?;
    call.ret(out);
    Ok(())
}

/// `x * mask * scale`
fn apply_mask(call: &Call, out: &Tensor, x: &Tensor, mask: &Tensor, scale: f64) -> Result<()> {
    let mask = if mask.dtype == DType::Bool { mask.clone() } else { cast(call, mask, DType::Bool)? };
    let scale = Factor::Number(Number::Double(scale), x.dtype);
    let inputs = [Factor::Tensor(x.clone()), Factor::Tensor(mask), scale];
    kernel::run(call, "apply_mask", &[out], &inputs, x.dtype, |_, v| vec![masked(x.dtype, v)])
}

/// Of an element, its mask and the scale; the first product is rounded to `dtype`.
fn masked<'b>(dtype: DType, v: &[Value<'b>]) -> Value<'b> {
    convert(v[0] * v[1], dtype) * v[2]
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
            crate::primitives::validate::accepted(&Drop { dtype, mask, index, stored }.build());
        }
    }
}
