// What operators have in common whose gradients the plugin defines.
#pragma once
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/engine_operator.h"
#include "core/plain.h"

namespace dml {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

inline bool is_declined(const at::Tensor& gradient) { return !gradient.defined(); }
inline bool is_declined(const variable_list& gradients) {
  return std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& t) { return t.defined(); });
}

// Gradients, computed in the dtypes of the tensors, also under autocast: by the engine (`fused`)
// or, if their own gradient is recorded or the engine declines the call, by differentiable
// operators (`composed`).
template <class Fused, class Composed>
auto gradients(Fused fused, Composed composed) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key());
  if (c10::GradMode::is_enabled()) return composed();
  {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto found = fused();
    if (!is_declined(found)) return found;
  }
  const c10::AutoGradMode recorded(true);
  return composed();
}

}  // namespace dml
