// The hooks that PyTorch requires of an accelerator backend.
#pragma once
#include <ATen/core/Generator.h>

#include "core/backend.h"
#include "core/device.h"
#include "core/generator.h"
#include "core/host_allocator.h"

namespace dml {

template <class Interface>
struct DeviceHooks : Interface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  void init() const override {}

  // A device is opened at its first use. This query must not open it; every device can be used.
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index < device_count(); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return dml::current_device(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex previous = dml::current_device();
    set_current_device(index);
    return previous;
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? dml::current_device() : exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  // Addresses of two devices may be equal, so the current device is the best answer.
  at::Device getDeviceFromPtr(void*) const override { return {backend.type, dml::current_device()}; }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
};

}  // namespace dml
