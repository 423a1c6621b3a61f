// The device in CUDA's place: to PyTorch its tensors are on cuda:0, and no code of CUDA's runs.
// Works with wheels that contain CUDA's kernels and with wheels that do not, where no CUDA device
// is usable.
#include <ATen/core/Tensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/convolution_backward_overrideable.h>
#include <ATen/ops/convolution_overrideable.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/allocator.h"
#include "core/device.h"
#include "core/hooks.h"
#include "core/library.h"
#include "core/redirect.h"
#include "core/register.h"

namespace dml {
namespace {

struct Hooks final : DeviceHooks<at::CUDAHooksInterface> {
  bool hasCUDA() const override { return device_count() > 0; }
  bool hasCUDART() const override { return true; }
  c10::DeviceIndex current_device() const override { return dml::current_device(); }
  int getNumGPUs() const override { return device_count(); }
  void deviceSynchronize(c10::DeviceIndex index) const override { check(dml_synchronize(index)); }
  at::Allocator* getCUDADeviceAllocator() const override { return allocator(); }

  // None of CUDA's libraries is there; queries of their versions get a new one.
  long versionCuDNN() const override { return 0; }
  long versionRuntimeCuDNN() const override { return 0; }
  long versionCuDNNFrontend() const override { return 0; }
  long versionCUDART() const override { return 0; }
  std::string showConfig() const override { return "CUDA is torch-dml\n"; }
  double batchnormMinEpsilonCuDNN() const override { return 0; }
  int64_t cuFFTGetPlanCacheMaxSize(c10::DeviceIndex) const override { return 0; }
  void cuFFTSetPlanCacheMaxSize(c10::DeviceIndex, int64_t) const override {}
  int64_t cuFFTGetPlanCacheSize(c10::DeviceIndex) const override { return 0; }
  void cuFFTClearPlanCache(c10::DeviceIndex) const override {}
};

// Registers for CUDA's key what operators do for a backend without a kernel: they run a composite
// kernel or the CPU's, or raise.
template <c10::DispatchKey Own, c10::DispatchKey Other>
void replace_all(const char* name_space) {
  redirect<&run_under<Other>>(library(name_space, Own), name_space, Own);
}

// Whether one of CUDA's libraries is to be used.
void no(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  stack->emplace_back(false);
}

// For other backends PyTorch's copy_ calls _copy_from; for CUDA it calls CUDA's kernel.
at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (self.is_same(source)) return self;
  TORCH_CHECK(self.layout() == c10::kStrided && source.layout() == c10::kStrided,
              "torch-dml copies strided tensors only, not from ", source.layout(), " to ", self.layout());
  const at::Tensor from = source._is_zerotensor() ? at::zeros_like(self) : source.expand(self.sizes());
  at::_ops::_copy_from::call(from, self, non_blocking);
  return self;
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                       bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  return at::convolution_overrideable_symint(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                                             std::move(groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight, at::OptionalSymIntArrayRef,
    c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
    c10::SymIntArrayRef output_padding, c10::SymInt groups, std::array<bool, 3> mask) {
  return at::convolution_backward_overrideable_symint(grad, input, weight, stride, padding, dilation, transposed,
                                                      output_padding, std::move(groups), mask);
}

}  // namespace

void register_cuda_hooks() {
  // PyTorch looks up CUDA's hooks once, while it is imported, before other hooks can be registered.
  // Their only state is their table of virtual functions, so that table is replaced.
  static_assert(sizeof(at::CUDAHooksInterface) == sizeof(void*) && sizeof(Hooks) == sizeof(void*));
  static const Hooks& ours = *new Hooks;
  void* theirs = const_cast<void*>(static_cast<const void*>(&at::detail::getCUDAHooks()));
  std::memcpy(theirs, static_cast<const void*>(&ours), sizeof(void*));
}

void replace_cuda(const char* name_space) {
  replace_all<c10::DispatchKey::CUDA, c10::DispatchKey::PrivateUse1>(name_space);
  replace_all<c10::DispatchKey::SparseCUDA, c10::DispatchKey::SparsePrivateUse1>(name_space);
  replace_all<c10::DispatchKey::SparseCsrCUDA, c10::DispatchKey::SparseCsrPrivateUse1>(name_space);
  replace_all<c10::DispatchKey::QuantizedCUDA, c10::DispatchKey::QuantizedPrivateUse1>(name_space);
  replace_all<c10::DispatchKey::NestedTensorCUDA, c10::DispatchKey::NestedTensorPrivateUse1>(name_space);
}

void register_over_cuda() {
  torch::Library& aten = library("aten", c10::DispatchKey::CUDA);
  aten.impl("aten::copy_", TORCH_FN(copy));
  for (const char* name : {"aten::_use_cudnn_ctc_loss", "aten::_use_cudnn_ctc_loss.Tensor",
                           "aten::_use_miopen_ctc_loss", "aten::_use_miopen_ctc_loss.Tensor"}) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&no>());
  }
  // For CUDA, PyTorch chooses among CUDA's libraries; for other backends it chooses this by itself.
  aten.impl("aten::convolution", TORCH_FN(convolution));
  aten.impl("aten::convolution_backward", TORCH_FN(convolution_backward));
}

}  // namespace dml
