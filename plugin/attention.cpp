// Which way scaled_dot_product_attention goes on a dml device.
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include "engine.h"
#include "register.h"

namespace dml {
namespace {

bool fused = false;

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double, bool, std::optional<double>, bool grouped_heads) {
  // The fused operator takes (batch, heads, length, width) and has no gradient for the mask.
  const bool fits = fused && query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && !grouped_heads &&
                    c10::isFloatingType(query.scalar_type()) && !(mask.has_value() && mask->requires_grad());
  return static_cast<int64_t>(fits ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

}  // namespace

void register_attention() {
  fused = dml_operator_find("aten::_scaled_dot_product_fused_attention_overrideable") != UINT32_MAX &&
          dml_operator_find("aten::_scaled_dot_product_fused_attention_overrideable_backward") != UINT32_MAX;
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose);
}

}  // namespace dml
