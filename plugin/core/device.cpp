#include "core/device.h"

#include "core/interrupt.h"

namespace dml {
namespace {
thread_local c10::DeviceIndex current = 0;
}

c10::DeviceIndex device_count() noexcept {
  // Cached: PyTorch calls this often, and the engine's answer does not change.
  static const c10::DeviceIndex count = [] {
    int32_t n = 0;
    if (dml_device_count(&n) != DML_OK || n < 0) n = 0;
    return static_cast<c10::DeviceIndex>(n < kMaxDevices ? n : kMaxDevices);
  }();
  return count;
}

c10::DeviceIndex current_device() { return current; }

c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept {
  const c10::DeviceIndex previous = current;
  if (index >= 0) current = index;
  return previous;
}

void check_device(c10::DeviceIndex index) {
  const c10::DeviceIndex count = device_count();
  TORCH_CHECK(index >= 0 && index < count, "invalid dml device index ", static_cast<int>(index), ": there ",
              count == 1 ? "is " : "are ", static_cast<int>(count), " dml device", count == 1 ? "" : "s");
}

void set_current_device(c10::DeviceIndex index) {
  check_device(index);
  current = index;
}

void raise(int32_t status) {
  if (status == DML_INTERRUPTED && holds_interruption()) throw_interruption();
  const char* text = dml_last_error();
  const std::string message = text != nullptr && *text != 0 ? text : "unknown error in the dml engine";
  switch (status) {
    case DML_INDEX_ERROR: TORCH_CHECK_INDEX(false, message);
    case DML_TYPE_ERROR: TORCH_CHECK_TYPE(false, message);
    case DML_VALUE_ERROR: TORCH_CHECK_VALUE(false, message);
    case DML_NOT_IMPLEMENTED:
    case DML_FALLBACK: TORCH_CHECK_NOT_IMPLEMENTED(false, message);
    case DML_OUT_OF_MEMORY: TORCH_CHECK_WITH(OutOfMemoryError, false, message);
    case DML_DEVICE_LOST:
      throw c10::AcceleratorError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, DML_DEVICE_LOST, message);
    default: TORCH_CHECK(false, message);
  }
}

void warn(const std::string& message) {
  // TORCH_WARN would print the build machine's path of this file.
  c10::warn(c10::Warning(c10::UserWarning(), {__func__, "torch_dml", static_cast<uint32_t>(__LINE__)}, message,
                         /*verbatim=*/false));
}

}  // namespace dml
