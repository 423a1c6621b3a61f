// Cross-entropy with class indices as targets: the engine's fused loss and gradient.
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss_native.h>

#include <optional>
#include <tuple>
#include <utility>

#include "core/backend.h"
#include "core/library.h"
#include "operators/gradient.h"
#include "operators/register.h"

namespace dml {
namespace {

using at::Tensor;

struct Options {
  int64_t reduction, ignore_index;
  double label_smoothing;
  bool widen;  // losses of 16-bit logits are float32
};

// Whether these are plain tensors, the targets are class indices and not probabilities, and the
// weight needs no gradient.
bool is_plain_call(const Tensor& logits, const Tensor& target, const MaybeTensor& weight) {
  const auto plain = [&](const Tensor& t) { return is_plain(t) && t.device() == logits.device() && !t.is_complex(); };
  return !in_transform() && plain(logits) && plain(target) && !target.is_floating_point() &&
         (!weight.has_value() || (plain(*weight) && !weight->requires_grad()));
}

// The loss, statistics of rows, and for a mean what it divides by.
using Found = std::tuple<Tensor, Tensor, Tensor>;

// Computes them without recording a gradient.
Found forward(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, const Options& options) {
  using Signature = Found(const Tensor&, const Tensor&, const MaybeTensor&, int64_t, int64_t, double, bool);
  static const auto engine = engine_operator<Signature>("torch_dml::cross_entropy");
  const at::AutoDispatchBelowADInplaceOrView guard;
  return engine.call(logits, target, weight, options.reduction, options.ignore_index, options.label_smoothing,
                     options.widen);
}

// The gradient by the logits for a second derivative: of the composed loss.
Tensor composed_backward(const Tensor& grad, const Tensor& logits, const Tensor& target, const MaybeTensor& weight,
                         const Options& options) {
  if (!logits.requires_grad()) return {};
  const Tensor input = logits.view_as(logits);
  const auto widened = [&](const Tensor& t) { return options.widen ? t.to(at::kFloat) : t; };
  MaybeTensor weights = weight;
  if (weights.has_value()) weights = widened(*weights);
  const Tensor loss = at::native::cross_entropy_loss_symint(widened(input), target, weights, options.reduction,
                                                            options.ignore_index, options.label_smoothing);
  return torch::autograd::grad({loss}, {input}, {grad}, /*retain_graph=*/true, /*create_graph=*/true)[0];
}

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static Tensor forward(AutogradContext* ctx, const Tensor& logits, const Tensor& target, const MaybeTensor& weight,
                        const Options& options, const Found& found) {
    const auto& [loss, statistics, total] = found;
    ctx->save_for_backward({logits, target, weight.value_or(Tensor()), statistics, total});
    ctx->saved_data["reduction"] = options.reduction;
    ctx->saved_data["ignore_index"] = options.ignore_index;
    ctx->saved_data["label_smoothing"] = options.label_smoothing;
    ctx->saved_data["widen"] = options.widen;
    return loss;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, const MaybeTensor&, int64_t, int64_t, double,
                             const Tensor&, const MaybeTensor&);
    static const auto engine = engine_operator<Signature>("torch_dml::cross_entropy_backward");
    const variable_list saved = ctx->get_saved_variables();
    const Options options{ctx->saved_data["reduction"].toInt(), ctx->saved_data["ignore_index"].toInt(),
                          ctx->saved_data["label_smoothing"].toDouble(), ctx->saved_data["widen"].toBool()};
    // Only the logits have a gradient.
    variable_list results(5);
    if (!grads[0].defined()) return results;
    const auto fused = [&] {
      return engine.call(grads[0], saved[0], saved[1], maybe(saved[2]), options.reduction, options.ignore_index,
                         options.label_smoothing, saved[3], maybe(saved[4]));
    };
    const auto composed = [&] { return composed_backward(grads[0], saved[0], saved[1], maybe(saved[2]), options); };
    results[0] = gradients(fused, composed);
    return results;
  }
};

// The loss, or nothing if the call is left to PyTorch's composite, which also raises its errors.
std::optional<Tensor> fused(const Tensor& logits, const Tensor& target, const MaybeTensor& weight,
                            const Options& options) {
  const MaybeTensor given = weight.has_value() && weight->defined() ? weight : std::nullopt;
  if (!is_plain_call(logits, target, given)) return std::nullopt;
  const Found found = forward(logits, target, given, options);
  const Tensor& loss = std::get<0>(found);
  if (!loss.defined()) return std::nullopt;
  if (!logits.requires_grad() || !c10::GradMode::is_enabled()) return loss;
  return CrossEntropy::apply(logits, target, given, options, found);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, int64_t reduction,
                     c10::SymInt ignore_index, double label_smoothing) {
  if (const std::optional<int64_t> ignored = ignore_index.maybe_as_int()) {
    const auto loss = fused(logits, target, weight, {reduction, *ignored, label_smoothing, /*widen=*/false});
    if (loss.has_value()) return *loss;
  }
  return at::native::cross_entropy_loss_symint(logits, target, weight, reduction, std::move(ignore_index),
                                               label_smoothing);
}

// Under autocast losses are float32, as with nll_loss. The logits are read without conversion.
Tensor cross_entropy_autocast(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, int64_t reduction,
                              c10::SymInt ignore_index, double label_smoothing) {
  if (const std::optional<int64_t> ignored = ignore_index.maybe_as_int()) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key());
    const bool half = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
    const auto loss = fused(logits, target, weight, {reduction, *ignored, label_smoothing, half});
    if (loss.has_value()) return *loss;
  }
  return at::native::cross_entropy_loss_symint(logits, target, weight, reduction, std::move(ignore_index),
                                               label_smoothing);
}

}  // namespace

void register_cross_entropy() {
  // PyTorch registers its composite for all keys. The kernel here serves both the dense and the
  // autograd key: it records gradients where they are required.
  for (const c10::DispatchKey key : {backend.dense, backend.autograd}) {
    library("aten", key).impl("aten::cross_entropy_loss", TORCH_FN(cross_entropy));
  }
  library("aten", autocast_key()).impl("aten::cross_entropy_loss", TORCH_FN(cross_entropy_autocast));
}

}  // namespace dml
