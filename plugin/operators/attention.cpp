// Scaled dot-product attention and its gradients: fused by the engine, or composed.
#include <ATen/Context.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_native_multi_head_attention_native.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "core/backend.h"
#include "core/fallback.h"
#include "core/library.h"
#include "core/table.h"
#include "engine.h"
#include "operators/register.h"

namespace dml {
namespace {

bool fused = false;

// Whether torch.func or forward-mode AD tracks the tensor: the fused operator has no rule for
// either.
bool is_followed(const at::Tensor& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::FuncTorchBatched) || keys.has(c10::DispatchKey::FuncTorchGradWrapper) ||
         tensor._fw_grad(/*level=*/0).defined();
}

// Whether the fused operator accepts the arguments: tensors [batch, heads, length, width], and a
// mask that needs no gradient. Otherwise attention is composed of other operators, which also raise
// the CPU's errors.
bool fits(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
          const std::optional<at::Tensor>& mask, bool causal, bool grouped_heads) {
  if (is_followed(query) || is_followed(key) || is_followed(value)) return false;
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) return false;
  const auto type = query.scalar_type();
  if (!c10::isFloatingType(type) || key.scalar_type() != type || value.scalar_type() != type) return false;
  const auto q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();
  if (q[0] != k[0] || q[3] != k[3] || k[0] != v[0] || k[1] != v[1] || k[2] != v[2]) return false;
  if (k[1] == 0 || k[3] == 0 || (grouped_heads ? q[1] % k[1] != 0 : q[1] != k[1])) return false;
  return !mask.has_value() || !(causal || mask->requires_grad());
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double, bool causal, std::optional<double>, bool grouped_heads) {
  const bool takes =
      fused && at::globalContext().userEnabledOverrideableSDP() && fits(query, key, value, mask, causal, grouped_heads);
  return static_cast<int64_t>(takes ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

using Backward = at::_ops::_scaled_dot_product_fused_attention_overrideable_backward;
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// Whether this is the seed of a composed forward call: the factors of dropout themselves.
bool is_composed(const at::Tensor& seed) { return seed.defined() && seed.dim() == 4; }

// The factors by which dropout multiplied the weights in the forward call, from its random numbers.
// They are the gradient by the values for weights that are all exp(0 - 0) and the identity matrix
// as the gradient of the result.
at::Tensor replay_dropout(const at::Tensor& query, const at::Tensor& key, double dropout, const at::Tensor& seed,
                          const at::Tensor& offset) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const c10::SymInt batch = query.sym_size(0), heads = query.sym_size(1), queries = query.sym_size(2);
  const c10::SymInt keys = key.sym_size(2);
  const at::TensorOptions options = query.options();
  const auto zeros = [&](c10::SymIntArrayRef sizes) { return at::zeros({}, options).expand_symint(sizes); };
  const at::Tensor rows = at::eye_symint(queries, options).expand_symint({batch, heads, queries, queries});
  const at::Tensor saved = at::zeros_symint({batch, heads, queries}, options);
  return std::get<2>(Backward::call(rows, zeros({batch, heads, queries, 1}), zeros({batch, heads, keys, 1}),
                                    zeros({batch, heads, keys, queries}), {}, {false, false, true, false}, rows, saved,
                                    {}, {}, queries, keys, dropout, /*is_causal=*/false, seed, offset, /*scale=*/1.0))
      .mT();
}

// The scores of queries and keys in their dtype, [batch, heads, queries, keys].
at::Tensor scores_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& bias, bool causal,
                     std::optional<double> scale) {
  const c10::SymInt batch = q.sym_size(0), heads = q.sym_size(1), queries = q.sym_size(2), keys = k.sym_size(2);
  // Heads that share keys are rows of one matrix.
  const c10::SymInt key_heads = k.sym_size(1), rows = heads / key_heads * queries;
  const at::Tensor joined = q.reshape_symint({batch, key_heads, rows, q.sym_size(3)});
  const at::Tensor products = at::matmul(joined, k.mT()).reshape_symint({batch, heads, queries, keys});
  at::Tensor scores = products * at::Scalar(sdp::calculate_scale(q, scale));
  if (causal) {
    const at::Tensor later = at::ones_symint({queries, keys}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  return bias.defined() ? scores + bias.to(q.scalar_type()) : scores;
}

// In place of the fused operator, for a driver that refuses its kernels. The factors of dropout are
// in the place of the seed.
void composed_forward(torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 8);
  const at::Tensor query = arguments[0].toTensor(), key = arguments[1].toTensor(), value = arguments[2].toTensor();
  const at::Tensor bias = arguments[3].isTensor() ? arguments[3].toTensor() : at::Tensor();
  const double dropout = arguments[4].toDouble();
  const bool causal = arguments[5].toBool();
  const auto scale = arguments[7].toOptional<double>();
  torch::jit::drop(*stack, 8);

  const at::ScalarType type = query.scalar_type(), wide = at::toOpMathType(type);
  const at::Tensor q = query.to(wide), k = key.to(wide), v = value.to(wide);
  const at::Tensor scores = scores_of(q, k, bias, causal, scale);
  at::Tensor weights = at::_safe_softmax(scores, -1), factors;
  if (dropout > 0) {
    factors = dropout < 1 ? at::empty_like(weights).bernoulli_(1 - dropout).div_(1 - dropout) : at::zeros_like(weights);
    weights = weights * factors;
  }
  const c10::SymInt batch = q.sym_size(0), heads = q.sym_size(1), queries = q.sym_size(2), key_heads = k.sym_size(1);
  const at::Tensor joined = weights.reshape_symint({batch, key_heads, heads / key_heads * queries, k.sym_size(2)});
  const at::Tensor out = at::matmul(joined, v).reshape_symint({batch, heads, queries, v.sym_size(3)});
  torch::jit::push(*stack, out.to(type), at::logsumexp(scores, -1), at::Tensor(), at::Tensor(), query.size(2),
                   key.size(2), factors, at::Tensor(), at::Tensor());
}

// The gradients, composed of differentiable operators; in float32 for tensors of 16 bits.
Gradients composed_backward(const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const at::Tensor& bias, std::array<bool, 4> wanted, double dropout,
                            bool causal, const at::Tensor& seed, const at::Tensor& offset,
                            std::optional<double> scale) {
  const at::ScalarType type = query.scalar_type(), wide = at::toOpMathType(type);
  const at::Tensor q = query.to(wide), k = key.to(wide), v = value.to(wide), grad = grad_out.to(wide);
  const c10::SymInt batch = q.sym_size(0), heads = q.sym_size(1), queries = q.sym_size(2), keys = k.sym_size(2);
  // Heads that share keys are rows of one matrix.
  const c10::SymInt key_heads = k.sym_size(1), rows = heads / key_heads * queries;
  const auto joined = [&](const at::Tensor& t) { return t.reshape_symint({batch, key_heads, rows, t.sym_size(3)}); };
  const auto apart = [&](const at::Tensor& t) { return t.reshape_symint({batch, heads, queries, t.sym_size(3)}); };

  const at::Scalar factor = sdp::calculate_scale(q, scale);
  const at::Tensor weights = at::_safe_softmax(scores_of(q, k, bias, causal, scale), -1);
  at::Tensor kept = weights, slopes = apart(at::matmul(joined(grad), v.mT()));
  if (dropout > 0) {
    const at::Tensor factors = is_composed(seed) ? seed : replay_dropout(q, k, dropout, seed, offset);
    kept = weights * factors;
    slopes = slopes * factors;
  }
  const at::Tensor errors = joined(at::_softmax_backward_data(slopes, weights, -1, wide) * factor);
  Gradients gradients;
  if (wanted[0]) std::get<0>(gradients) = apart(at::matmul(errors, k)).to(type);
  if (wanted[1]) std::get<1>(gradients) = at::matmul(errors.mT(), joined(q)).to(type);
  if (wanted[2]) std::get<2>(gradients) = at::matmul(joined(kept).mT(), joined(grad)).to(type);
  return gradients;
}

// The fused gradients; for a second derivative, or if the engine declines the call, the composed
// ones.
Gradients backward(c10::DispatchKeySet keys, const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                   const at::Tensor& value, const at::Tensor& bias, std::array<bool, 4> wanted, const at::Tensor& out,
                   const at::Tensor& saved, const at::Tensor& cum_seq_q, const at::Tensor& cum_seq_k, c10::SymInt max_q,
                   c10::SymInt max_k, double dropout, bool causal, const at::Tensor& seed, const at::Tensor& offset,
                   std::optional<double> scale) {
  const auto followed = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  // The gradient of a mask is refused below.
  const auto composed = [&] {
    return composed_backward(grad, query, key, value, bias, wanted, dropout, causal, seed, offset, scale);
  };
  if (c10::GradMode::is_enabled() && grad.defined() && !wanted[3] &&
      (followed(grad) || followed(query) || followed(key) || followed(value))) {
    return composed();
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  if (!grad.defined()) return {};
  if (is_composed(seed)) return composed();
  Gradients fused = Backward::redispatch(keys & c10::after_autograd_keyset, grad, query, key, value, bias, wanted, out,
                                         saved, cum_seq_q, cum_seq_k, std::move(max_q), std::move(max_k), dropout,
                                         causal, seed, offset, scale);
  const auto& [of_query, of_key, of_value, of_bias] = fused;
  const bool any = of_query.defined() || of_key.defined() || of_value.defined() || of_bias.defined();
  return any || !(wanted[0] || wanted[1] || wanted[2]) ? fused : composed();
}

}  // namespace

void register_attention() {
  fused = find_operator("aten::_scaled_dot_product_fused_attention_overrideable").has_value() &&
          find_operator("aten::_scaled_dot_product_fused_attention_overrideable_backward").has_value();
  // PyTorch's functions compose these of other operators, but it registers them only for its own
  // devices.
  torch::Library& aten = library("aten", backend.dense);
  aten.impl("aten::_native_multi_head_attention", TORCH_FN(at::native::native_multi_head_attention_cpu));
  aten.impl("aten::_transformer_encoder_layer_fwd", TORCH_FN(at::native::transformer_encoder_layer_forward));
  library("aten", backend.autograd)
      .impl("aten::_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(backward));
  compose_instead("aten::_scaled_dot_product_fused_attention_overrideable", &composed_forward);
  set_stub(at::native::_fused_sdp_choice_stub, &choose);
}

}  // namespace dml
