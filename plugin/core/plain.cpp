#include "core/plain.h"

#include <ATen/FuncTorchTLS.h>

namespace dml {

bool in_transform() {
  const auto& functorch = at::functorch::functorchTLSAccessor();
  if (functorch == nullptr) return false;
  try {
    functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

bool is_plain(const at::Tensor& tensor) {
  using c10::DispatchKey;
  const c10::DispatchKeySet plain({backend.dense, backend.autograd, DispatchKey::ADInplaceOrView, autocast_key()});
  return tensor.defined() && is_ours(tensor.device()) && plain.has_all(tensor.key_set()) &&
         !tensor._fw_grad(/*level=*/0).defined();
}

}  // namespace dml
