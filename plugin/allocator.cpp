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

c10::CachingAllocator::Stat stat(const DmlStat& from) {
  c10::CachingAllocator::Stat to;
  to.current = from.current;
  to.peak = from.peak;
  to.allocated = from.allocated;
  to.freed = from.freed;
  return to;
}

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
    using Type = c10::CachingAllocator::StatType;
    const std::pair<Type, const DmlPoolStats&> pools[] = {
        {Type::AGGREGATE, s.all}, {Type::SMALL_POOL, s.small}, {Type::LARGE_POOL, s.large}};
    for (const auto& [type, pool] : pools) {
      const size_t i = static_cast<size_t>(type);
      out.allocation[i] = out.active[i] = stat(pool.allocation);
      out.segment[i] = stat(pool.segment);
      out.allocated_bytes[i] = out.active_bytes[i] = stat(pool.allocated_bytes);
      out.reserved_bytes[i] = stat(pool.reserved_bytes);
      out.requested_bytes[i] = stat(pool.requested_bytes);
    }
    out.inactive_split[0].current = s.inactive_split;
    out.inactive_split_bytes[0].current = s.inactive_split_bytes;
    out.num_alloc_retries = s.num_alloc_retries;
    out.num_ooms = s.num_ooms;
    out.num_device_alloc = s.all.segment.allocated;
    out.num_device_free = s.all.segment.freed;
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
