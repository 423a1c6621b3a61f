// Pinned memory comes from the engine: host memory that the device accesses directly. It is cached,
// and reused only after all copies from and to it are complete.
#include "core/host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>

#include "core/backend.h"
#include "core/device.h"
#include "core/register.h"
#include "core/stat.h"

namespace dml {
namespace {

void release(void* data) { dml_host_free(data); }

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    void* data = nullptr;
    check(dml_host_allocate(current_device(), bytes, &data));
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  // The engine itself records copies, the only use of this memory by the device.
  bool record_event(void* data, void*, c10::Stream) override { return is_pinned(data); }

  void empty_cache() override { check(dml_host_empty_cache()); }

  at::HostStats get_stats() override {
    DmlPoolStats s{};
    check(dml_host_stats(&s));
    at::HostStats out;
    out.active_requests = stat(s.allocation);
    out.active_bytes = stat(s.allocated_bytes);
    out.allocations = stat(s.segment);
    out.allocated_bytes = stat(s.reserved_bytes);
    out.num_host_alloc = s.segment.allocated;
    out.num_host_free = s.segment.freed;
    return out;
  }

  void reset_accumulated_stats() override { dml_host_reset_stats(0); }
  void reset_peak_stats() override { dml_host_reset_stats(1); }
};

}  // namespace

c10::Allocator* host_allocator() {
  static HostAllocator& allocator = *new HostAllocator;  // never destroyed: tensors outlive static destructors
  return &allocator;
}

bool is_pinned(const void* address) { return dml_host_is_pinned(address) != 0; }

void register_host_allocator() {
  at::setHostAllocator(backend.type, static_cast<at::HostAllocator*>(host_allocator()), kAllocatorPriority);
}

}  // namespace dml
