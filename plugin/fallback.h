// What the engine cannot do runs on the CPU, warned about once an operator and counted.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>

namespace dml {

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Counts one fallback of `name` and warns at its first; raises under TORCH_DML_FALLBACK=error.
void count_fallback(const std::string& name);

}  // namespace dml
