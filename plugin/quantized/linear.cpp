// Linear layers of torch.ao.nn.quantized.dynamic: inputs are quantized by their own range, weights
// are integers. PyTorch packs the weights for the CPU and keeps them there; a copy for the device
// is made at the first use and cached.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/quantized/PackedParams.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <mutex>
#include <unordered_map>

#include "core/backend.h"
#include "core/engine_operator.h"
#include "core/library.h"
#include "quantized/register.h"
#include "quantized/tensors.h"

namespace dml {
namespace {

using at::Tensor;
using Packed = c10::intrusive_ptr<LinearPackedParamsBase>;

// The cached weights of a layer on a device.
struct Weights {
  c10::weak_intrusive_ptr<LinearPackedParamsBase> owner;
  Tensor levels;  // int8 [n, k]; float16 of layers that do not quantize their input
  Tensor scales;  // float32 [n]
  Tensor zeros;   // scale times zero point [n]; undefined if all are 0
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
  static Cache& instance = *new Cache;  // never destroyed: tensors outlive static destructors
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
  std::vector<Weights> gone;  // destroyed after the lock is released
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

// As on the CPU, the packed weights decide what is computed, not the operator's name.
template <bool relu>
Tensor linear_dynamic(const Tensor& x, const Packed& packed, bool reduce_range) {
  using Signature =
      Tensor(const Tensor&, const Tensor&, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, bool, bool);
  static const auto engine = engine_operator<Signature>("torch_dml::linear_dynamic");
  const Weights weights = weights_of(packed, x.device());
  return engine.call(x, weights.levels, maybe(weights.scales), maybe(weights.zeros), maybe(weights.bias), relu,
                     reduce_range);
}

// Boxed, so that it does not matter whether PyTorch's own kernel takes its tensor by value.
template <Tensor (*run)(const Tensor&, const Packed&, bool)>
void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  const at::AutoDispatchBelowAutograd plain;  // there is no gradient, and PyTorch raises if one is required
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
