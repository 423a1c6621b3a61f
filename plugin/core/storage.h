// Storages and resizing.
#pragma once
#include <c10/core/TensorImpl.h>
#include <c10/util/ArrayRef.h>

#include <atomic>
#include <optional>

namespace dml {

namespace detail {
extern std::atomic<bool> storage_shrunk;
}

// Raises if a tensor reaches beyond its storage. That needs a storage that was made smaller than a
// tensor in it, so nothing is checked before a storage was shrunk in this process.
void check_within_storage(const c10::TensorImpl* tensor);
inline bool may_reach_beyond_storage() { return detail::storage_shrunk.load(std::memory_order_relaxed); }

// Resizes a storage to `bytes` bytes and keeps the contents that fit.
void resize_storage(c10::StorageImpl* storage, size_t bytes);

// New sizes (and strides, else contiguous); the storage grows if it must.
void resize_tensor(c10::TensorImpl* tensor, c10::IntArrayRef sizes, std::optional<c10::IntArrayRef> strides);

}  // namespace dml
