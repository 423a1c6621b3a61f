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

// Raises if a tensor reaches beyond its storage. That is so only after somebody made a storage
// smaller than a tensor in it, so nothing is looked at before that happened in the process.
void check_within_storage(const c10::TensorImpl* tensor);
inline bool may_reach_beyond_storage() { return detail::storage_shrunk.load(std::memory_order_relaxed); }

// Gives a storage `bytes` bytes, keeping what fits of its contents.
void resize_storage(c10::StorageImpl* storage, size_t bytes);

// New sizes (and strides, else contiguous); the storage grows if it must.
void resize_tensor(c10::TensorImpl* tensor, c10::IntArrayRef sizes, std::optional<c10::IntArrayRef> strides);

}  // namespace dml
