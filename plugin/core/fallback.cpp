#include "core/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/backend.h"
#include "core/device.h"
#include "core/json.h"
#include "core/library.h"
#include "core/register.h"
#include "core/table.h"
#include "engine.h"

namespace dml {
namespace {

struct Counter {
  std::mutex mutex;
  uint64_t total = 0;
  std::map<std::string, std::map<std::string, uint64_t>> by_name;  // then by reason
  std::set<std::string> warned;  // kept when the counters are reset
};

std::map<std::string, Composition>& compositions() {
  static std::map<std::string, Composition>& instance = *new std::map<std::string, Composition>;
  return instance;
}

Counter& counter() {
  static Counter& instance = *new Counter;
  return instance;
}

// The CPU refuses generators of other devices. A CPU generator that is seeded from the device's
// keeps the results a function of the device generator's state.
at::Generator cpu_twin(const at::Generator& generator) {
  at::Generator own = generator;
  const uint64_t offset = own.get_offset();
  own.set_offset(offset + 4);
  return at::detail::createCPUGenerator(own.current_seed() + 0x9E3779B97F4A7C15ull * offset);
}

// The *_overrideable operators exist only for backends: on the CPU the plain operators run instead.
std::optional<c10::OperatorHandle> plain_form(const std::string& name, torch::jit::Stack* stack) {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (name == "aten::convolution_overrideable") return dispatcher.findSchemaOrThrow("aten::convolution", "");
  if (name == "aten::convolution_backward_overrideable") {
    // convolution_backward has the bias's sizes after the weight.
    const size_t base = stack->size() - 10;
    const at::Tensor weight = (*stack)[base + 2].toTensor();
    const bool transposed = (*stack)[base + 6].toBool();
    const int64_t channels = transposed ? weight.size(1) * (*stack)[base + 8].toInt() : weight.size(0);
    stack->insert(stack->begin() + static_cast<std::ptrdiff_t>(base) + 3, at::IValue(std::vector<int64_t>{channels}));
    return dispatcher.findSchemaOrThrow("aten::convolution_backward", "");
  }
  return std::nullopt;
}

// cpu_fallback sends results to the device of the first tensor, which may be a 0-dim CPU tensor
// beside a dml one.
std::optional<c10::Device> device_to_restore(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const size_t nargs = op.schema().arguments().size();
  bool cpu_first = false;
  for (size_t i = stack.size() - nargs; i < stack.size(); ++i) {
    const at::IValue& value = stack[i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const c10::Device device = value.toTensor().device();
    if (is_ours(device)) return cpu_first ? std::optional(device) : std::nullopt;
    cpu_first = true;
  }
  return std::nullopt;
}

template <c10::DispatchKey Cpu>
void boxed_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fallback(op, stack, kNotWritten, Cpu);
}

// Also for PrivateUse1's key where the device is CUDA: CUDA's operators without a kernel here are
// redirected to that key (cuda.cpp).
template <c10::DispatchKey Cpu>
void register_fallback_of(c10::DispatchKey ours, c10::DispatchKey own) {
  for (const auto key : std::set{ours, own}) {
    library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback<Cpu>>());
  }
}

}  // namespace

std::string name_of(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// Raises for tensors on different devices, as every other backend does; the CPU fallback would copy
// them all. Not checked, because they may be on the CPU: lists (indices), 0-dim tensors, the
// lengths of packed sequences, and weights that FBGEMM has packed.
void check_same_device(const std::string& name, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  static const std::set<std::string> of_host = {"batch_sizes", "lengths", "packed", "packed_weight"};
  const auto& arguments = op.schema().arguments();
  std::optional<c10::Device> dml;
  std::optional<c10::Device> other;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const at::IValue& value = stack[stack.size() - arguments.size() + i];
    if (!value.isTensor() || !value.toTensor().defined() || of_host.count(arguments[i].name()) != 0) continue;
    const at::Tensor& tensor = value.toTensor();
    const c10::Device device = tensor.device();
    if (is_ours(device) && !dml.has_value()) {
      dml = device;
    } else if (device != dml && (is_ours(device) || tensor.dim() > 0)) {
      other = device;
    }
  }
  TORCH_CHECK(!dml.has_value() || !other.has_value(),
              "Expected all tensors to be on the same device, but found at least two devices, ", *dml, " and ", *other,
              "! (in ", name, ")");
}

void compose_instead(const std::string& name, Composition compose) { compositions().emplace(name, compose); }

void count_fallback(const std::string& name, const std::string& reason) {
  TORCH_CHECK_NOT_IMPLEMENTED(dml_fallback_is_error() == 0, "The operator '", name,
                              "' has no dml kernel for these arguments (", reason,
                              "), and TORCH_DML_FALLBACK=error forbids the CPU.");
  bool first = false;
  {
    Counter& c = counter();
    const std::lock_guard<std::mutex> lock(c.mutex);
    ++c.total;
    ++c.by_name[name][reason];
    first = c.warned.insert(name).second;
  }
  if (first) {
    warn("The operator '" + name +
         "' has no dml kernel for these arguments and runs on the CPU, which is slower: " + reason);
  }
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason,
              c10::DispatchKey cpu_key) {
  const std::string name = name_of(op);
  check_same_device(name, op, *stack);
  if (const auto composition = compositions().find(name); composition != compositions().end()) {
    warn("The operator '" + name + "' is composed of others, which is slower: " + reason);
    return composition->second(stack);
  }
  count_fallback(name, reason);
  for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (value.isGenerator() && is_ours(value.toGenerator().device())) value = cpu_twin(value.toGenerator());
  }
  const std::optional<c10::OperatorHandle> plain = plain_form(name, stack);
  const c10::OperatorHandle& run = plain.has_value() ? *plain : op;
  const std::optional<c10::Device> device = device_to_restore(run, *stack);
  at::native::cpu_fallback(run, stack, /*error_on_views=*/true, cpu_key);
  if (!device.has_value()) return;
  const auto& returns = run.schema().returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    at::IValue& value = (*stack)[stack->size() - returns.size() + i];
    if (returns[i].alias_info() == nullptr && value.isTensor() && value.toTensor().defined()) {
      value = value.toTensor().to(*device);
    }
  }
}

void register_fallback() {
  using c10::DispatchKey;
  register_fallback_of<DispatchKey::CPU>(backend.dense, DispatchKey::PrivateUse1);
  register_fallback_of<DispatchKey::SparseCPU>(backend.sparse, DispatchKey::SparsePrivateUse1);
  register_fallback_of<DispatchKey::SparseCsrCPU>(backend.sparse_csr, DispatchKey::SparseCsrPrivateUse1);
  // PyTorch registers for these a kernel for every device that only raises; it would take
  // precedence over the fallback above.
  torch::Library& aten = library("aten", backend.dense);
  for (const char* name : {"aten::convolution_overrideable", "aten::convolution_backward_overrideable"}) {
    if (!find_operator(name).has_value()) {
      aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed_fallback<c10::DispatchKey::CPU>>());
    }
  }
}

}  // namespace dml

DML_EXPORT uint64_t dml_plugin_fallback_count() {
  dml::Counter& c = dml::counter();
  const std::lock_guard<std::mutex> lock(c.mutex);
  return c.total;
}

DML_EXPORT const char* dml_plugin_fallbacks_json() {
  thread_local std::string text;
  dml::Counter& c = dml::counter();
  const std::lock_guard<std::mutex> lock(c.mutex);
  text = "{";
  for (const auto& [name, reasons] : c.by_name) {
    text += text.size() > 1 ? ", " : "";
    dml::append_quoted(text, name);
    text += ": {";
    const char* separator = "";
    for (const auto& [reason, count] : reasons) {
      text += separator;
      dml::append_quoted(text, reason);
      text += ": " + std::to_string(count);
      separator = ", ";
    }
    text += "}";
  }
  text += "}";
  return text.c_str();
}

DML_EXPORT void dml_plugin_reset_fallbacks() {
  dml::Counter& c = dml::counter();
  const std::lock_guard<std::mutex> lock(c.mutex);
  c.total = 0;
  c.by_name.clear();
}
