// Operators without a kernel run on the CPU, with one warning per operator, and are counted.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>

namespace dml {

// The name under which fallbacks are counted: "aten::add.Tensor".
std::string name_of(const c10::OperatorHandle& op);

// Raises if tensors are on several devices, as backends with a kernel do.
void check_same_device(const std::string& name, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The reason of operators that dml does not have at all.
inline constexpr const char* kNotWritten = "torch-dml does not have this operator";

// `reason` says why the device cannot run the call. `cpu_key` is the key under which the CPU has
// the operator's kernel.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& reason,
              c10::DispatchKey cpu_key = c10::DispatchKey::CPU);

// An operator that the CPU does not have either: `compose` computes it of other operators on the
// device, if the driver refuses its kernels.
using Composition = void (*)(torch::jit::Stack* stack);
void compose_instead(const std::string& name, Composition compose);

// Counts one fallback of `name` and warns at its first; raises under TORCH_DML_FALLBACK=error.
void count_fallback(const std::string& name, const std::string& reason);

}  // namespace dml
