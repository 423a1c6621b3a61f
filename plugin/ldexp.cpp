// torch.ldexp of floats and integers: PyTorch does the rest, and asks the device's kernel for the
// result.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/TensorIterator.h>

#include "register.h"

namespace dml {
namespace {

void ldexp(at::TensorIteratorBase& iterator) {
  using Signature = at::Tensor&(const at::Tensor&, const at::Tensor&, at::Tensor&);
  static const auto engine =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::ldexp", "out").typed<Signature>();
  at::Tensor out = iterator.tensor(0);
  engine.call(iterator.tensor(1), iterator.tensor(2), out);
}

}  // namespace

void register_ldexp() { set_stub(at::native::ldexp_stub, &ldexp); }

}  // namespace dml
