#include "allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <utility>
#include <vector>

#include "device.h"

namespace dml {
namespace {

template <int Device>
void release(void* address) {
  dml_free(Device, reinterpret_cast<uint64_t>(address));
}

// A DataPtr's deleter gets one pointer. Addresses of two devices may be equal, so each device has its own deleter and
// no allocation needs a context on the heap.
template <size_t... Device>
constexpr std::array<c10::DeleterFnPtr, sizeof...(Device)> deleters(std::index_sequence<Device...>) {
  return {&release<static_cast<int>(Device)>...};
}
constexpr auto kDeleters = deleters(std::make_index_sequence<kMaxDevices>());

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = current_device();
    const c10::Device device(c10::DeviceType::PrivateUse1, index);
    if (bytes == 0) return {nullptr, device};
    uint64_t address = 0;
    check(dml_allocate(index, bytes, &address));
    void* data = reinterpret_cast<void*>(address);
    return {data, data, kDeleters[index], device};
  }

  // Only a clone of a storage comes here: rare enough to pass through the host.
  void copy_data(void* target, const void* source, std::size_t bytes) const override {
    const c10::DeviceIndex index = current_device();
    std::vector<unsigned char> host(bytes);
    check(dml_download(index, reinterpret_cast<uint64_t>(source), host.data(), bytes));
    check(dml_upload(index, reinterpret_cast<uint64_t>(target), host.data(), bytes));
  }

  bool initialized() override { return device_count() > 0; }

  void emptyCache(c10::MempoolId_t) override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) check(dml_empty_cache(i));
  }

  // One stream a device: memory is always reused in order.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    DmlMemoryStats s{};
    check(dml_memory_stats(device, &s));
    c10::CachingDeviceAllocator::DeviceStats out;
    const std::pair<c10::CachingAllocator::StatArray&, const DmlStat&> stats[] = {
        {out.allocation, s.allocation},
        {out.segment, s.segment},
        {out.active, s.active},
        {out.inactive_split, s.inactive_split},
        {out.allocated_bytes, s.allocated_bytes},
        {out.reserved_bytes, s.reserved_bytes},
        {out.active_bytes, s.active_bytes},
        {out.inactive_split_bytes, s.inactive_split_bytes},
        {out.requested_bytes, s.requested_bytes},
    };
    for (const auto& [to, from] : stats) {
      c10::CachingAllocator::Stat& all = to[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
      all.current = from.current;
      all.peak = from.peak;
      all.allocated = from.allocated;
      all.freed = from.freed;
    }
    out.num_alloc_retries = s.num_alloc_retries;
    out.num_ooms = s.num_ooms;
    out.num_device_alloc = s.num_device_alloc;
    out.num_device_free = s.num_device_free;
    return out;
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override { check(dml_reset_accumulated_stats(device)); }
  void resetPeakStats(c10::DeviceIndex device) override { check(dml_reset_peak_stats(device)); }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    uint64_t free = 0, total = 0;
    check(dml_memory_info(device, &free, &total));
    return {free, total};
  }
};

}  // namespace

c10::Allocator* allocator() {
  static Allocator* instance = new Allocator;  // lives as long as the tensors of a dying process
  return instance;
}

void register_allocator() { c10::SetAllocator(c10::DeviceType::PrivateUse1, allocator()); }

}  // namespace dml
