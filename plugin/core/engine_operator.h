// The engine's own operators as functions of C++ types.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace dml {

// "torch_dml::cross_entropy" and its like: their schemas are in the engine's table. An operator
// whose results are undefined tensors has declined the call, which is then PyTorch's to compose.
template <class Signature>
c10::TypedOperatorHandle<Signature> engine_operator(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

// An argument that may be none, which in C++ is often an undefined tensor.
using MaybeTensor = std::optional<at::Tensor>;

inline MaybeTensor maybe(const at::Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; }

}  // namespace dml
