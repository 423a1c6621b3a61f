// Operators of PyTorch's that read a tensor's memory on the host, whatever device the tensor is on:
// there is a kernel for every device, a composite, which was written for the CPU's memory. With an
// address of the GPU's it would end the process. On an adapter whose addresses are the host's, as
// Mesa's software adapter, it only looks right, and reads what the device may not have written yet.
//
// Nothing in PyTorch tells these from the many composites that are made of other operators, and
// that serve any device: neither a dispatch key nor a tag does, and a storage that refuses to tell
// its address (as FakeTensor's) would refuse data_ptr(), DLPack and checks of overlap, too. So they
// are named here, and `python -m tests.host_reads` looks for what is missing, which is to be run
// with each new minor of torch.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_reshape_from_tensor_native.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <utility>
#include <vector>

#include "backend.h"
#include "fallback.h"
#include "register.h"

namespace dml {
namespace {

using c10::DispatchKey;

// These run on the CPU, counted as any that the engine has no kernel for.
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

// So do these, whose results stay there: weights as FBGEMM packs them, a C++ object behind the
// address of a tensor.
const std::vector<const char*> kPacking = {
    "aten::fbgemm_pack_gemm_matrix_fp16",
    "aten::fbgemm_pack_quantized_matrix",
    "aten::fbgemm_pack_quantized_matrix.KN",
};

// TorchScript's own operators, which no dispatcher knows, and of which the last argument is read:
// sizes, or numbers.
constexpr const char* kOfTorchScript[] = {"aten::_tensor_to_list", "onnx::Reshape"};

bool is_ours(const at::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && dml::is_ours(value.toTensor().device());
}

void to_cpu(at::IValue& value) {
  if (is_ours(value)) value = value.toTensor().cpu();
}

// Above autograd, as a composite is, and unlike the fallback of other operators: the gradients of
// copies and of what the composite does on the CPU are the composite's.
template <bool results_stay>
void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (op.schema().is_mutable()) {
    const at::AutoDispatchBelowAutograd plain;  // Sobol's integers and out= have none.
    return fallback(op, stack);
  }
  const std::string name = name_of(op);
  check_same_device(name, op, *stack);
  count_fallback(name);
  c10::Device device(c10::kCPU);
  for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (is_ours(value)) device = value.toTensor().device();
    to_cpu(value);
  }
  op.callBoxed(stack);
  if (results_stay) return;
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (value.isTensor()) value = value.toTensor().to(device);
  }
}

// The sizes may be anywhere, the result is a view.
at::Tensor reshape_from_tensor(const at::Tensor& self, const at::Tensor& shape) {
  return at::native::_reshape_from_tensor(self, shape.cpu());
}

// In the place of the composite, for tensors of every kind.
template <class Kernel>
void replace(const std::vector<const char*>& names, Kernel kernel) {
  for (const DispatchKey key :
       {backend.dense, backend.quantized, backend.sparse, backend.sparse_csr, backend.nested, backend.autograd}) {
    torch::Library& aten = library("aten", key);
    for (const char* name : names) {
      // Some came after the oldest torch, or went before the newest. Those with a formula have the
      // right gradient.
      const auto op = c10::Dispatcher::singleton().findSchema(torch::jit::parseName(name));
      if (!op.has_value()) continue;
      if (key == backend.autograd && op->hasKernelForDispatchKey(DispatchKey::Autograd)) continue;
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
