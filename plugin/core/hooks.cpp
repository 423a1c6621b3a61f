// Registration of the hooks for PrivateUse1, which torch.accelerator and device-generic code use.
#include "core/hooks.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "core/register.h"
#include "core/storage.h"

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
