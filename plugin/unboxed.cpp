// The hot overloads without the stack: same engine entry, arguments read straight from their C++
// types.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_ops.h>
#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_copy_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_maximum_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_neg_ops.h>
#include <ATen/ops/_foreach_norm_ops.h>
#include <ATen/ops/_foreach_reciprocal_ops.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_foreach_sub_ops.h>
#include <ATen/ops/_foreach_zero_ops.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/_thnn_fused_gru_cell_backward_ops.h>
#include <ATen/ops/_thnn_fused_gru_cell_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/arange_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/convolution_backward_overrideable_ops.h>
#include <ATen/ops/convolution_overrideable_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include "call.h"
#include "convert.h"
#include "fallback.h"
#include "measure.h"
#include "register.h"
#include "table.h"

namespace dml {
namespace {

template <class R>
struct Results {  // one tensor
  static constexpr size_t count = 1;
  static R from(Call& call, const DmlValue* values) {
    if constexpr (std::is_same_v<R, c10::Scalar>) {
      return to_scalar(values[0]);
    } else if constexpr (std::is_same_v<R, c10::SymInt>) {
      return to_scalar(values[0]).toLong();
    } else {
      return call.take(values[0]);
    }
  }
};

template <>
struct Results<std::vector<at::Tensor>> {
  static constexpr size_t count = 1;
  static std::vector<at::Tensor> from(Call& call, const DmlValue* values) {
    TORCH_INTERNAL_ASSERT(values->tag == DML_TAG_TENSORS, "the dml engine returned no list of tensors");
    std::vector<at::Tensor> list;
    list.reserve(static_cast<size_t>(values->len));
    for (int64_t i = 0; i < values->len; ++i) list.push_back(call.take(values->u.tensors[i]));
    return list;
  }
};

template <class... R>
struct Results<std::tuple<R...>> {
  static constexpr size_t count = sizeof...(R);
  static std::tuple<R...> from(Call& call, const DmlValue* values) {
    return from(call, values, std::index_sequence_for<R...>());
  }
  template <size_t... I>
  static std::tuple<R...> from(Call& call, const DmlValue* values, std::index_sequence<I...>) {
    return {Results<R>::from(call, values + I)...};
  }
};

// The tensor that an in-place or out= overload returns: its one non-const argument.
inline at::Tensor* written() { return nullptr; }
template <class First, class... Rest>
at::Tensor* written(First&& first, Rest&&... rest) {
  if constexpr (std::is_same_v<First, at::Tensor&>) {
    return &first;
  } else {
    return written(std::forward<Rest>(rest)...);
  }
}

// `Op` is at::_ops::add_Tensor and its like, which carry name and signature.
template <class Op, class Schema = typename Op::schema>
struct Hot;

template <class Op, class R, class... A>
struct Hot<Op, R(A...)> {
  static inline uint32_t id = 0;

  static R run(A... args) {
    const Measured stage;
    DmlValue values[sizeof...(A)];
    Writer writer;
    size_t i = 0;
    (writer.put(values[i++], args), ...);
    Call call;
    if constexpr (std::is_reference_v<R>) {
      DmlValue result;
      if (C10_UNLIKELY(!call.run(id, writer.device(), values, sizeof...(A), &result, 1))) cpu(args...);
      return *written(std::forward<A>(args)...);
    } else if constexpr (std::is_void_v<R>) {
      if (C10_UNLIKELY(!call.run(id, writer.device(), values, sizeof...(A), nullptr, 0))) cpu(args...);
    } else {
      DmlValue results[Results<R>::count];
      if (C10_UNLIKELY(!call.run(id, writer.device(), values, sizeof...(A), results, Results<R>::count))) {
        return cpu(args...);
      }
      return Results<R>::from(call, results);
    }
  }

  // The CPU's turn, for which the arguments do go through a stack.
  C10_NOINLINE static R cpu(A... args) {
    static const c10::OperatorHandle handle =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    torch::jit::Stack stack;
    (stack.push_back(boxed(args)), ...);
    fallback(handle, &stack);
    if constexpr (std::is_reference_v<R>) {
      return *written(std::forward<A>(args)...);
    } else if constexpr (!std::is_void_v<R>) {
      return unboxed<R>(stack);
    }
  }

 private:
  template <class T>
  static at::IValue boxed(const T& x) {
    if constexpr (std::is_same_v<T, at::ITensorListRef>) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : x) list.push_back(t);
      return list;
    } else {
      return at::IValue(x);
    }
  }

  template <class T, size_t... I>
  static T unboxed_tuple(torch::jit::Stack& stack, std::index_sequence<I...>) {
    return T{std::move(stack[I]).template to<std::tuple_element_t<I, T>>()...};
  }

  template <class T>
  static T unboxed(torch::jit::Stack& stack) {
    if constexpr (std::is_same_v<T, at::Tensor> || std::is_same_v<T, c10::Scalar> ||
                  std::is_same_v<T, std::vector<at::Tensor>>) {
      return std::move(stack[0]).template to<T>();
    } else {
      return unboxed_tuple<T>(stack, std::make_index_sequence<std::tuple_size_v<T>>());
    }
  }
};

template <class Op>
void hot(torch::Library& aten, Names& taken) {
  std::string name = Op::name;
  if (*Op::overload_name != 0) name = name + "." + Op::overload_name;
  const std::optional<uint32_t> id = find_operator(name);
  if (!id.has_value()) return;  // the CPU fallback serves it
  Hot<Op>::id = *id;
  aten.impl(name.c_str(), torch::CppFunction(&Hot<Op>::run));
  taken.insert(std::move(name));
}

template <class... Op>
void hot_all(torch::Library& aten, Names& taken) {
  (hot<Op>(aten, taken), ...);
}

}  // namespace

void register_hot(torch::Library& aten, Names& taken) {
  namespace op = at::_ops;
  // What scripts/hot_operators.py finds, and its relatives.
  // Arithmetic.
  hot_all<op::add_Tensor, op::add__Tensor, op::sub_Tensor, op::sub__Tensor, op::mul_Tensor, op::mul__Tensor,
          op::div_Tensor, op::div__Tensor, op::rsub_Scalar, op::neg, op::reciprocal, op::sqrt, op::rsqrt, op::exp,
          op::log, op::pow_Tensor_Scalar, op::addcmul, op::addcmul_, op::addcdiv, op::addcdiv_, op::lerp_Scalar,
          op::lerp__Scalar, op::clamp_min, op::where_self>(aten, taken);
  // Comparison.
  hot_all<op::eq_Tensor, op::eq_Scalar, op::ne_Tensor, op::ne_Scalar, op::lt_Tensor, op::lt_Scalar, op::le_Tensor,
          op::le_Scalar, op::gt_Tensor, op::gt_Scalar, op::ge_Tensor, op::ge_Scalar>(aten, taken);
  // Activations and losses.
  hot_all<op::relu, op::relu_, op::threshold_backward, op::tanh, op::tanh_backward, op::sigmoid, op::sigmoid_backward,
          op::gelu, op::gelu_backward, op::silu, op::_softmax, op::_softmax_backward_data, op::_log_softmax,
          op::_log_softmax_backward_data, op::mse_loss, op::mse_loss_backward, op::nll_loss_forward,
          op::nll_loss_backward, op::native_dropout, op::native_dropout_backward>(aten, taken);
  // Products, layers and reductions.
  hot_all<op::mm, op::addmm, op::bmm, op::baddbmm, op::convolution_overrideable, op::convolution_backward_overrideable,
          op::max_pool2d_with_indices, op::max_pool2d_with_indices_backward, op::_adaptive_avg_pool2d,
          op::native_batch_norm, op::native_batch_norm_backward, op::native_layer_norm, op::native_layer_norm_backward,
          op::_scaled_dot_product_fused_attention_overrideable,
          op::_scaled_dot_product_fused_attention_overrideable_backward, op::_thnn_fused_lstm_cell,
          op::_thnn_fused_lstm_cell_backward_impl, op::_thnn_fused_gru_cell, op::_thnn_fused_gru_cell_backward,
          op::sum_dim_IntList, op::mean, op::mean_dim, op::argmax>(aten, taken);
  // Lists of tensors.
  hot_all<op::_foreach_add__List, op::_foreach_add__Scalar, op::_foreach_add__ScalarList, op::_foreach_add_List,
          op::_foreach_add_Scalar, op::_foreach_sub__List, op::_foreach_sub__Scalar, op::_foreach_sub_Scalar,
          op::_foreach_mul__List, op::_foreach_mul__Scalar, op::_foreach_mul__ScalarList, op::_foreach_mul__Tensor,
          op::_foreach_mul_Scalar, op::_foreach_div__List, op::_foreach_div__Scalar, op::_foreach_div__ScalarList,
          op::_foreach_addcmul__Scalar, op::_foreach_addcdiv__Scalar, op::_foreach_addcdiv__ScalarList,
          op::_foreach_lerp__Scalar, op::_foreach_maximum__List, op::_foreach_neg, op::_foreach_neg_,
          op::_foreach_reciprocal_, op::_foreach_sqrt, op::_foreach_sqrt_, op::_foreach_norm_Scalar, op::_foreach_zero_,
          op::_foreach_copy_, op::_fused_adam_, op::_fused_adam__tensor_lr, op::_fused_adamw_,
          op::_fused_adamw__tensor_lr, op::_fused_sgd_, op::_fused_sgd__tensor_lr,
          op::_amp_foreach_non_finite_check_and_unscale_>(aten, taken);
  // Movement.
  hot_all<op::cat, op::index_select, op::embedding, op::embedding_dense_backward, op::arange_start_out,
          op::fill__Scalar, op::zero_, op::_local_scalar_dense>(aten, taken);
}

}  // namespace dml
