// What this folder registers: the device, and the engine's table of operators. Nothing registers
// itself in a static initialiser: a plugin that refuses its torch must leave no trace.
#pragma once
#include "core/library.h"

namespace dml {

void register_allocator();
void register_host_allocator();
void register_guard();
void register_hooks();
void register_cuda_hooks();

// Replaces the CUDA kernels of all operators of a namespace by what a backend without kernels gets.
// The plugin's kernels are registered afterwards.
void replace_cuda(const char* name_space);

// Replaces what else PyTorch does only for CUDA. After replace_cuda.
void register_over_cuda();

void register_copies(torch::Library& aten, Names& taken);
void register_table(torch::Library& library, const char* name_space, const Names& taken);
void register_fallback();

// Defines and registers the engine's own operators, such as "torch_dml::cross_entropy".
void register_own();

}  // namespace dml
