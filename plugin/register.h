// What dml_plugin_init registers, one function a subject. Nothing registers itself in a static
// initialiser: a plugin that refuses its torch must leave no trace.
#pragma once
#include <torch/library.h>

#include <set>
#include <string>

#include "backend.h"

namespace dml {

void register_allocator();
void register_host_allocator();
void register_guard();
void register_hooks();
void register_cuda_hooks();
void register_kineto();
void register_profiler();

// A library that stays registered until the process ends.
torch::Library& library(const char* ns, c10::DispatchKey key);

// Sets the kernel of a DispatchStub for the device.
template <class Stub, class Function>
void set_stub(Stub& stub, Function* function) {
  if (is_cuda()) {
    stub.set_cuda_dispatch_ptr(function);
  } else {
    stub.set_privateuse1_dispatch_ptr(function);
  }
}

// Gives every operator of a namespace that has a kernel of CUDA's what a backend without it has.
// Ours are registered after it.
void replace_cuda(const char* name_space);

// What else PyTorch does for CUDA alone. After replace_cuda.
void register_over_cuda();

// Each of these adds to the set of names ("aten::view") that the boxed trampoline must leave alone.
using Names = std::set<std::string>;
void register_views(torch::Library& aten, Names& taken);
void register_factories(torch::Library& aten, Names& taken);
void register_copies(torch::Library& aten, Names& taken);
void register_hot(torch::Library& aten, Names& taken);
void register_table(torch::Library& library, const char* name_space, const Names& taken);
void register_fallback();
void register_host_reads();
// Autocast's kernels of operators of their own, whose names are added to those that PyTorch's lists
// must leave alone.
void register_autocast_products(Names& taken);
void register_autocast(const Names& taken);
void register_library_autocast(const char* name_space);
void register_torchscript();
void register_attention();
void register_ldexp();
void register_kaiser_window();
void register_nested();
void register_quantized();
void register_sparse();

// Defines the operators of the engine that are no one else's, "torch_dml::recurrence" and its like,
// and registers them.
void register_own();
void register_recurrent();
void register_cross_entropy();
void register_half_fft();
void register_quantized_linear();

}  // namespace dml
