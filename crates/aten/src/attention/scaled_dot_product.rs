//! Scaled dot-product attention, as PyTorch calls a fused one, and its gradients.

use crate::operator::call::{Call, Ret};
use crate::operator::error::{Error, Result};
use crate::{check, operators};
use dml_compute::attention::dropout::Dropping;
use dml_compute::attention::kernel::Arguments;
use dml_compute::attention::matrix::index_of;
use dml_compute::attention::ranges::{join, ranges};
use dml_compute::attention::scaled_dot_product::{
    InnerProducts, has_quads, in_order_of, parts, rows_and_columns, sizes, slice, threads,
};
use dml_compute::attention::spec::{QUAD, Role, Spec};
use dml_compute::attention::units;
use dml_compute::attention::worker::shared_bytes;
use dml_compute::dtype::accumulator;
use dml_compute::primitives::work::multiply_adds;
use dml_compute::random::philox::{draw, write_source};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::fold::Reduction;
use dml_compute::reduction::reduce;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_engine::AdapterKind;
use dml_kernel::{DType, dense};
use smallvec::{SmallVec, smallvec};

operators! {
    forward(query, key, value, attn_bias, dropout_p, is_causal, scale) {
        "aten::_scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
    }
    backward(
        grad_out, query, key, value, attn_bias, grad_input_mask, [out], logsumexp, dropout_p, is_causal, philox_seed,
        philox_offset, scale
    ) {
        "aten::_scaled_dot_product_fused_attention_overrideable_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor attn_bias, bool[4] grad_input_mask, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor grad_attn_bias)",
    }
}

/// Checked arguments.
struct Attention {
    query: View,
    key: View,
    value: View,
    /// Expanded to `[batch, heads, queries, keys]`.
    bias: Option<View>,
    causal: bool,
    scale: f64,
    dropout: f64,
    /// Seed and offset of the random numbers, int64 scalars on the device, where there is dropout.
    random: Option<[View; 2]>,
}

impl Attention {
    fn new(
        call: &Call,
        [query, key, value]: [&View; 3],
        bias: Option<&View>,
        (dropout, causal, scale): (f64, bool, Option<f64>),
    ) -> Result<Attention> {
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
        check!(
            (0.0..=1.0).contains(&dropout),
            Runtime,
            "dropout probability has to be between 0 and 1, but got {dropout}"
        );
        let scale = scale.unwrap_or_else(|| 1.0 / (width as f64).sqrt());
        let [query, key, value] = [query, key, value].map(View::clone);
        Ok(Attention { query, key, value, bias, causal, scale, dropout, random: None })
    }

    /// Enqueues a kernel on matrix units where they can do it, and says whether they can.
    fn run_on_units(
        &self,
        call: &Call,
        role: units::Role,
        outs: [&View; 2],
        saved: &View,
        gradient: Option<[&View; 2]>,
    ) -> Result<bool> {
        let problem = units::Problem {
            role,
            outs,
            inputs: [&self.query, &self.key, &self.value],
            bias: self.bias.as_ref(),
            logs: saved,
            gradient,
            causal: self.causal,
            scale: self.scale,
            dropout: self.random.as_ref().map(|random| (random, self.dropout)),
        };
        Ok(problem.run(call)?)
    }

    /// Enqueues one role's kernel: `out` from `x`, and scores of `query` and `key`. `grad` is the
    /// result's gradient, and its inner products with the result.
    fn run(
        &self,
        call: &Call,
        role: Role,
        out: &View,
        x: &View,
        saved: &View,
        grad: Option<(&View, &View)>,
    ) -> Result<()> {
        if out.numel() == 0 {
            return Ok(());
        }
        let [left, right] = rows_and_columns(role, &self.query, &self.key);
        let gradients = grad.map(|(grad, _)| rows_and_columns(role, grad, &self.value));
        let bias = self.bias.as_ref().map(|t| if role.transposed() { t.transpose(2, 3) } else { t.clone() });
        let mut all: SmallVec<[&View; 8]> = smallvec![out, left, right, x];
        all.extend(gradients.into_iter().flatten());
        all.extend(&bias);
        let [batch, row_heads, rows, width] = sizes(out);
        let columns = right.sizes[2];
        let matrices = [left, right, x].into_iter().chain(gradients.into_iter().flatten());
        let (depth, depth2) = (self.query.sizes[3], self.value.sizes[3]);
        let mut spec = Spec {
            role,
            dtype: out.dtype,
            bias: bias.as_ref().map(|t| t.dtype),
            causal: self.causal,
            dropout: self.random.is_some(),
            index: index_of(&all),
            threads: threads(out.dtype, rows),
            width: slice(out.dtype, width),
            quads: matrices.into_iter().all(has_quads),
            // On a processor nothing waits for memory. Rows without elements have none that could
            // be read before they are asked for.
            prefetch: call.device.info().kind != AdapterKind::Software && depth.min(depth2) > 0,
        };
        let shared_memory = call.device.info().capabilities.max_shared_memory;
        while shared_bytes(&spec) > shared_memory && spec.threads > 32 {
            spec.threads /= 2;
        }
        let (heads, tiles) = (self.query.sizes[1], parts(rows, spec.rows()));
        let slices = parts(width, spec.width);
        let total = batch * row_heads * tiles * slices;
        check!(
            total < i64::from(i32::MAX) && rows.max(columns) < i64::from(i32::MAX),
            Runtime,
            "{}: attention of {:?} queries and {:?} keys is too large",
            call.name,
            self.query.sizes.as_slice(),
            self.key.sizes.as_slice()
        );
        let shared_by = heads / self.key.sizes[1];
        let depths = if role.needs_gradients() { &[depth, depth2][..] } else { &[depth] };
        let like = |t: &View| in_order_of(call, t, &t.sizes);
        let walks = ranges(call, &spec, columns, depths, if role.transposed() { shared_by } else { 1 })?;
        for (i, walked) in walks.into_iter().enumerate() {
            // The first range's result becomes that of all.
            let target = if i == 0 { None } else { Some([like(out)?, like(saved)?]) };
            let [to, sums] = target
                .as_ref()
                .map_or([out, saved], |[to, sums]| [to, if role == Role::Forward { sums } else { saved }]);
            let arguments = Arguments {
                out: to,
                left,
                right,
                x,
                gradients,
                bias: bias.as_ref(),
                saved: sums,
                deltas: grad.map(|(_, deltas)| deltas),
                dropout: self.random.as_ref().map(|random| Dropping { random, probability: self.dropout }),
                depth: depth as u32,
                depth2: depth2 as u32,
                scale: Number::Double(self.scale),
                rows: rows as u32,
                columns: columns as u32,
                walked: walked.map(|column| column as u32),
                width: width as u32,
                heads: heads as u32,
                shared_by: shared_by as u32,
                tiles: tiles as u32,
                slices: slices as u32,
                total: total as u32,
            };
            let heads_walked = if role.transposed() { shared_by } else { 1 };
            let scores = slices * (depth + if role.needs_gradients() { depth2 } else { 0 });
            let count = [batch, row_heads, heads_walked, rows, walked[1] - walked[0], scores + width];
            let operations = multiply_adds(accumulator(out.dtype), count.map(|n| n as u64).iter().product());
            call.run_heavy(&spec, &arguments, dense::folded(total as u64), operations)?;
            if i > 0 {
                join(call, role, [out, saved], [to, sums])?;
            }
        }
        Ok(())
    }
}

#[allow(clippy::too_many_arguments)]
fn forward(
    call: &mut Call,
    query: &View,
    key: &View,
    value: &View,
    bias: Option<&View>,
    dropout: f64,
    causal: bool,
    scale: Option<f64>,
) -> Result<()> {
    let mut attention = Attention::new(call, [query, key, value], bias, (dropout, causal, scale))?;
    let [batch, heads, queries, _] = sizes(&attention.query);
    let [.., keys, width] = sizes(&attention.value);
    let out = in_order_of(call, &attention.query, &[batch, heads, queries, width])?;
    let saved = call.empty(accumulator(out.dtype), &[batch, heads, queries])?;
    let random = [call.empty(DType::I64, &[])?, call.empty(DType::I64, &[])?];
    if attention.dropout > 0.0 {
        // A block of random words serves a quad of keys.
        let blocks = batch * heads * queries * parts(keys, QUAD);
        write_source(call, draw(call, None, blocks as u64)?, &random)?;
        attention.random = Some(random.clone());
    }
    if !attention.run_on_units(call, units::Role::Forward, [&out, &out], &saved, None)? {
        attention.run(call, Role::Forward, &out, value, &saved, None)?;
    }
    let [seed, offset] = random.map(Ret::Tensor);
    let lengths = [queries, keys].map(|n| Ret::Scalar(Number::Int(n)));
    call.ret(out);
    call.ret(saved);
    for value in [Ret::None, Ret::None].into_iter().chain(lengths).chain([seed, offset, Ret::None]) {
        call.ret_value(value);
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn backward(
    call: &mut Call,
    grad: Option<&View>,
    query: &View,
    key: &View,
    value: &View,
    bias: Option<&View>,
    wanted: &[u8],
    out: &View,
    saved: &View,
    dropout: f64,
    causal: bool,
    seed: Option<&View>,
    offset: Option<&View>,
    scale: Option<f64>,
) -> Result<()> {
    let Some(grad) = grad else {
        (0..4).for_each(|_| call.ret_value(Ret::None));
        return Ok(());
    };
    let mut attention = Attention::new(call, [query, key, value], bias, (dropout, causal, scale))?;
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
    let deltas = call.empty(saved.dtype, &saved.sizes)?;
    if wants(0) || wants(1) {
        let axes = Axes::listed(&[-1], 4, false);
        let fold = InnerProducts { dtype: saved.dtype };
        reduce(call, &fold, &Reduction { inputs: &[grad, out], outs: &[&deltas], axes, tables: &[], numbers: &[] })?;
    }
    let gradients = Some((grad, &deltas));
    let make = |wanted: bool, of: &View| wanted.then(|| in_order_of(call, of, &of.sizes)).transpose();
    let results = [make(wants(0), query)?, make(wants(1), key)?, make(wants(2), value)?];
    let on_units = |role, outs| attention.run_on_units(call, role, outs, saved, Some([grad, &deltas]));
    let both = match &results {
        [_, Some(of_key), Some(of_value)] => on_units(units::Role::KeyValue, [of_key, of_value])?,
        _ => false,
    };
    let roles = [
        (Role::Query, units::Role::Query, key, gradients, false),
        (Role::Key, units::Role::Key, query, gradients, both),
        (Role::Value, units::Role::Value, grad, None, both),
    ];
    for (result, (role, unit_role, x, grad, done)) in results.iter().zip(roles) {
        if let Some(result) = result
            && !done
            && !on_units(unit_role, [result, result])?
        {
            attention.run(call, role, result, x, saved, grad)?;
        }
    }
    for result in results {
        call.ret_value(result.map_or(Ret::None, Ret::Tensor));
    }
    call.ret_value(Ret::None);
    Ok(())
}
