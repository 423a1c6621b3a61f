// is_autocast_enabled() without a device means CUDA in TorchScript; here it includes the device, as
// in Python (python/torch_dml/autocast.py). It is an operator of TorchScript, not of the
// dispatcher.
#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "operators/register.h"

namespace dml {
namespace {

constexpr const char* kIsEnabled = "aten::is_autocast_enabled";

void is_autocast_enabled(torch::jit::Stack& stack) {
  stack.emplace_back(at::autocast::is_autocast_enabled(backend.type) || at::autocast::is_autocast_enabled(at::kCUDA));
}

}  // namespace

void register_torchscript() {
  for (const auto& theirs : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(kIsEnabled))) {
    torch::jit::deregisterOperator(theirs->schema());
  }
  torch::jit::registerOperator(torch::jit::Operator(std::string(kIsEnabled) + "() -> bool",
                                                    torch::jit::Operation(is_autocast_enabled),
                                                    c10::AliasAnalysisKind::CONSERVATIVE));
}

}  // namespace dml
