// Host memory that counts as pinned. The engine stages every upload before it returns, so a block is free for reuse as
// soon as its last tensor dies and no event has to guard it.
#include "host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstdlib>
#include <map>
#include <mutex>
#if defined(_WIN32)
#include <malloc.h>
#endif

#include "register.h"

namespace dml {
namespace {

constexpr size_t kPage = 4096;

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::CPU)};
    const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
#if defined(_WIN32)
    void* data = _aligned_malloc(rounded, kPage);
#else
    void* data = std::aligned_alloc(kPage, rounded);
#endif
    TORCH_CHECK(data != nullptr, "not enough host memory for ", bytes, " bytes of pinned memory");
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_[reinterpret_cast<uintptr_t>(data)] = rounded;
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(rounded);
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(rounded);
    ++stats_.num_host_alloc;
    return {data, data, &HostAllocator::release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &HostAllocator::release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}

  at::HostStats get_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

  void reset_accumulated_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    each([](c10::CachingAllocator::Stat& s) { s.reset_accumulated(); });
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }

  void reset_peak_stats() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    each([](c10::CachingAllocator::Stat& s) { s.reset_peak(); });
  }

  bool owns(const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto next = blocks_.upper_bound(at);
    if (next == blocks_.begin()) return false;
    --next;
    return at < next->first + next->second;
  }

  static HostAllocator& instance() {
    static HostAllocator& allocator = *new HostAllocator;
    return allocator;
  }

 private:
  static void release(void* data) {
    HostAllocator& self = instance();
    {
      const std::lock_guard<std::mutex> lock(self.mutex_);
      const auto block = self.blocks_.find(reinterpret_cast<uintptr_t>(data));
      if (block == self.blocks_.end()) return;
      self.stats_.active_requests.decrease(1);
      self.stats_.active_bytes.decrease(block->second);
      self.stats_.allocations.decrease(1);
      self.stats_.allocated_bytes.decrease(block->second);
      ++self.stats_.num_host_free;
      self.blocks_.erase(block);
    }
#if defined(_WIN32)
    _aligned_free(data);
#else
    std::free(data);
#endif
  }

  template <class F>
  void each(F&& f) {
    f(stats_.active_requests);
    f(stats_.active_bytes);
    f(stats_.allocations);
    f(stats_.allocated_bytes);
  }

  std::mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;
  at::HostStats stats_;
};

}  // namespace

c10::Allocator* host_allocator() { return &HostAllocator::instance(); }
bool is_pinned(const void* address) { return HostAllocator::instance().owns(address); }

void register_host_allocator() {
  at::setHostAllocator(c10::DeviceType::PrivateUse1, &HostAllocator::instance());
}

}  // namespace dml
