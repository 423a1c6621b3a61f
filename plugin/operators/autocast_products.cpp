// Matrix products under autocast: the kernels round the operands while they read them.
//
// PyTorch's autocast converts each float32 operand in a separate pass, and autograd saves the
// converted tensors, which are half as large. Where autograd saves nothing, products get the
// float32 tensors unconverted. Weights are still converted once per autocast region and cached.
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

#include "core/backend.h"
#include "core/library.h"
#include "core/plain.h"
#include "core/product_dtype.h"
#include "operators/register.h"

namespace dml {
namespace {

using at::Tensor;

// Whether a mode or tracer records operators, and so has to see autocast's conversions.
bool is_followed() {
  return in_transform() || at::tracer::impl::is_dispatch_enabled() || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

// Whether autocast would convert the argument, and autograd does not record it.
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

// Whether autocast caches the conversion of the operand; PyTorch's condition.
bool is_kept(const Tensor& operand) {
  return operand.requires_grad() && operand.is_leaf() && !operand.is_view() &&
         at::autocast::is_autocast_cache_enabled();
}

// The argument that the product gets: an unconverted float32 operand only if it is dense. The
// result of a conversion would be dense, and PyTorch may compose products differently by strides.
template <bool Operand, class T>
T given(c10::ScalarType dtype, const T& argument) {
  if constexpr (Operand) {
    const bool is_read = argument.scalar_type() == at::kFloat && argument.is_non_overlapping_and_dense();
    if (is_read && !is_kept(argument)) return argument;
  }
  return at::autocast::cached_cast(dtype, argument, backend.type);
}

// `Op` is a product, such as at::_ops::mm; its operands are the arguments `First` and `First` + 1.
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
