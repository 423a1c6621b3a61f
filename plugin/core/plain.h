// Plain tensors: those that operators accept whose gradients the plugin defines.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/backend.h"

namespace dml {

inline c10::DispatchKey autocast_key() {
  return is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastPrivateUse1;
}

// Whether a transform of torch.func is active, under which PyTorch refuses C++ autograd functions.
bool in_transform();

// Whether a tensor is on the device, and no subclass, transform or forward-mode AD tracks it, which
// would have to see the operators of a composite.
bool is_plain(const at::Tensor& tensor);

}  // namespace dml
