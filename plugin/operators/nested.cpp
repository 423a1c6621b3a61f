// Nested tensors. PyTorch's functions for them consist of operators on their buffers and work on
// any device, but PyTorch registers them only for its own devices.
#include <ATen/core/Tensor.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/_native_multi_head_attention_native.h>
#include <ATen/ops/_nested_from_padded_native.h>
#include <ATen/ops/_nested_tensor_from_mask_left_aligned_native.h>
#include <ATen/ops/_nested_tensor_from_mask_native.h>
#include <ATen/ops/_nested_tensor_softmax_with_shape_native.h>
#include <ATen/ops/_nested_tensor_storage_offsets_native.h>
#include <ATen/ops/_nested_view_from_buffer_native.h>
#include <ATen/ops/_transform_bias_rescale_qkv.h>
#include <ATen/ops/bmm_native.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/to_padded_tensor_native.h>
#include <ATen/ops/zeros_like.h>

#include "core/backend.h"
#include "core/library.h"
#include "core/redirect.h"
#include "operators/register.h"

namespace dml {
namespace {

// The key of a backend for which PyTorch registers the generic kernels.
constexpr c10::DispatchKey kGeneral = c10::DispatchKey::NestedTensorHPU;

std::tuple<at::Tensor, at::Tensor, at::Tensor> transform_bias_rescale_qkv(const at::Tensor& qkv, const at::Tensor& bias,
                                                                          int64_t heads) {
  return at::_transform_bias_rescale_qkv(at::native::NestedTensor_to_padded_tensor_generic(qkv, 0), bias, heads);
}

// Layer normalization of the rows of a nested tensor's buffer.
void layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t rows, int64_t width,
                double eps, at::Tensor* out, at::Tensor* mean, at::Tensor* rstd) {
  const auto [y, m, r] = at::native_layer_norm(x.reshape({rows, width}), {width}, weight, bias, eps);
  out->copy_(y.view_as(*out));
  if (mean != nullptr && mean->defined()) mean->copy_(m.view_as(*mean));
  if (rstd != nullptr && rstd->defined()) rstd->copy_(r.view_as(*rstd));
}

void layer_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& mean, const at::Tensor& rstd,
                         const at::Tensor& weight, int64_t rows, int64_t width, at::Tensor* grad_x,
                         at::Tensor* grad_weight, at::Tensor* grad_bias) {
  at::Tensor* const wanted[] = {grad_x, grad_weight, grad_bias};
  const auto wants = [&](size_t i) { return wanted[i]->defined(); };
  const auto row = [&](const at::Tensor& t) { return t.reshape({rows, width}); };
  const auto number = [&](const at::Tensor& t) { return t.reshape({rows, 1}); };
  const std::optional<at::Tensor> bias = wants(2) ? std::optional(at::zeros_like(*grad_bias)) : std::nullopt;
  const auto [dx, dw, db] = at::native_layer_norm_backward(row(grad), row(x), {width}, number(mean), number(rstd),
                                                           weight, bias, {wants(0), wants(1), wants(2)});
  const at::Tensor found[] = {dx, dw, db};
  for (size_t i = 0; i < 3; ++i) {
    if (wants(i)) wanted[i]->copy_(found[i].view_as(*wanted[i]));
  }
}

// PyTorch reads sizes, strides and offsets on the host, so they are copied there.
at::Tensor from_padded(const at::Tensor& padded, const at::Tensor& shape_example, bool fuse_transform_0213) {
  return at::native::nested_from_padded_generic(padded, shape_example.cpu(), fuse_transform_0213);
}

at::Tensor view_from_buffer(const at::Tensor& buffer, const at::Tensor& sizes, const at::Tensor& strides,
                            const at::Tensor& offsets) {
  return at::native::_nested_view_from_buffer(buffer, sizes.cpu(), strides.cpu(), offsets.cpu());
}

}  // namespace

void register_nested() {
  torch::Library& nested = library("aten", backend.nested);
  redirect<&run_under<kGeneral>>(nested, "aten", kGeneral);
  nested.impl("aten::_native_multi_head_attention", TORCH_FN(at::native::native_multi_head_attention_cpu));
  nested.impl("aten::_nested_tensor_softmax_with_shape", TORCH_FN(at::native::NestedTensor_softmax_dropout));
  nested.impl("aten::_nested_tensor_storage_offsets", TORCH_FN(at::native::_nested_tensor_storage_offsets));
  nested.impl("aten::_transform_bias_rescale_qkv", TORCH_FN(transform_bias_rescale_qkv));
  nested.impl("aten::bmm", TORCH_FN(at::native::bmm_nested));
  nested.impl("aten::to_padded_tensor", TORCH_FN(at::native::NestedTensor_to_padded_tensor_generic));

  set_stub(at::native::LayerNormKernel, &layer_norm);
  set_stub(at::native::LayerNormBackwardKernel, &layer_norm_backward);

  torch::Library& aten = library("aten", backend.dense);
  aten.impl("aten::_nested_from_padded", TORCH_FN(from_padded));
  aten.impl("aten::_nested_view_from_buffer", TORCH_FN(view_from_buffer));
  aten.impl("aten::_nested_tensor_from_mask", TORCH_FN(at::native::NestedTensor_nested_tensor_from_mask));
  aten.impl("aten::_nested_tensor_from_mask_left_aligned",
            TORCH_FN(at::native::NestedTensor_nested_tensor_from_mask_left_aligned));
}

}  // namespace dml
