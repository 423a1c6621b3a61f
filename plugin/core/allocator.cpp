#include "core/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "core/device.h"
#include "core/register.h"
#include "core/stat.h"

namespace dml {
namespace {

// Reports an allocation or (negative `bytes`) a deallocation to torch.profiler. Must not throw.
void report(void* address, int64_t bytes, c10::DeviceIndex index) {
  DmlMemoryStats stats{};
  if (dml_memory_stats(index, &stats) != DML_OK) return;
  const DmlPoolStats& all = stats.all;
  c10::reportMemoryUsageToProfiler(address, bytes, static_cast<size_t>(all.allocated_bytes.current),
                                   static_cast<size_t>(all.reserved_bytes.current), c10::Device(backend.type, index));
}

int64_t block_bytes(int device, uint64_t address) {
  uint64_t bytes = 0;
  dml_block_bytes(device, address, &bytes);
  return static_cast<int64_t>(bytes);
}

template <int Device>
void release(void* data) {
  const auto address = reinterpret_cast<uint64_t>(data);
  if (C10_LIKELY(!c10::memoryProfilingEnabled())) return dml_free(Device, address);
  const int64_t bytes = block_bytes(Device, address);
  dml_free(Device, address);
  report(data, -bytes, Device);
}

// A DataPtr's deleter gets one pointer. Addresses of two devices may be equal, so each device has
// its own deleter and no allocation needs a context on the heap.
template <size_t... Device>
constexpr std::array<c10::DeleterFnPtr, sizeof...(Device)> deleters(std::index_sequence<Device...>) {
  return {&release<static_cast<int>(Device)>...};
}
constexpr auto kDeleters = deleters(std::make_index_sequence<kMaxDevices>());

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return on(bytes, current_device()); }

  static c10::DataPtr on(size_t bytes, c10::DeviceIndex index) {
    const c10::Device device(backend.type, index);
    if (bytes == 0) return {nullptr, device};
    uint64_t address = 0;
    const int32_t status = dml_allocate(index, bytes, &address);
    if (C10_UNLIKELY(status != DML_OK)) fail(status, bytes, index);
    void* data = reinterpret_cast<void*>(address);
    if (C10_UNLIKELY(c10::memoryProfilingEnabled())) report(data, block_bytes(index, address), index);
    return {data, data, kDeleters[index], device};
  }

  // Only clones of storages use this, rarely enough to copy through the host.
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

  // All streams of a device are one queue: memory is always reused in order.
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
      out.inactive_split[i].current = pool.inactive_split;
      out.inactive_split_bytes[i].current = pool.inactive_split_bytes;
    }
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

 private:
  [[noreturn]] static void fail(int32_t status, size_t bytes, c10::DeviceIndex index) {
    const std::string message = dml_last_error();  // copied: the next call of the engine overwrites it
    if (status == DML_OUT_OF_MEMORY && c10::memoryProfilingEnabled()) {
      DmlMemoryStats stats{};
      check(dml_memory_stats(index, &stats));
      const DmlPoolStats& all = stats.all;
      c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), static_cast<size_t>(all.allocated_bytes.current),
                                       static_cast<size_t>(all.reserved_bytes.current),
                                       c10::Device(backend.type, index));
    }
    dml_set_error(message.c_str());
    raise(status);
  }
};

}  // namespace

c10::Allocator* allocator() {
  static Allocator* instance = new Allocator;  // never destroyed: tensors outlive static destructors
  return instance;
}

c10::DataPtr allocate(size_t bytes, c10::DeviceIndex device) { return Allocator::on(bytes, device); }

void register_allocator() { c10::SetAllocator(backend.type, allocator(), kAllocatorPriority); }

}  // namespace dml
