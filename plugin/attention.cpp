// Which way attention and its gradients go on a dml device.
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
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "backend.h"
#include "engine.h"
#include "register.h"
#include "table.h"

namespace dml {
namespace {

bool fused = false;

// Whether torch.func or forward-mode AD follows the tensor: the fused operator has no rule for
// either.
bool is_followed(const at::Tensor& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::FuncTorchBatched) || keys.has(c10::DispatchKey::FuncTorchGradWrapper) ||
         tensor._fw_grad(/*level=*/0).defined();
}

// The fused operator takes (batch, heads, length, width) and has no gradient for the mask. What it
// does not take is composed of other operators, which also raise the CPU's errors.
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

// The factors by which dropout multiplied the weights, from the forward call's random numbers:
// gradients of values where each weight is exp(0 - 0), and each row of the result has a gradient of
// its own.
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

// The gradients by operators that have gradients themselves, in float32 where the tensors have 16
// bits.
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
  at::Tensor scores = apart(at::matmul(joined(q), k.mT())) * factor;
  if (causal) {
    const at::Tensor later = at::ones_symint({queries, keys}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  if (bias.defined()) scores = scores + bias.to(wide);
  const at::Tensor weights = at::_safe_softmax(scores, -1);
  at::Tensor kept = weights, slopes = apart(at::matmul(joined(grad), v.mT()));
  if (dropout > 0) {
    const at::Tensor factors = replay_dropout(q, k, dropout, seed, offset);
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

// The fused gradients, but where they are to be derived again: then the composed ones.
Gradients backward(c10::DispatchKeySet keys, const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                   const at::Tensor& value, const at::Tensor& bias, std::array<bool, 4> wanted, const at::Tensor& out,
                   const at::Tensor& saved, const at::Tensor& cum_seq_q, const at::Tensor& cum_seq_k, c10::SymInt max_q,
                   c10::SymInt max_k, double dropout, bool causal, const at::Tensor& seed, const at::Tensor& offset,
                   std::optional<double> scale) {
  const auto followed = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  // The gradient of a mask is refused below.
  if (c10::GradMode::is_enabled() && grad.defined() && !wanted[3] &&
      (followed(grad) || followed(query) || followed(key) || followed(value))) {
    return composed_backward(grad, query, key, value, bias, wanted, dropout, causal, seed, offset, scale);
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  return Backward::redispatch(keys & c10::after_autograd_keyset, grad, query, key, value, bias, wanted, out, saved,
                              cum_seq_q, cum_seq_k, std::move(max_q), std::move(max_k), dropout, causal, seed, offset,
                              scale);
}

}  // namespace

void register_attention() {
  fused = find_operator("aten::_scaled_dot_product_fused_attention_overrideable").has_value() &&
          find_operator("aten::_scaled_dot_product_fused_attention_overrideable_backward").has_value();
  // PyTorch composes these of other operators, in functions that it registers for its own devices
  // alone.
  torch::Library& aten = library("aten", backend.dense);
  aten.impl("aten::_native_multi_head_attention", TORCH_FN(at::native::native_multi_head_attention_cpu));
  aten.impl("aten::_transformer_encoder_layer_fwd", TORCH_FN(at::native::transformer_encoder_layer_forward));
  library("aten", backend.autograd)
      .impl("aten::_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(backward));
  set_stub(at::native::_fused_sdp_choice_stub, &choose);
}

}  // namespace dml
