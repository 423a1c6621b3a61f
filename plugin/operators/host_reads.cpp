// Composite operators of PyTorch that read a tensor's memory on the host, whatever device the
// tensor is on: written for the CPU, but registered for every device. With a GPU address they would
// end the process. On adapters whose addresses are the host's, such as Mesa's software adapter,
// they seem to work, but read memory that the device may not have written yet.
//
// Neither a dispatch key nor a tag distinguishes these from the many composites that consist of
// other operators and work on any device. A storage without an accessible address, like
// FakeTensor's, would also break data_ptr(), DLPack and overlap checks. So they are listed here by
// name. `python -m tests.host_reads` finds missing ones; run it for each new minor of torch.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_from_tensor_native.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "core/fallback.h"
#include "core/library.h"
#include "operators/register.h"

namespace dml {
namespace {

using c10::DispatchKey;

// These run on the CPU and are counted, like all operators without a kernel.
const std::vector<const char*> kOnCpu = {
    "aten::_grid_sampler_2d_cpu_fallback",
    "aten::_grid_sampler_2d_cpu_fallback_backward",
    "aten::_rowwise_prune",
    "aten::_saturate_weight_to_fp16",
    "aten::_sobol_engine_draw",
    "aten::_sobol_engine_ff_",
    "aten::_sobol_engine_initialize_state_",
    "aten::_sobol_engine_scramble_",
    "aten::choose_qparams_optimized",
    "aten::fbgemm_linear_fp16_weight",
    "aten::fbgemm_linear_fp16_weight.out",
    "aten::fbgemm_linear_fp16_weight_fp32_activation",
    "aten::fbgemm_linear_fp16_weight_fp32_activation.out",
    "aten::fbgemm_linear_int8_weight",
    "aten::fbgemm_linear_int8_weight_fp32_activation",
    "aten::fbgemm_linear_quantize_weight",
};

// These run on the CPU too, and their results stay there: packed weights of FBGEMM, tensors that
// contain the address of a C++ object.
const std::vector<const char*> kPacking = {
    "aten::fbgemm_pack_gemm_matrix_fp16",
    "aten::fbgemm_pack_quantized_matrix",
    "aten::fbgemm_pack_quantized_matrix.KN",
};

// Operators of TorchScript that are not in the dispatcher. They read their last argument on the
// host.
constexpr const char* kOfTorchScript[] = {"aten::_tensor_to_list", "onnx::Reshape"};

bool holds_ours(const at::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && is_ours(value.toTensor().device());
}

void to_cpu(at::IValue& value) {
  if (holds_ours(value)) value = value.toTensor().cpu();
}

// The reason for which these run on the CPU.
constexpr const char* kReadsOnHost = "PyTorch's code for it reads tensors on the host";

// Runs above autograd, as a composite does and the fallback does not: the gradient follows from the
// copies and from the composite's operators on the CPU.
template <bool results_stay>
void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  // AutogradNestedTensor is one key for all devices: other devices' tensors go to the composite.
  if (std::none_of(arguments.begin(), arguments.end(), holds_ours)) {
    return op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::NestedTensorCPU), stack);
  }
  if (op.schema().is_mutable()) {
    const at::AutoDispatchBelowAutograd plain;  // in-place and out= overloads here have no gradients
    return fallback(op, stack, kReadsOnHost);
  }
  const std::string name = name_of(op);
  check_same_device(name, op, *stack);
  count_fallback(name, kReadsOnHost);
  c10::Device device(c10::kCPU);
  for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (holds_ours(value)) device = value.toTensor().device();
    to_cpu(value);
  }
  op.callBoxed(stack);
  if (results_stay) return;
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (value.isTensor()) value = value.toTensor().to(device);
  }
}

// The sizes may be on any device; the result is a view.
at::Tensor reshape_from_tensor(const at::Tensor& self, const at::Tensor& shape) {
  return at::native::_reshape_from_tensor(self, shape.cpu());
}

// Registers a kernel in place of the composite, for tensors of every kind.
template <class Kernel>
void replace(const std::vector<const char*>& names, Kernel kernel) {
  const std::set<DispatchKey> autograd = {backend.autograd, DispatchKey::AutogradNestedTensor};
  std::set<DispatchKey> keys = {backend.dense, backend.quantized, backend.sparse, backend.sparse_csr, backend.nested};
  keys.insert(autograd.begin(), autograd.end());
  for (const DispatchKey key : keys) {
    torch::Library& aten = library("aten", key);
    for (const char* name : names) {
      // Not every supported torch has every operator. Operators with a derivative formula keep
      // their autograd kernel.
      const auto op = c10::Dispatcher::singleton().findSchema(torch::jit::parseName(name));
      if (!op.has_value()) continue;
      if (autograd.count(key) != 0 && op->hasKernelForDispatchKey(DispatchKey::Autograd)) continue;
      aten.impl(name, kernel());
    }
  }
}

void replace_of_torchscript(const char* name) {
  namespace jit = torch::jit;
  const auto operators = jit::getAllOperatorsFor(c10::Symbol::fromQualString(name));
  for (const auto& op : operators) {
    const c10::FunctionSchema& schema = op->schema();
    jit::deregisterOperator(schema);
    auto run = [original = op->getOperation()](jit::Stack& stack) mutable {
      to_cpu(stack.back());
      original(stack);
    };
    jit::registerOperator(jit::Operator(schema.name(), schema.overload_name(), schema.arguments(), schema.returns(),
                                        std::move(run), op->aliasAnalysisKind()));
  }
}

}  // namespace

void register_host_reads() {
  replace(kOnCpu, [] { return torch::CppFunction::makeFromBoxedFunction<&on_cpu<false>>(); });
  replace(kPacking, [] { return torch::CppFunction::makeFromBoxedFunction<&on_cpu<true>>(); });
  replace({"aten::_reshape_from_tensor"}, [] { return torch::CppFunction(TORCH_FN(reshape_from_tensor)); });
  for (const char* name : kOfTorchScript) replace_of_torchscript(name);
}

}  // namespace dml
