// Operators that create tensors.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/TensorOptions.h>

#include "core/allocator.h"
#include "core/backend.h"
#include "core/device.h"
#include "core/library.h"
#include "operators/register.h"

namespace dml {
namespace {

c10::DeviceIndex checked(std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::Layout::Strided, "dml tensors are strided, not ", *layout);
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
  if (!device.has_value() || !device->has_index()) return current_device();
  check_device(device->index());
  return device->index();
}

// torch.utils.deterministic.fill_uninitialized_memory
at::Tensor finished(at::TensorBase base) {
  at::Tensor tensor(std::move(base));
  if (C10_UNLIKELY(at::globalContext().deterministicAlgorithms() &&
                   at::globalContext().deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(tensor);
  }
  return tensor;
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> format) {
  const CurrentDevice scope(checked(layout, device, pin_memory));
  return finished(at::detail::empty_generic(size, allocator(), backend.keys, c10::dtype_or_default(dtype), format));
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  const CurrentDevice scope(checked(layout, device, pin_memory));
  return finished(
      at::detail::empty_strided_generic(size, stride, allocator(), backend.keys, c10::dtype_or_default(dtype)));
}

// Zeros without memory, which autograd uses for tangents that are zero.
at::Tensor zero_tensor(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                       std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  const c10::Device on(backend.type, checked(layout, device, pin_memory));
  at::native::ZeroTensorAllocator nothing(on);
  return at::Tensor(at::detail::empty_generic(size, &nothing,
                                              backend.keys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
                                              c10::dtype_or_default(dtype), std::nullopt));
}

}  // namespace

void register_factories(torch::Library& aten, Names& taken) {
  aten.impl("aten::empty.memory_format", TORCH_FN(empty));
  aten.impl("aten::empty_strided", TORCH_FN(empty_strided));
  aten.impl("aten::_efficientzerotensor", TORCH_FN(zero_tensor));
  taken.insert({"aten::empty.memory_format", "aten::empty_strided", "aten::_efficientzerotensor"});
}

}  // namespace dml
