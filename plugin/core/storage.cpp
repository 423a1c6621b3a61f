#include "core/storage.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_copy_from_ops.h>

#include <algorithm>

#include "core/allocator.h"
#include "core/backend.h"
#include "core/device.h"

namespace dml {

namespace detail {
std::atomic<bool> storage_shrunk{false};
}

namespace {

// The first `bytes` bytes of a storage.
at::Tensor bytes_of(c10::Storage storage, int64_t bytes) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(std::move(storage), backend.keys, caffe2::TypeMeta::Make<uint8_t>());
  impl->set_sizes_contiguous({bytes});
  return at::Tensor(std::move(impl));
}

}  // namespace

void resize_storage(c10::StorageImpl* storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  const CurrentDevice scope(storage->device().index());
  const c10::Storage fresh(
      c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, allocator(), true));
  const size_t kept = std::min(bytes, storage->nbytes());
  if (kept > 0 && storage->data() != nullptr) {
    c10::Storage old(c10::intrusive_ptr<c10::StorageImpl>::unsafe_reclaim_from_nonowning(storage));
    at::_ops::_copy_from::call(bytes_of(std::move(old), static_cast<int64_t>(kept)),
                               bytes_of(fresh, static_cast<int64_t>(kept)), false);
  }
  if (bytes < storage->nbytes()) detail::storage_shrunk.store(true, std::memory_order_relaxed);
  storage->set_data_ptr_noswap(std::move(fresh.mutable_data_ptr()));
  storage->set_nbytes(bytes);
}

void check_within_storage(const c10::TensorImpl* tensor) {
  if (tensor->numel() == 0) return;
  const size_t itemsize = tensor->dtype().itemsize();
  const size_t bytes = at::detail::computeStorageNbytes(tensor->sizes(), tensor->strides(), itemsize,
                                                        static_cast<size_t>(tensor->storage_offset()));
  const size_t there = tensor->unsafe_storage().nbytes();
  TORCH_CHECK(bytes <= there, "a tensor of sizes ", tensor->sizes(), " needs a storage of ", bytes,
              " bytes, and its storage was resized to ", there);
}

void resize_tensor(c10::TensorImpl* tensor, c10::IntArrayRef sizes, std::optional<c10::IntArrayRef> strides) {
  if (tensor->sizes() == sizes && (!strides.has_value() || tensor->strides() == *strides)) return;
  const size_t itemsize = tensor->dtype().itemsize();
  const size_t offset = static_cast<size_t>(tensor->storage_offset());
  size_t bytes = 0;
  if (strides.has_value()) {
    tensor->set_sizes_and_strides(sizes, *strides);
    bytes = at::detail::computeStorageNbytes(sizes, *strides, itemsize, offset);
  } else {
    tensor->generic_set_sizes_contiguous(sizes);
    bytes = at::detail::computeStorageNbytesContiguous(sizes, itemsize, offset);
  }
  // An empty tensor needs no memory, whatever its offset says.
  if (tensor->numel() == 0) return;
  c10::StorageImpl* storage = tensor->unsafe_storage().unsafeGetStorageImpl();
  if (storage->nbytes() < bytes) resize_storage(storage, bytes);
}

}  // namespace dml

// Resizes a storage as UntypedStorage.resize_ does, in CUDA's place, where PyTorch's own would go
// to CUDA. 0 for success.
DML_EXPORT int32_t dml_plugin_resize_storage(void* storage, uint64_t bytes) {
  try {
    dml::resize_storage(static_cast<c10::StorageImpl*>(storage), bytes);
    return DML_OK;
  } catch (const c10::Error& e) {
    dml_set_error(e.what_without_backtrace());
  } catch (const std::exception& e) {
    dml_set_error(e.what());
  }
  return DML_RUNTIME_ERROR;
}
