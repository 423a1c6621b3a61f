// Written by `make tables` from the table of operators in crates/aten.
// clang-format off
#pragma once
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
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_ops.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_thnn_fused_gru_cell_ops.h>
#include <ATen/ops/_thnn_fused_gru_cell_backward_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl_ops.h>
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
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lerp_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_dropout_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/where_ops.h>
#include <ATen/ops/zero_ops.h>

namespace dml {

template <class... Op>
struct Operators {};

using HotOperators = Operators<
    at::_ops::_adaptive_avg_pool2d,
    at::_ops::_amp_foreach_non_finite_check_and_unscale_,
    at::_ops::_foreach_add_List,
    at::_ops::_foreach_add_Scalar,
    at::_ops::_foreach_add__List,
    at::_ops::_foreach_add__Scalar,
    at::_ops::_foreach_add__ScalarList,
    at::_ops::_foreach_addcdiv__Scalar,
    at::_ops::_foreach_addcdiv__ScalarList,
    at::_ops::_foreach_addcmul__Scalar,
    at::_ops::_foreach_copy_,
    at::_ops::_foreach_div__List,
    at::_ops::_foreach_div__Scalar,
    at::_ops::_foreach_div__ScalarList,
    at::_ops::_foreach_lerp__Scalar,
    at::_ops::_foreach_maximum__List,
    at::_ops::_foreach_mul_Scalar,
    at::_ops::_foreach_mul__List,
    at::_ops::_foreach_mul__Scalar,
    at::_ops::_foreach_mul__ScalarList,
    at::_ops::_foreach_mul__Tensor,
    at::_ops::_foreach_neg,
    at::_ops::_foreach_neg_,
    at::_ops::_foreach_norm_Scalar,
    at::_ops::_foreach_reciprocal_,
    at::_ops::_foreach_sqrt,
    at::_ops::_foreach_sqrt_,
    at::_ops::_foreach_sub_Scalar,
    at::_ops::_foreach_sub__List,
    at::_ops::_foreach_sub__Scalar,
    at::_ops::_foreach_zero_,
    at::_ops::_fused_adam_,
    at::_ops::_fused_adam__tensor_lr,
    at::_ops::_fused_adamw_,
    at::_ops::_fused_adamw__tensor_lr,
    at::_ops::_fused_sgd_,
    at::_ops::_fused_sgd__tensor_lr,
    at::_ops::_local_scalar_dense,
    at::_ops::_log_softmax,
    at::_ops::_log_softmax_backward_data,
    at::_ops::_scaled_dot_product_fused_attention_overrideable,
    at::_ops::_scaled_dot_product_fused_attention_overrideable_backward,
    at::_ops::_softmax,
    at::_ops::_softmax_backward_data,
    at::_ops::_thnn_fused_gru_cell,
    at::_ops::_thnn_fused_gru_cell_backward,
    at::_ops::_thnn_fused_lstm_cell,
    at::_ops::_thnn_fused_lstm_cell_backward_impl,
    at::_ops::add_Tensor,
    at::_ops::add__Tensor,
    at::_ops::addcdiv,
    at::_ops::addcdiv_,
    at::_ops::addcmul,
    at::_ops::addcmul_,
    at::_ops::addmm,
    at::_ops::arange_start_out,
    at::_ops::argmax,
    at::_ops::baddbmm,
    at::_ops::bmm,
    at::_ops::cat,
    at::_ops::clamp_min,
    at::_ops::convolution_backward_overrideable,
    at::_ops::convolution_overrideable,
    at::_ops::div_Tensor,
    at::_ops::div__Tensor,
    at::_ops::embedding_dense_backward,
    at::_ops::eq_Scalar,
    at::_ops::eq_Tensor,
    at::_ops::exp,
    at::_ops::fill__Scalar,
    at::_ops::ge_Scalar,
    at::_ops::ge_Tensor,
    at::_ops::gelu,
    at::_ops::gelu_backward,
    at::_ops::gt_Scalar,
    at::_ops::gt_Tensor,
    at::_ops::index_select,
    at::_ops::le_Scalar,
    at::_ops::le_Tensor,
    at::_ops::lerp_Scalar,
    at::_ops::lerp__Scalar,
    at::_ops::log,
    at::_ops::lt_Scalar,
    at::_ops::lt_Tensor,
    at::_ops::max_pool2d_with_indices,
    at::_ops::max_pool2d_with_indices_backward,
    at::_ops::mean,
    at::_ops::mean_dim,
    at::_ops::mm,
    at::_ops::mse_loss,
    at::_ops::mse_loss_backward,
    at::_ops::mul_Tensor,
    at::_ops::mul__Tensor,
    at::_ops::native_batch_norm,
    at::_ops::native_batch_norm_backward,
    at::_ops::native_dropout,
    at::_ops::native_dropout_backward,
    at::_ops::native_layer_norm,
    at::_ops::native_layer_norm_backward,
    at::_ops::ne_Scalar,
    at::_ops::ne_Tensor,
    at::_ops::neg,
    at::_ops::nll_loss_backward,
    at::_ops::nll_loss_forward,
    at::_ops::pow_Tensor_Scalar,
    at::_ops::reciprocal,
    at::_ops::relu,
    at::_ops::relu_,
    at::_ops::rsqrt,
    at::_ops::rsub_Scalar,
    at::_ops::sigmoid,
    at::_ops::sigmoid_backward,
    at::_ops::silu,
    at::_ops::sqrt,
    at::_ops::sub_Tensor,
    at::_ops::sub__Tensor,
    at::_ops::sum_dim_IntList,
    at::_ops::tanh,
    at::_ops::tanh_backward,
    at::_ops::threshold_backward,
    at::_ops::where_self,
    at::_ops::zero_>;

}  // namespace dml
