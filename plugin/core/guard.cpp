// Devices, streams and events as PyTorch's device-generic code sees them.
//
// All streams of a device share its one queue, which runs work in the order of submission. So a
// stream is only a number: its work is ordered with the work of every other stream of the device,
// which is stricter than PyTorch requires.
#include <c10/core/Event.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>

#include "core/backend.h"
#include "core/convert.h"
#include "core/device.h"
#include "core/register.h"

namespace dml {
namespace {

struct Event {
  uint64_t handle = 0;  // 0: never recorded
  c10::DeviceIndex device = 0;

  void replace(uint64_t fresh) {
    if (handle != 0) dml_event_free(handle);
    handle = fresh;
  }
};

thread_local std::array<c10::StreamId, kMaxDevices> current_streams{};  // 0: the default stream

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return backend.type; }

  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::DeviceIndex previous = current_device();
    if (device.has_index() && device.index() != previous) set_current_device(device.index());
    return of(previous);
  }

  c10::Device getDevice() const override { return of(current_device()); }

  void setDevice(c10::Device device) const override {
    if (device.has_index()) set_current_device(device.index());
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override { exchange_device(device.index()); }

  c10::Stream getStream(c10::Device device) const override {
    const c10::Device d = with_index(device);
    return stream(d, current_streams[d.index()]);
  }

  c10::Stream getDefaultStream(c10::Device device) const override { return stream(with_index(device), 0); }

  c10::Stream getNewStream(c10::Device device, int) const override {
    static std::atomic<c10::StreamId> last{0};
    return stream(with_index(device), ++last);
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getNewStream(device, 0); }

  c10::Stream exchangeStream(c10::Stream s) const override {
    const c10::Stream previous = getStream(s.device());
    current_streams[s.device_index()] = s.id();
    return previous;
  }

  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }

  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    uint32_t mask = 0;
    check(dml_device_dtypes(device.has_index() ? device.index() : current_device(), &mask));
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (uint8_t code = 0; code <= DML_F8E5M2FNUZ; ++code) {
      if (mask >> code & 1) capability.capability_data.capability_bits |= 1ULL << static_cast<int>(scalar_type(code));
    }
    return capability;
  }

  bool queryStream(const c10::Stream& s) const override {
    int32_t idle = 0;
    check(dml_idle(s.device_index(), &idle));
    return idle != 0;
  }

  // A virtual function of the base class in minors after 2.11 only, so not marked as an override.
  bool isStreamCapturing(const c10::Stream& s) const {
    int32_t capturing = 0;
    check(dml_is_capturing(s.device_index(), &capturing));
    return capturing != 0;
  }

  void synchronizeStream(const c10::Stream& s) const override { check(dml_synchronize(s.device_index())); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    check(dml_synchronize(index < 0 ? current_device() : index));
  }

  void record(void** event, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    uint64_t handle = 0;
    check(dml_event_record(s.device_index(), flag == c10::EventFlag::BACKEND_DEFAULT, &handle));
    if (*event == nullptr) *event = new Event;
    Event& e = *static_cast<Event*>(*event);
    e.replace(handle);
    e.device = s.device_index();
  }

  // Work of one queue already runs in order. For the queue of another device the host has to wait.
  void block(void* event, const c10::Stream& s) const override {
    const Event* e = static_cast<const Event*>(event);
    if (e != nullptr && e->handle != 0 && e->device != s.device_index()) check(dml_event_wait(e->handle));
  }

  bool queryEvent(void* event) const override {
    const Event* e = static_cast<const Event*>(event);
    if (e == nullptr || e->handle == 0) return true;
    int32_t done = 0;
    check(dml_event_query(e->handle, &done));
    return done != 0;
  }

  void synchronizeEvent(void* event) const override {
    const Event* e = static_cast<const Event*>(event);
    if (e != nullptr && e->handle != 0) check(dml_event_wait(e->handle));
  }

  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    const Event *a = static_cast<const Event*>(start), *b = static_cast<const Event*>(end);
    TORCH_CHECK(a != nullptr && b != nullptr && a->handle != 0 && b->handle != 0,
                "Both events must be recorded before calculating elapsed time.");
    double milliseconds = 0;
    check(dml_event_elapsed(a->handle, b->handle, &milliseconds));
    return milliseconds;
  }

  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    if (event == nullptr) return;
    Event* e = static_cast<Event*>(event);
    e->replace(0);
    delete e;
  }

 private:
  static c10::Device of(c10::DeviceIndex index) { return {backend.type, index}; }

  static c10::Device with_index(c10::Device device) {
    if (!device.has_index()) return of(current_device());
    check_device(device.index());
    return device;
  }

  static c10::Stream stream(c10::Device device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, device, id);
  }
};

}  // namespace

void register_guard() { c10::impl::DeviceGuardImplRegistrar(backend.type, new Guard); }

}  // namespace dml
