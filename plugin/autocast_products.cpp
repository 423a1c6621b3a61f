// Products under autocast: operands are rounded while they are read.
//
// PyTorch's kernels convert each float32 operand in a pass of its own, and autograd then saves what
// is half as large. Where it saves nothing, products are given float32 as it lies. Weights are
// converted once for as long as autocast is on, and remain so.
#include <ATen/TracerMode.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/mm_ops.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "backend.h"
#include "plain.h"
#include "product_dtype.h"
#include "register.h"

namespace dml {
namespace {

using at::Tensor;

// Whether something takes note of operators, which must find autocast's conversions among them.
bool is_followed() {
  return in_transform() || at::tracer::impl::is_dispatch_enabled() || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

// Whether autocast converts an argument, and no gradient of it is recorded.
template <class T>
bool fits(const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return is_plain(argument) && at::autocast::is_eligible(argument, backend.type) &&
           !(argument.requires_grad() && c10::GradMode::is_enabled());
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    return !argument.has_value() || !argument->defined() || fits(*argument);
  } else {
    return true;
  }
}

// Whether the operand's conversion is kept for its next use, as PyTorch decides it.
bool is_kept(const Tensor& operand) {
  return operand.requires_grad() && operand.is_leaf() && !operand.is_view() &&
         at::autocast::is_autocast_cache_enabled();
}

// An argument as it is given to the product. Converted, what has gaps would lie without them, and
// PyTorch might compose the product otherwise.
template <bool Operand, class T>
T given(c10::ScalarType dtype, const T& argument) {
  if constexpr (Operand) {
    const bool is_read = argument.scalar_type() == at::kFloat && argument.is_non_overlapping_and_dense();
    if (is_read && !is_kept(argument)) return argument;
  }
  return at::autocast::cached_cast(dtype, argument, backend.type);
}

// `Op` is at::_ops::mm and its like; its operands are the arguments `First` and the next one.
template <class Op, size_t First, class Schema = typename Op::schema>
struct Product;

template <class Op, size_t First, class R, class... A>
struct Product<Op, First, R(A...)> {
  static R run(A... arguments) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key());
    const c10::ScalarType dtype = at::autocast::get_autocast_dtype(backend.type);
    if ((dtype == at::kHalf || dtype == at::kBFloat16) && !is_followed() && (fits(arguments) && ...)) {
      const ProductDtype rounded(dtype);
      return with_operands(dtype, std::index_sequence_for<A...>(), arguments...);
    }
    return Op::call(at::autocast::cached_cast(dtype, arguments, backend.type)...);
  }

 private:
  template <size_t... I>
  static R with_operands(c10::ScalarType dtype, std::index_sequence<I...>, A... arguments) {
    return Op::call(given < I == First || I == First + 1 > (dtype, arguments)...);
  }
};

template <class Op, size_t First>
void product(torch::Library& autocast, Names& taken) {
  autocast.impl(Op::name, torch::CppFunction(&Product<Op, First>::run));
  taken.insert(Op::name);
}

}  // namespace

void register_autocast_products(Names& taken) {
  namespace op = at::_ops;
  torch::Library& autocast = library("aten", autocast_key());
  product<op::linear, 0>(autocast, taken);
  product<op::matmul, 0>(autocast, taken);
  product<op::mm, 0>(autocast, taken);
  product<op::bmm, 0>(autocast, taken);
  product<op::addmm, 1>(autocast, taken);
  product<op::baddbmm, 1>(autocast, taken);
}

}  // namespace dml
