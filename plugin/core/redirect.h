// Operators under one dispatch key that run the kernels of another key.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <set>
#include <string>

namespace dml {

template <c10::DispatchKey To>
void run_under(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(To), stack);
}

// Registers `kernel` under the library's key for every operator of a namespace that has a kernel
// for the key `having`, except for the names in `but`.
template <c10::KernelFunction::BoxedKernelFunction* kernel>
void redirect(torch::Library& library, const std::string& name_space, c10::DispatchKey having,
              const std::set<std::string>& but = {}) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind(name_space + "::", 0) != 0) continue;
    const auto op = dispatcher.findOp(name);
    if (!op.has_value() || !op->hasKernelForDispatchKey(having)) continue;
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    if (but.count(full) != 0) continue;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<kernel>());
  }
}

}  // namespace dml
