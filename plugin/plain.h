// Whether a tensor is a plain one, which operators with gradients of the plugin's own can take.
#pragma once
#include <ATen/core/Tensor.h>

#include "backend.h"

namespace dml {

inline c10::DispatchKey autocast_key() {
  return is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastPrivateUse1;
}

// Whether a transform of torch.func runs: PyTorch's functions with gradients of their own are
// refused under it.
bool in_transform();

// Whether it is the device's, and nothing follows it that takes operators apart.
bool is_plain(const at::Tensor& tensor);

}  // namespace dml
