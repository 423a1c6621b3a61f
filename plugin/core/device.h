// Devices: their number, the current device of this thread, and exceptions for failed statuses.
#pragma once
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <string>

#include "engine.h"

#if defined(_WIN32)
#define DML_EXPORT extern "C" __declspec(dllexport)
#else
#define DML_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace dml {

constexpr int kMaxDevices = 32;

c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device();
void check_device(c10::DeviceIndex index);  // raises unless there is such a device
void set_current_device(c10::DeviceIndex index);                    // checks it
c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept;  // does not

// Throws the exception that `status` stands for, with the engine's message.
[[noreturn]] void raise(int32_t status);

// A UserWarning at the user's line.
void warn(const std::string& message);

inline void check(int32_t status) {
  if (C10_UNLIKELY(status != DML_OK)) raise(status);
}

// Makes a device current for a scope. Cheaper than c10::DeviceGuard, which goes through the
// registry.
class CurrentDevice {
 public:
  explicit CurrentDevice(c10::DeviceIndex index) : previous_(exchange_device(index)) {}
  ~CurrentDevice() { exchange_device(previous_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  c10::DeviceIndex previous_;
};

}  // namespace dml
