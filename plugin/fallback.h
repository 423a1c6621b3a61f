// What the engine cannot do runs on the CPU, warned about once an operator and counted.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>

namespace dml {

// As fallbacks are counted: "aten::add.Tensor".
std::string name_of(const c10::OperatorHandle& op);

// Raises if tensors are on several devices, where a backend with a kernel would.
void check_same_device(const std::string& name, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// `cpu_key` is the key under which the CPU has the operator's kernel.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack,
              c10::DispatchKey cpu_key = c10::DispatchKey::CPU);

// Counts one fallback of `name` and warns at its first; raises under TORCH_DML_FALLBACK=error.
void count_fallback(const std::string& name);

}  // namespace dml
