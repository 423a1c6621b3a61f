// Registration of kernels with PyTorch's dispatcher.
#pragma once
#include <torch/library.h>

#include <set>
#include <string>

#include "core/backend.h"

namespace dml {

// A library that stays registered until the process ends.
torch::Library& library(const char* ns, c10::DispatchKey key);

// Names of operators ("aten::view"). A registering function with such a parameter adds the
// operators that it registers, which the boxed trampoline then skips.
using Names = std::set<std::string>;

// Sets the kernel of a DispatchStub for the device.
template <class Stub, class Function>
void set_stub(Stub& stub, Function* function) {
  if (is_cuda()) {
    stub.set_cuda_dispatch_ptr(function);
  } else {
    stub.set_privateuse1_dispatch_ptr(function);
  }
}

}  // namespace dml
