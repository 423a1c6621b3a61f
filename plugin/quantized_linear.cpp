// Linear layers of torch.ao.nn.quantized.dynamic: inputs are quantised by their own range, weights
// are integers. PyTorch packs weights for the CPU, and keeps them there; what the device needs of
// them is put there once.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/quantized/PackedParams.h>
#include <ATen/ops/_fused_moving_avg_obs_fq_helper.h>
#include <ATen/ops/_weight_int8pack_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <mutex>
#include <unordered_map>

#include "backend.h"
#include "quantized.h"
#include "register.h"

namespace dml {
namespace {

using at::Tensor;
using Packed = c10::intrusive_ptr<LinearPackedParamsBase>;

// Weights on a device.
struct Weights {
  c10::weak_intrusive_ptr<LinearPackedParamsBase> owner;
  Tensor levels;  // int8, [n, k]; or, of layers whose input is not quantised, float16
  Tensor scales;  // float32, [n]
  Tensor zeros;   // scale times zero point, [n]; undefined where all are 0
  Tensor bias;    // may be undefined
  Tensor bias_of_owner;
};

struct Key {
  const LinearPackedParamsBase* packed;
  c10::DeviceIndex device;
  bool operator==(const Key& other) const { return packed == other.packed && device == other.device; }
};

struct Hash {
  size_t operator()(const Key& key) const {
    return std::hash<const void*>()(key.packed) * 31 + static_cast<size_t>(key.device);
  }
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, Weights, Hash> weights;
};

Cache& cache() {
  static Cache& instance = *new Cache;  // tensors outlive static destructors
  return instance;
}

Weights put_on(const Packed& packed, c10::Device device) {
  const auto [weight, bias] = packed->unpack();
  Weights made{c10::weak_intrusive_ptr<LinearPackedParamsBase>(packed), {}, {}, {}, {}, bias.value_or(Tensor())};
  if (made.bias_of_owner.defined()) made.bias = made.bias_of_owner.to(device, at::kFloat);
  if (!weight.is_quantized()) {
    made.levels = weight.to(at::kHalf).to(device);
    return made;
  }
  made.levels = weight.int_repr().contiguous().to(device);
  Tensor scales, zeros;
  if (weight.qscheme() == at::kPerTensorAffine) {
    scales = at::full({weight.size(0)}, weight.q_scale(), at::kFloat);
    zeros = at::full({weight.size(0)}, static_cast<double>(weight.q_zero_point()), at::kFloat);
  } else {
    scales = weight.q_per_channel_scales().to(at::kFloat);
    zeros = weight.q_per_channel_zero_points().to(at::kFloat);
  }
  made.scales = scales.to(device);
  if (zeros.any().item<bool>()) made.zeros = at::mul(scales, zeros).to(device);
  return made;
}

Weights weights_of(const Packed& packed, c10::Device device) {
  Cache& known = cache();
  const Key key{packed.get(), device.index()};
  {
    const std::lock_guard<std::mutex> lock(known.mutex);
    const auto found = known.weights.find(key);
    if (found != known.weights.end() && !found->second.owner.expired() &&
        found->second.bias_of_owner.is_same(packed->bias().value_or(Tensor()))) {
      return found->second;
    }
  }
  Weights made = put_on(packed, device);
  std::vector<Weights> gone;  // let go of with nothing locked
  const std::lock_guard<std::mutex> lock(known.mutex);
  for (auto it = known.weights.begin(); it != known.weights.end();) {
    if (it->second.owner.expired()) {
      gone.push_back(std::move(it->second));
      it = known.weights.erase(it);
    } else {
      ++it;
    }
  }
  known.weights.insert_or_assign(key, made);
  return made;
}

// The numbers that x is rounded to, by a scale and a zero point that its range is given.
Tensor rounded(const Tensor& x, bool reduce_range) {
  const auto options = x.options();
  const Tensor on = at::ones({1}, options.dtype(at::kLong));
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor least = at::full({1}, infinity, options), largest = at::full({1}, -infinity, options);
  Tensor scale = at::empty({1}, options), zero = at::empty({1}, options.dtype(at::kInt));
  return std::get<0>(at::_fused_moving_avg_obs_fq_helper(x, on, on, least, largest, scale, zero, 1.0, 0,
                                                         reduce_range ? 127 : 255, -1));
}

template <bool relu>
Tensor finished(Tensor y, const Weights& weights, const Tensor& x) {
  if (weights.bias.defined()) y.add_(weights.bias);
  if constexpr (relu) y.relu_();
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = y.size(-1);
  return y.view(sizes);
}

Tensor rows_of(const Tensor& x, const Weights& weights) {
  TORCH_CHECK(x.scalar_type() == at::kFloat, "expected scalar type Float but found ", x.scalar_type());
  TORCH_CHECK(x.dim() >= 2, "The dimension of input tensor should be larger than or equal to 2");
  TORCH_CHECK(x.size(-1) == weights.levels.size(1), "a dynamic linear layer of ", weights.levels.size(1),
              " inputs was given a tensor of ", x.sizes());
  return x.reshape({-1, weights.levels.size(1)}).contiguous();
}

// What is computed the packed weights say, as on the CPU, and not the operator's name.
template <bool relu>
Tensor linear_dynamic(const Tensor& x, const Packed& packed, bool reduce_range) {
  const Weights weights = weights_of(packed, x.device());
  const Tensor rows = rows_of(x, weights);
  if (!weights.scales.defined()) {  // Weights of float16, and inputs as they are.
    return finished<relu>(at::linear(rows, weights.levels.to(at::kFloat)), weights, x);
  }
  if (rows.numel() == 0)
    return finished<relu>(at::zeros({rows.size(0), weights.levels.size(0)}, x.options()), weights, x);
  const Tensor input = rounded(rows, reduce_range);
  Tensor y = at::_weight_int8pack_mm(input, weights.levels, weights.scales);
  if (weights.zeros.defined()) y.addcmul_(input.sum(1, true), weights.zeros, -1);
  return finished<relu>(y, weights, x);
}

// Boxed: whether PyTorch's own kernel takes its tensor by value or not, this one need not do the
// same.
template <Tensor (*run)(const Tensor&, const Packed&, bool)>
void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  const at::AutoDispatchBelowAutograd plain;  // There is no gradient, and PyTorch says so.
  Tensor result = run(arguments[0].toTensor(), arguments[1].toCustomClass<LinearPackedParamsBase>(),
                      count > 2 && arguments[2].toBool());
  torch::jit::drop(*stack, count);
  torch::jit::push(*stack, std::move(result));
}

}  // namespace

void register_quantized_linear() {
  torch::Library& quantized = library("quantized", backend.dense);
  for (const char* name : {"quantized::linear_dynamic", "quantized::linear_dynamic_fp16"}) {
    quantized.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed<linear_dynamic<false>>>());
  }
  for (const char* name : {"quantized::linear_relu_dynamic", "quantized::linear_relu_dynamic_fp16"}) {
    quantized.impl(name, torch::CppFunction::makeFromBoxedFunction<&boxed<linear_dynamic<true>>>());
  }
}

}  // namespace dml
