// Which of PyTorch's backends the device is: one of its own, "dml", or, for code written for CUDA,
// CUDA itself.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/DispatchKeySet.h>

#include <cstdint>

namespace dml {

struct Backend {
  c10::DeviceType type;
  c10::DispatchKey dense, autograd, nested, quantized, sparse, sparse_csr;
  c10::DispatchKeySet keys;  // of a plain tensor

  static constexpr Backend own() {
    return {c10::DeviceType::PrivateUse1,           c10::DispatchKey::PrivateUse1,
            c10::DispatchKey::AutogradPrivateUse1,  c10::DispatchKey::NestedTensorPrivateUse1,
            c10::DispatchKey::QuantizedPrivateUse1, c10::DispatchKey::SparsePrivateUse1,
            c10::DispatchKey::SparseCsrPrivateUse1, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)};
  }
  static constexpr Backend cuda() {
    return {c10::DeviceType::CUDA,           c10::DispatchKey::CUDA,
            c10::DispatchKey::AutogradCUDA,  c10::DispatchKey::NestedTensorCUDA,
            c10::DispatchKey::QuantizedCUDA, c10::DispatchKey::SparseCUDA,
            c10::DispatchKey::SparseCsrCUDA, c10::DispatchKeySet(c10::DispatchKey::CUDA)};
  }
};

// Higher than the priority of the allocators that torch registers for CUDA.
constexpr uint8_t kAllocatorPriority = UINT8_MAX;

// Set once, before anything is registered.
inline Backend backend = Backend::own();

inline bool is_ours(c10::Device device) { return device.type() == backend.type; }
inline bool is_cuda() { return backend.type == c10::DeviceType::CUDA; }

}  // namespace dml
