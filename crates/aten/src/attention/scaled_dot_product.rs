//! Scaled dot-product attention, by PyTorch's interface of fused attention, and its gradients.

use crate::operator::call::{Call, Ret};
use crate::operator::error::{Error, Result};
use crate::{check, group, operators};
use dml_compute::attention::scaled_dot_product::{Attention, in_order_of, sizes};
use dml_compute::dtype::accumulator;
use dml_compute::random::philox::{draw, write_source};
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward({Operands}) {
        hot "aten::_scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
    }
    backward(grad_out, {Operands}, grad_input_mask, {Saved}).declines() {
        hot "aten::_scaled_dot_product_fused_attention_overrideable_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor attn_bias, bool[4] grad_input_mask, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor grad_attn_bias)",
    }
}

group! {
    /// What both directions take.
    #[derive(Copy, Clone)]
    struct Operands<'a> {
        query: &'a View,
        key: &'a View,
        value: &'a View,
        attn_bias: Option<&'a View>,
        dropout_p: f64,
        is_causal: bool,
        scale: Option<f64>,
    }
}

group! {
    /// What the forward pass returned.
    struct Saved<'a> {
        out: &'a View,
        logsumexp: &'a View,
        philox_seed: Option<&'a View>,
        philox_offset: Option<&'a View>,
    }
}

/// Checks arguments.
fn checked(call: &Call, operands: Operands) -> Result<Attention> {
    let Operands { query, key, value, attn_bias: bias, dropout_p: dropout, is_causal: causal, scale } = operands;
    for t in [query, key, value] {
        check!(t.dim() == 4, Runtime, "{}: expected 4-dimensional tensors, but got {}", call.name, t.describe());
        check!(
            t.dtype == query.dtype && t.dtype.is_float(),
            Runtime,
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and \
                 value.dtype: {} instead.",
            query.dtype,
            key.dtype,
            value.dtype
        );
    }
    let ([batch, heads, length, width], [keys, values]) = (sizes(query), [sizes(key), sizes(value)]);
    check!(
        keys[..3] == values[..3] && keys[0] == batch && keys[3] == width && keys[1] > 0 && heads % keys[1] == 0,
        Runtime,
        "{}: the sizes of query {:?}, key {:?} and value {:?} do not match",
        call.name,
        query.sizes.as_slice(),
        key.sizes.as_slice(),
        value.sizes.as_slice()
    );
    let bias = match bias {
        None => None,
        Some(t) => {
            let want = [batch, heads, length, keys[2]];
            check!(
                t.dim() <= 4 && call.broadcast(&t.sizes, &want)?[..] == want,
                Runtime,
                "{}: a mask of size {:?} does not broadcast to the scores' size {want:?}",
                call.name,
                t.sizes.as_slice()
            );
            check!(t.dtype.is_float(), Runtime, "{}: a mask of {} is not supported", call.name, t.dtype);
            Some(t.expand(&want))
        }
    };
    check!((0.0..=1.0).contains(&dropout), Runtime, "dropout probability has to be between 0 and 1, but got {dropout}");
    let scale = scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt());
    let [query, key, value] = [query, key, value].map(View::clone);
    Ok(Attention { query, key, value, bias, causal, scale, dropout, random: None })
}

fn forward(call: &mut Call, operands: Operands) -> Result<()> {
    let mut attention = checked(call, operands)?;
    let [batch, heads, queries, _] = sizes(&attention.query);
    let [.., keys, width] = sizes(&attention.value);
    let out = in_order_of(call, &attention.query, &[batch, heads, queries, width])?;
    let saved = call.empty(accumulator(out.dtype), &[batch, heads, queries])?;
    let random = [call.empty(DType::I64, &[])?, call.empty(DType::I64, &[])?];
    if attention.dropout > 0.0 {
        write_source(call, draw(call, None, attention.random_blocks())?, &random)?;
        attention.random = Some(random.clone());
    }
    attention.forward(call, &out, &saved)?;
    let [seed, offset] = random.map(Ret::Tensor);
    let lengths = [queries, keys].map(|n| Ret::Scalar(Number::Int(n)));
    call.ret(out);
    call.ret(saved);
    for value in [Ret::None, Ret::None].into_iter().chain(lengths).chain([seed, offset, Ret::None]) {
        call.ret_value(value);
    }
    Ok(())
}

fn backward(call: &mut Call, grad: Option<&View>, operands: Operands, wanted: &[u8], saved: Saved) -> Result<()> {
    let Operands { query, key, value, .. } = operands;
    let Saved { out, logsumexp: saved, philox_seed: seed, philox_offset: offset } = saved;
    let Some(grad) = grad else {
        (0..4).for_each(|_| call.ret_value(Ret::None));
        return Ok(());
    };
    let mut attention = checked(call, operands)?;
    let wants = |i: usize| wanted.get(i).is_some_and(|&w| w != 0);
    check!(
        !(wants(3) && attention.bias.is_some()),
        NotImplemented,
        "{}: the gradient of a mask is computed by the math backend alone",
        call.name
    );
    let [batch, heads, queries, _] = sizes(&attention.query);
    check!(
        grad.sizes == out.sizes && grad.dtype == out.dtype && saved.sizes[..] == [batch, heads, queries],
        Runtime,
        "{}: expected a gradient like the result {}, but got {}",
        call.name,
        out.describe(),
        grad.describe()
    );
    if attention.dropout > 0.0 {
        let (Some(seed), Some(offset)) = (seed, offset) else {
            return Err(Error::Runtime(format!("{}: dropout needs the forward call's random numbers", call.name)));
        };
        attention.random = Some([seed.clone(), offset.clone()]);
    }
    let make = |wanted: bool, of: &View| wanted.then(|| in_order_of(call, of, &of.sizes)).transpose();
    let results = [make(wants(0), query)?, make(wants(1), key)?, make(wants(2), value)?];
    attention.gradients(call, grad, out, saved, results.each_ref().map(Option::as_ref))?;
    for result in results {
        call.ret_value(result.map_or(Ret::None, Ret::Tensor));
    }
    call.ret_value(Ret::None);
    Ok(())
}
