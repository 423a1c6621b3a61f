// What torch.accelerator and generic code ask of a backend of its own.
#include "hooks.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "register.h"
#include "storage.h"

namespace dml {
namespace {

struct Hooks final : DeviceHooks<at::PrivateUse1HooksInterface> {
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }
};

}  // namespace

void register_hooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

}  // namespace dml
