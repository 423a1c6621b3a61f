// Operators that change only metadata: sizes, strides and storages. PyTorch's functions for them
// work on any device.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "core/backend.h"
#include "core/library.h"
#include "core/storage.h"
#include "operators/register.h"

namespace dml {
namespace {

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
  resize_tensor(self.unsafeGetTensorImpl(), size, std::nullopt);
  if (format.has_value()) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format ", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_part(at::Tensor& self, c10::Storage source, int64_t offset, c10::IntArrayRef size,
                     c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, source, offset, size, stride);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  std::optional<c10::IntArrayRef> wanted;
  if (stride.data() != nullptr) wanted = stride;
  resize_tensor(impl, size, wanted);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage source) {
  const int64_t count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_part(self, std::move(source), 0, {count}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_part(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_empty(at::Tensor& self) {
  c10::Storage nothing(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                             c10::GetAllocator(backend.type)->allocate(0),
                                                             c10::GetAllocator(backend.type), true));
  return set_part(self, std::move(nothing), 0, {0}, {});
}

// All streams of a device share one queue, so memory is reused in order without recording streams.
void record_stream(at::Tensor&, c10::Stream) {}

// Whether `self.data = from` is allowed. PyTorch's own function knows only the backends of its
// tree. Without this one Module.to("dml") would create new parameters: optimizers would keep the
// old ones, and shared parameters would be separated.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto is_plain = [](const at::Tensor& t) {
    const c10::DispatchKeySet keys = t.key_set();
    return keys.has_any(c10::DispatchKeySet(c10::DispatchKey::Dense)) && !keys.has(c10::DispatchKey::Python) &&
           (is_ours(t.device()) || t.is_cpu() || t.is_cuda());
  };
  return (is_plain(self) && is_plain(from)) ||
         self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

}  // namespace

void register_views(torch::Library& aten, Names& taken) {
  aten.impl("aten::as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten.impl("aten::view", TORCH_FN(at::native::view));
  aten.impl("aten::_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  aten.impl("aten::unfold", TORCH_FN(at::native::unfold));
  aten.impl("aten::view_as_real", TORCH_FN(at::native::view_as_real));
  aten.impl("aten::view_as_complex", TORCH_FN(at::native::view_as_complex));
  aten.impl("aten::is_set_to", TORCH_FN(at::native::is_set_to));
  aten.impl("aten::resize_", TORCH_FN(resize));
  aten.impl("aten::set_", TORCH_FN(set_empty));
  aten.impl("aten::set_.source_Storage", TORCH_FN(set_storage));
  aten.impl("aten::set_.source_Storage_storage_offset", TORCH_FN(set_part));
  aten.impl("aten::set_.source_Tensor", TORCH_FN(set_tensor));
  aten.impl("aten::_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
  aten.impl("aten::record_stream", TORCH_FN(record_stream));
  taken.insert({"aten::as_strided", "aten::view", "aten::_reshape_alias", "aten::unfold", "aten::view_as_real",
                "aten::view_as_complex", "aten::is_set_to", "aten::resize_", "aten::set_", "aten::set_.source_Storage",
                "aten::set_.source_Storage_storage_offset", "aten::set_.source_Tensor", "aten::record_stream"});
}

}  // namespace dml
