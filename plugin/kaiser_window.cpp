// torch.kaiser_window: PyTorch counts the points, and asks the device's kernel for the window.
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/full.h>
#include <ATen/ops/special_i0.h>

#include "register.h"

namespace dml {
namespace {

void kaiser_window(at::TensorIteratorBase& iterator, int64_t length, double beta) {
  at::Tensor out = iterator.tensor(0);
  const at::Tensor points = iterator.tensor(1).to(at::toOpMathType(out.scalar_type()));
  const at::Tensor places = points.mul(2.0 / static_cast<double>(length - 1)).sub(1);  // from -1 to 1
  const at::Tensor heights = places.square().neg().add(1).clamp_min(0).sqrt();
  out.copy_(at::special_i0(heights.mul(beta)).div(at::special_i0(at::full({}, beta, points.options()))));
}

}  // namespace

void register_kaiser_window() { set_stub(at::native::kaiser_window_stub, &kaiser_window); }

}  // namespace dml
