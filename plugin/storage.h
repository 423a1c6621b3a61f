// Storages and resizing.
#pragma once
#include <c10/core/TensorImpl.h>
#include <c10/util/ArrayRef.h>

#include <optional>

namespace dml {

// Gives a storage `bytes` bytes, keeping what fits of its contents.
void resize_storage(c10::StorageImpl* storage, size_t bytes);

// New sizes (and strides, else contiguous); the storage grows if it must.
void resize_tensor(c10::TensorImpl* tensor, c10::IntArrayRef sizes, std::optional<c10::IntArrayRef> strides);

}  // namespace dml
