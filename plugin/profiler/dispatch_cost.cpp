// Calls of operators from C++ through PyTorch's dispatcher, to measure which part of the cost of a
// call is Python's.
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/full.h>
#include <ATen/ops/relu.h>

#include <exception>
#include <string_view>

#include "core/backend.h"
#include "core/device.h"

namespace dml {
namespace {

template <class Body>
void repeat(uint64_t times, Body body) {
  for (uint64_t i = 0; i < times; ++i) body();
}

void dispatch(std::string_view op, c10::DeviceIndex device, uint64_t times) {
  const std::vector<int64_t> sizes = op == "addmm" ? std::vector<int64_t>{64, 64} : std::vector<int64_t>{16};
  at::Tensor x = at::full(sizes, 0.5, at::device(c10::Device(backend.type, device)));
  if (op == "add") return repeat(times, [&] { at::add(x, x); });
  if (op == "relu") return repeat(times, [&] { at::relu(x); });
  if (op == "addmm") return repeat(times, [&] { at::addmm(x, x, x); });
  if (op == "fill") return repeat(times, [&] { at::fill_(x, 1.0); });
  TORCH_CHECK(false, "there is no loop for ", op);
}

}  // namespace
}  // namespace dml

// Calls "add", "relu", "addmm" or "fill" `count` times. Not 0, with a warning, if that fails.
DML_EXPORT int32_t dml_plugin_dispatch(const char* op, int32_t device, uint64_t times) {
  try {
    dml::dispatch(op, static_cast<c10::DeviceIndex>(device), times);
    return DML_OK;
  } catch (const std::exception& e) {
    dml::warn(e.what());
    return DML_RUNTIME_ERROR;
  }
}
