// What torch.accelerator and generic code ask of a backend.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "backend.h"
#include "device.h"
#include "generator.h"
#include "host_allocator.h"
#include "register.h"
#include "storage.h"

namespace dml {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  void init() const override {}

  // A device is opened at its first use; asking must not open it, and all of them can be used.
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return index < device_count(); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex previous = current_device();
    set_current_device(index);
    return previous;
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current_device() : exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  // Addresses of two devices may be equal: the current one is the best answer there is.
  at::Device getDeviceFromPtr(void*) const override { return {backend.type, current_device()}; }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
};

}  // namespace

void register_hooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

}  // namespace dml
