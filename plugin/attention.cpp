// Which way attention goes on a dml device.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_native_multi_head_attention_native.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_native.h>

#include "backend.h"
#include "engine.h"
#include "register.h"
#include "table.h"

namespace dml {
namespace {

bool fused = false;

// Whether torch.func or forward-mode AD follows the tensor: the fused operator has no rule for either.
bool is_followed(const at::Tensor& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::FuncTorchBatched) || keys.has(c10::DispatchKey::FuncTorchGradWrapper) ||
         tensor._fw_grad(/*level=*/0).defined();
}

// The fused operator takes (batch, heads, length, width) and has no gradient for the mask. What it does not take is
// composed of other operators, which also raise the CPU's errors.
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

}  // namespace

void register_attention() {
  fused = find_operator("aten::_scaled_dot_product_fused_attention_overrideable").has_value() &&
          find_operator("aten::_scaled_dot_product_fused_attention_overrideable_backward").has_value();
  // PyTorch composes these of other operators, in functions that it registers for its own devices alone.
  torch::Library& aten = library("aten", backend.dense);
  aten.impl("aten::_native_multi_head_attention", TORCH_FN(at::native::native_multi_head_attention_cpu));
  aten.impl("aten::_transformer_encoder_layer_fwd", TORCH_FN(at::native::transformer_encoder_layer_forward));
  set_stub(at::native::_fused_sdp_choice_stub, &choose);
}

}  // namespace dml
