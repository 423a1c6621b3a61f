//! Scaled dot-product attention and its gradients, fused: `softmax(scale * query @ key^T + bias) @ value` for every
//! head of `[batch, heads, length, width]`. Where keys have fewer heads than queries, neighbouring heads of queries
//! share one (Ainslie et al., "GQA: training generalized multi-query transformer models", 2023).

mod kernel;
mod masked_softmax;
mod matrix;
mod projection;
mod worker;

use crate::check;
use crate::operator::call::{Call, Ret, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::{Operator, op};
use crate::primitives::launch::Launcher;
use crate::random::philox::{draw, write_source};
use crate::reduction::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::tensor::Tensor;
use crate::tensor::layout;
use crate::tensor::promote::accumulator;
use dml_kernel::{DType, Scalar, Value};
use kernel::{Role, Spec};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[&[Operator]] = &[
    &[
        op("aten::_scaled_dot_product_fused_attention_overrideable", forward),
        op("aten::_scaled_dot_product_fused_attention_overrideable_backward", backward),
    ],
    masked_softmax::OPERATORS,
    projection::OPERATORS,
];

/// Checked arguments.
struct Attention {
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /// Expanded to `[batch, heads, queries, keys]`.
    bias: Option<Tensor>,
    causal: bool,
    scale: f64,
    dropout: f64,
    /// Seed and offset of the random numbers, int64 scalars on the device, where there is dropout.
    random: Option<[Tensor; 2]>,
}

impl Attention {
    fn new(
        call: &Call,
        [query, key, value]: [&Tensor; 3],
        bias: Option<&Tensor>,
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
        let [query, key, value] = [query, key, value].map(Tensor::clone);
        Ok(Attention { query, key, value, bias, causal, scale, dropout, random: None })
    }

    /// Enqueues one role's kernel: `out` from `x`, and scores of `query` and `key`.
    fn run(
        &self,
        call: &Call,
        role: Role,
        out: &Tensor,
        x: &Tensor,
        saved: &Tensor,
        grad: Option<(&Tensor, &Tensor)>,
    ) -> Result<()> {
        if out.numel() == 0 {
            return Ok(());
        }
        let turn = role.transposed();
        let pair = |queries: &Tensor, keys: &Tensor| {
            if turn { [keys.clone(), queries.clone()] } else { [queries.clone(), keys.clone()] }
        };
        let [left, right] = pair(&self.query, &self.key);
        let second = grad.map(|(grad, _)| pair(grad, &self.value));
        let mut all: SmallVec<[&Tensor; 8]> = smallvec![out, &left, &right, x];
        all.extend(second.iter().flatten());
        all.extend(&self.bias);
        let [batch, row_heads, rows, width] = sizes(out);
        let columns = right.sizes[2];
        let spec = Spec {
            role,
            dtype: out.dtype,
            bias: self.bias.as_ref().map(|t| t.dtype),
            causal: self.causal,
            dropout: self.random.is_some(),
            index: matrix::index_of(&all),
            threads: threads(out.dtype, rows),
            width: slice(out.dtype, width),
        };
        let kernel = call.kernel("attention", spec.key(), || kernel::build(&spec))?;
        let index = spec.index;
        let mut launcher = matrix::pass(call.launch(kernel).write(out), out, false, index);
        for t in [&left, &right, x].into_iter().chain(second.iter().flatten()) {
            launcher = matrix::pass(launcher.read(t), t, false, index);
        }
        if let Some(bias) = &self.bias {
            launcher = matrix::pass(launcher.read(bias), bias, turn, index);
        }
        launcher = if role == Role::Forward { launcher.write(saved) } else { launcher.read(saved) };
        if let Some((_, deltas)) = grad {
            launcher = launcher.read(deltas);
        }
        if let Some([seed, offset]) = &self.random {
            let boost = if self.dropout == 1.0 { 0.0 } else { 1.0 / (1.0 - self.dropout) };
            launcher = launcher.read(seed).read(offset).f32((1.0 - self.dropout) as f32);
            launcher = launcher.number(spec.sums(), Number::Double(boost));
        }
        let counts = [self.query.sizes[3], self.value.sizes[3]];
        launcher = numbers(launcher, &counts).number(spec.sums(), Number::Double(self.scale));
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
        launcher = numbers(launcher, &[rows, columns, width]);
        launcher = numbers(launcher, &[heads, heads / self.key.sizes[1], tiles, slices, total]);
        let folds = (total as u64).div_ceil(65_535);
        launcher.groups([(total as u64).div_ceil(folds) as u32, folds as u32, 1])
    }
}

fn sizes(t: &Tensor) -> [i64; 4] {
    std::array::from_fn(|d| t.sizes[d])
}

fn numbers<'c, 'a>(launcher: Launcher<'c, 'a>, all: &[i64]) -> Launcher<'c, 'a> {
    all.iter().fold(launcher, |l, &n| l.u32(n as u32))
}

/// How many parts of `each` hold `n`.
fn parts(n: i64, each: u32) -> i64 {
    (n + i64::from(each) - 1) / i64::from(each)
}

/// Invocations of a workgroup: as many as rows need, and shared memory of 32 KiB allows.
fn threads(dtype: DType, rows: i64) -> u32 {
    let most = if dtype == DType::F64 { 64 } else { 128 };
    match rows {
        ..=16 => 32,
        17..=32 => 64,
        _ => most,
    }
}

/// Columns of x that a workgroup takes: what registers hold.
fn slice(dtype: DType, width: i64) -> u32 {
    let most = if dtype == DType::F64 { 64 } else { 128 };
    (width as u32).next_power_of_two().clamp(32, most)
}

/// A new tensor of these sizes, whose dimensions lie in memory as those of `like`.
fn in_order_of(call: &Call, like: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    let order = layout::order(&like.sizes, &[&like.strides]);
    call.empty_strided(like.dtype, sizes, &layout::dense_strides(sizes, &order))
}

/// `_scaled_dot_product_fused_attention_overrideable(query, key, value, attn_bias, dropout_p, is_causal,
/// return_debug_mask, scale) -> (output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, philox_seed, philox_offset,
/// debug_attn_mask)`
fn forward(call: &mut Call) -> Result<()> {
    let tensors = [call.tensor(0)?, call.tensor(1)?, call.tensor(2)?];
    let options = (call.double(4)?, call.flag(5)?, call.opt_scalar(7)?.map(Number::to_f64));
    let mut attention = Attention::new(call, tensors, call.opt_tensor(3)?, options)?;
    let [batch, heads, queries, _] = sizes(&attention.query);
    let [.., keys, width] = sizes(&attention.value);
    let out = in_order_of(call, &attention.query, &[batch, heads, queries, width])?;
    let saved = call.empty(kernel::sums(out.dtype), &[batch, heads, queries])?;
    let random = [call.empty(DType::I64, &[])?, call.empty(DType::I64, &[])?];
    if attention.dropout > 0.0 {
        // A block of random words serves as many keys as a patch has.
        let blocks = batch * heads * queries * parts(keys, kernel::PATCH);
        write_source(call, draw(call, None, blocks as u64)?, &random)?;
        attention.random = Some(random.clone());
    }
    let value = attention.value.clone();
    attention.run(call, Role::Forward, &out, &value, &saved, None)?;
    let [seed, offset] = random.map(Ret::Tensor);
    let lengths = [queries, keys].map(|n| Ret::Scalar(Number::Int(n)));
    call.ret(out);
    call.ret(saved);
    for value in [Ret::None, Ret::None].into_iter().chain(lengths).chain([seed, offset, Ret::None]) {
        call.ret_value(value);
    }
    Ok(())
}

/// `_scaled_dot_product_fused_attention_overrideable_backward(grad_out, query, key, value, attn_bias,
/// grad_input_mask, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
/// philox_offset, scale) -> (grad_query, grad_key, grad_value, grad_attn_bias)`
fn backward(call: &mut Call) -> Result<()> {
    let Some(grad) = call.opt_tensor(0)? else {
        (0..4).for_each(|_| call.ret_value(Ret::None));
        return Ok(());
    };
    let (out, saved) = (call.tensor(6)?, call.tensor(7)?);
    let tensors = [call.tensor(1)?, call.tensor(2)?, call.tensor(3)?];
    let options = (call.double(12)?, call.flag(13)?, call.opt_scalar(16)?.map(Number::to_f64));
    let mut attention = Attention::new(call, tensors, call.opt_tensor(4)?, options)?;
    let wanted = call.flags(5)?;
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
        attention.random = Some([call.tensor(14)?.clone(), call.tensor(15)?.clone()]);
    }
    let deltas = call.empty(saved.dtype, &saved.sizes)?;
    if wants(0) || wants(1) {
        let axes = Axes::listed(call, &[-1], 4, false)?;
        let fold = InnerProducts { dtype: saved.dtype };
        reduce(call, &fold, &Reduction { inputs: &[grad, out], outs: &[&deltas], axes, tables: &[], numbers: &[] })?;
    }
    let [query, key, value] = [&attention.query, &attention.key, &attention.value].map(Tensor::clone);
    let gradients = Some((grad, &deltas));
    for (i, (role, of, x, grad)) in [
        (Role::Query, &query, &key, gradients),
        (Role::Key, &key, &query, gradients),
        (Role::Value, &value, grad, None),
    ]
    .into_iter()
    .enumerate()
    {
        if wants(i) {
            let result = in_order_of(call, of, &of.sizes)?;
            attention.run(call, role, &result, x, saved, grad)?;
            call.ret(result);
        } else {
            call.ret_value(Ret::None);
        }
    }
    call.ret_value(Ret::None);
    Ok(())
}

/// `sum(x * y)`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InnerProducts {
    dtype: DType,
}

impl Fold for InnerProducts {
    fn name(&self) -> &'static str {
        "inner_products"
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![accumulator(self.dtype).compute()]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.constant_of(accumulator(self.dtype).compute(), 0.0)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0] * elements[1]]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for role in [Role::Forward, Role::Query, Role::Key, Role::Value] {
            for (dtype, bias, index, threads, width) in [
                (DType::F32, None, Scalar::U32, 128, 128),
                (DType::F16, Some(DType::F32), Scalar::U64, 32, 32),
                (DType::F64, Some(DType::F64), Scalar::U32, 64, 64),
                (DType::BF16, None, Scalar::U32, 64, 64),
            ] {
                for flag in [false, true] {
                    let spec = Spec { role, dtype, bias, causal: flag, dropout: flag, index, threads, width };
                    crate::primitives::validate::accepted(&kernel::build(&spec));
                }
            }
        }
    }
}
