// Functions whose operands PyTorch prepares before it calls a stub of the device.
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/UnaryOps.h>

#include "core/engine_operator.h"
#include "core/library.h"
#include "operators/register.h"

namespace dml {
namespace {

using at::Tensor;

// torch.ldexp of floats and integers.
void ldexp(at::TensorIteratorBase& iterator) {
  using Signature = Tensor&(const Tensor&, const Tensor&, Tensor&);
  static const auto engine = engine_operator<Signature>("torch_dml::ldexp", "out");
  Tensor out = iterator.tensor(0);
  engine.call(iterator.tensor(1), iterator.tensor(2), out);
}

void kaiser_window(at::TensorIteratorBase& iterator, int64_t length, double beta) {
  using Signature = Tensor&(const Tensor&, int64_t, double, Tensor&);
  static const auto engine = engine_operator<Signature>("torch_dml::kaiser_window", "out");
  Tensor out = iterator.tensor(0);
  engine.call(iterator.tensor(1), length, beta, out);
}

}  // namespace

void register_stubs() {
  set_stub(at::native::kaiser_window_stub, &kaiser_window);
  set_stub(at::native::ldexp_stub, &ldexp);
}

}  // namespace dml
