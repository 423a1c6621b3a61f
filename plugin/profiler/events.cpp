// Events for torch.autograd.profiler, which times operators on the device with them.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <memory>

#include "core/backend.h"
#include "core/device.h"
#include "profiler/register.h"

namespace dml {
namespace {

struct Event {
  uint64_t handle = 0;
  ~Event() { dml_event_free(handle); }
};

uint64_t handle(const torch::profiler::impl::ProfilerVoidEventStub* event) {
  return static_cast<const Event*>(event->get())->handle;
}

struct Stubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event,
              int64_t* cpu_ns) const override {
    if (device != nullptr) *device = current_device();
    auto recorded = std::make_shared<Event>();
    check(dml_event_record(current_device(), /*timing=*/1, &recorded->handle));
    *event = std::move(recorded);
    if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
  }

  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub* from,
                const torch::profiler::impl::ProfilerVoidEventStub* to) const override {
    double milliseconds = 0;
    check(dml_event_elapsed(handle(from), handle(to), &milliseconds));
    return static_cast<float>(milliseconds * 1000);
  }

  // Marks are for the timelines of other tools, and there is none.
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}

  void onEachDevice(std::function<void(int)> op) const override {
    for (c10::DeviceIndex i = 0; i < device_count(); ++i) {
      const CurrentDevice scope(i);
      op(i);
    }
  }

  void synchronize() const override { check(dml_synchronize(current_device())); }
  bool enabled() const override { return true; }
};

}  // namespace

void register_profiler() {
  static Stubs stubs;
  if (is_cuda()) {
    torch::profiler::impl::registerCUDAMethods(&stubs);
  } else {
    torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  }
}

}  // namespace dml
