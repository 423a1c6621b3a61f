// Quantized tensors: integers with a scale and a zero point, or with one of each per channel.
// PyTorch's functions that handle scales and zero points work on any device, but PyTorch registers
// them only for its own devices. The engine converts between integers and numbers.
#include "quantized/tensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/quantized/AffineQuantizer.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/_empty_affine_quantized.h>
#include <ATen/ops/_empty_per_channel_affine_quantized.h>
#include <ATen/ops/empty.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

#include <set>

#include "core/backend.h"
#include "core/copy.h"
#include "core/engine_operator.h"
#include "core/fallback.h"
#include "core/library.h"
#include "core/redirect.h"
#include "quantized/register.h"

namespace dml {
namespace {

using at::Tensor;
using c10::DispatchKey;

// The CPU's kernels of these access no memory of tensors.
const Names kOfAnyDevice = {
    "aten::_empty_affine_quantized",
    "aten::_empty_per_channel_affine_quantized",
    "aten::_reshape_alias",
    "aten::as_strided",
    "aten::clone",
    "aten::empty.memory_format",
    "aten::empty_like",
    "aten::empty_quantized",
    "aten::empty_strided",
    "aten::q_per_channel_axis",
    "aten::q_per_channel_scales",
    "aten::q_per_channel_zero_points",
    "aten::q_scale",
    "aten::q_zero_point",
    "aten::qscheme",
    "aten::squeeze",
    "aten::squeeze.dim",
    "aten::squeeze.dims",
    "aten::unfold",
    "aten::unsqueeze",
    "aten::view",
};

// These have kernels here.
const Names kOwn = {"aten::dequantize.self", "aten::int_repr", "aten::resize_",
                    "aten::set_.source_Storage_storage_offset"};

// Operators that quantize plain tensors; their CPU kernels access no memory either.
constexpr const char* kQuantizing[] = {
    "aten::quantize_per_channel",
    "aten::quantize_per_tensor",
    "aten::quantize_per_tensor.tensor_qparams",
    "aten::quantize_per_tensor.tensors",
    "aten::quantize_per_tensor_dynamic",
};

// Runs the whole operator on the CPU, before PyTorch decomposes it as for plain tensors.
void left_to_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.hasComputedKernelForDispatchKey(DispatchKey::QuantizedCPU), "Could not run '",
                              op.operator_name(), "' with quantised tensors: PyTorch has no kernel for them.");
  fallback(op, stack, kNotWritten, DispatchKey::QuantizedCPU);
}

void run_as_plain(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(backend.dense), stack);
}

using OneScale = Tensor&(const Tensor&, double, int64_t, Tensor&);
using Scales = Tensor&(const Tensor&, const Tensor&, const Tensor&, int64_t, Tensor&);

void quantize(const Tensor& x, Tensor& q, double scale, int64_t zero) {
  static const auto run = engine_operator<OneScale>("torch_dml::quantize", "out");
  Tensor levels = integers(q);
  run.call(x, scale, zero, levels);
}

// Quantizers may keep scales and zero points of channels on any device.
void quantize_channels(const Tensor& x, Tensor& q, const Tensor& scales, const Tensor& zeros, int64_t axis) {
  static const auto run = engine_operator<Scales>("torch_dml::quantize", "channels_out");
  Tensor levels = integers(q);
  run.call(x, scales.to(x.device()), zeros.to(x.device()), axis, levels);
}

void dequantize(const Tensor& q, Tensor& x, double scale, int64_t zero) {
  static const auto run = engine_operator<OneScale>("torch_dml::dequantize", "out");
  run.call(integers(q), scale, zero, x);
}

void dequantize_channels(const Tensor& q, Tensor& x, const Tensor& scales, const Tensor& zeros, int64_t axis) {
  static const auto run = engine_operator<Scales>("torch_dml::dequantize", "channels_out");
  run.call(integers(q), scales.to(q.device()), zeros.to(q.device()), axis, x);
}

void refuse_sub_byte(const Tensor& from, Tensor& to, float, float) { integers(from.is_quantized() ? from : to); }

Tensor numbers(const Tensor& q) {
  Tensor x = at::empty(q.sizes(), q.options().dtype(at::kFloat).memory_format(q.suggest_memory_format()));
  switch (q.qscheme()) {
    case at::kPerTensorAffine: dequantize(q, x, q.q_scale(), q.q_zero_point()); return x;
    case at::kPerChannelAffine:
    case at::kPerChannelAffineFloatQParams:
      dequantize_channels(q, x, q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.q_per_channel_axis());
      return x;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "dequantize: tensors of ", toString(q.qscheme()), " are not supported on dml");
  }
}

Tensor int_repr(const Tensor& q) { return integers(q).clone(q.suggest_memory_format()); }

Tensor of_integers(const Tensor& levels, double scale, int64_t zero) {
  const Tensor q = at::_empty_affine_quantized(levels.sizes(), levels.options().dtype(toQIntType(levels.scalar_type())),
                                               scale, zero, levels.suggest_memory_format());
  integers(q).copy_(levels);
  return q;
}

Tensor of_integers_a_channel(const Tensor& levels, const Tensor& scales, const Tensor& zeros, int64_t axis) {
  const Tensor q = at::_empty_per_channel_affine_quantized(levels.sizes(), scales, zeros, axis,
                                                           levels.options().dtype(toQIntType(levels.scalar_type())),
                                                           levels.suggest_memory_format());
  integers(q).copy_(levels);
  return q;
}

void quantize_as(const Tensor& x, const Tensor& q) {
  Tensor to = q;
  if (q.qscheme() == at::kPerTensorAffine) {
    quantize(x, to, q.q_scale(), q.q_zero_point());
  } else {
    quantize_channels(x, to, q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.q_per_channel_axis());
  }
}

// PyTorch's copy_ calls _copy_from before it looks for quantized tensors and, with CUDA, CUDA's
// kernel.
Tensor& copy(Tensor& self, const Tensor& source, bool non_blocking) {
  if (self.is_same(source)) return self;
  // PyTorch cannot expand a tensor with a scale per channel.
  const Tensor from = source.sizes() == self.sizes() ? source : source.expand(self.sizes());
  at::_ops::_copy_from::call(from, self, non_blocking);
  return self;
}

Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  TORCH_CHECK(dst.is_quantized(),
              "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a "
              "float Tensor from a quantized Tensor");
  if (!self.is_quantized()) {
    if (is_ours(dst.device())) {
      quantize_as(self.to(dst.device()), dst);
    } else {
      dst.copy_(self.cpu());
    }
    return dst;
  }
  TORCH_CHECK(self.qscheme() == dst.qscheme(), "Quantized Copy only works with same qscheme");
  TORCH_CHECK(self.scalar_type() == dst.scalar_type(), "copy: expected ", dst.scalar_type(), " but found ",
              self.scalar_type());
  integers(dst);  // refuses dtypes of less than a byte
  at::set_quantizer_(dst, at::get_qtensorimpl(self)->quantizer());
  return at::_ops::_copy_from::redispatch(c10::DispatchKeySet(backend.dense), self, dst, non_blocking);
}

// The CPU fallback uses this to write the results of in-place operators.
Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  Tensor out = dst;
  return out.resize_(self.sizes()).copy_(self);
}

}  // namespace

Tensor integers(const Tensor& q) {
  const c10::ScalarType type = q.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(type == at::kQInt8 || type == at::kQUInt8 || type == at::kQInt32, "tensors of ", type,
                              " are not supported on dml");
  return view_of_memory(q, c10::scalarTypeToTypeMeta(at::toUnderlying(type)), q.sizes(), q.strides(),
                        q.storage_offset());
}

void register_quantized() {
  torch::Library& quantized = library("aten", backend.quantized);
  // Also for PrivateUse1's key, as in core/fallback.cpp.
  for (const DispatchKey key : std::set{backend.quantized, DispatchKey::QuantizedPrivateUse1}) {
    library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&left_to_the_cpu>());
  }
  Names native = kOwn;
  native.insert(kOfAnyDevice.begin(), kOfAnyDevice.end());
  redirect<&left_to_the_cpu>(quantized, "aten", DispatchKey::QuantizedCPU, native);
  for (const std::string& name : kOfAnyDevice) {
    quantized.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_under<DispatchKey::QuantizedCPU>>());
  }
  // The CPU's set_ would accept a storage of any device.
  for (const char* name : {"aten::resize_", "aten::set_.source_Storage_storage_offset"}) {
    quantized.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_as_plain>());
  }
  quantized.impl("aten::copy_", TORCH_FN(copy));
  quantized.impl("aten::_copy_from", TORCH_FN(copy_from));
  quantized.impl("aten::_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  quantized.impl("aten::dequantize.self", TORCH_FN(numbers));
  quantized.impl("aten::int_repr", TORCH_FN(int_repr));

  torch::Library& aten = library("aten", backend.dense);
  for (const char* name : kQuantizing) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_under<DispatchKey::CPU>>());
  }
  aten.impl("aten::_make_per_tensor_quantized_tensor", TORCH_FN(of_integers));
  aten.impl("aten::_make_per_channel_quantized_tensor", TORCH_FN(of_integers_a_channel));

  set_stub(at::native::quantize_tensor_per_tensor_affine_stub, &quantize);
  set_stub(at::native::quantize_tensor_per_channel_affine_stub, &quantize_channels);
  set_stub(at::native::quantize_tensor_per_channel_float_qparams_stub, &quantize_channels);
  set_stub(at::native::quantize_tensor_per_tensor_affine_sub_byte_stub, &refuse_sub_byte);
  set_stub(at::native::dequantize_tensor_per_tensor_affine_sub_byte_stub, &refuse_sub_byte);
  set_stub(at::native::dequantize_tensor_per_tensor_affine_stub, &dequantize);
  set_stub(at::native::dequantize_tensor_per_channel_affine_stub, &dequantize_channels);
  set_stub(at::native::dequantize_tensor_per_channel_float_qparams_stub, &dequantize_channels);
}

}  // namespace dml
