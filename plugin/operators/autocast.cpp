// torch.autocast("dml"): PyTorch's lists of the operators and the precisions that they run in.
#include <ATen/autocast_mode.h>

#include <string>
#include <utility>

#include "core/library.h"
#include "operators/register.h"

namespace dml {
namespace {

// Operators of libraries that register autocast kernels for CUDA and the CPU only.
constexpr const char* kFloat32[] = {
    "torchvision::deform_conv2d", "torchvision::nms",       "torchvision::ps_roi_align",
    "torchvision::ps_roi_pool",   "torchvision::roi_align", "torchvision::roi_pool",
};

// Runs the operator in float32; float results get the dtype of the first argument, a tensor.
void run_in_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
  const size_t first = stack->size() - op.schema().arguments().size();
  const c10::ScalarType dtype = (*stack)[first].toTensor().scalar_type();
  for (size_t i = first; i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (value.isTensor()) value = at::autocast::cached_cast(at::kFloat, value.toTensor(), backend.type);
  }
  op.callBoxed(stack);
  for (size_t i = first; i < stack->size(); ++i) {
    at::IValue& value = (*stack)[i];
    if (value.isTensor() && value.toTensor().is_floating_point()) value = value.toTensor().to(dtype);
  }
}

// Registers the kernel, unless the plugin has its own for the operator.
struct Others {
  torch::Library& autocast;
  const Names& taken;

  template <class Name, class Function>
  void impl(Name name, Function&& function) {
    if (taken.count(std::string(name)) == 0) autocast.impl(name, std::forward<Function>(function));
  }
};

}  // namespace

void register_library_autocast(const char* name_space) {
  torch::Library& m = library(name_space, c10::DispatchKey::AutocastPrivateUse1);
  for (const std::string name : kFloat32) {
    if (name.rfind(std::string(name_space) + "::", 0) == 0) {
      m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&run_in_float32>());
    }
  }
}

void register_autocast(const Names& taken) {
  using namespace at;  // the lists name types without it
  // Without this, operators that are on no list would fail under autocast.
  library("_", c10::DispatchKey::AutocastPrivateUse1).fallback(torch::CppFunction::makeFallthrough());

  Others m{library("aten", c10::DispatchKey::AutocastPrivateUse1), taken};
#define DML_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define DML_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define DML_FP32_OPTION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define DML_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(DML_LOWER)
  AT_FORALL_FP32(DML_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(DML_FP32_OPTION)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(DML_PROMOTE)
  // cat and stack run in their widest dtype too, but are in no list: their kernels promote. CUDA's
  // kernel of equal promotes as well; the device's refuses tensors of two dtypes, as the CPU's
  // does.
  m.impl("aten::equal", [](const at::Tensor& self, const at::Tensor& other) -> bool {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastPrivateUse1);
    const at::ScalarType dtype = at::promote_types(self.scalar_type(), other.scalar_type());
    return at::equal(self.to(dtype), other.to(dtype));
  });

  m.impl("aten::binary_cross_entropy",
         [](const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, int64_t) -> at::Tensor {
           TORCH_CHECK(false,
                       "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use "
                       "binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss, which are safe.");
         });
}

}  // namespace dml
