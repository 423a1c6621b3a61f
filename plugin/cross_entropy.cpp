// Cross-entropy with the indices of classes: the engine's fused losses and gradient.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss_native.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <tuple>
#include <utility>

#include "backend.h"
#include "plain.h"
#include "register.h"

namespace dml {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

struct Options {
  int64_t reduction, ignore_index;
  double label_smoothing;
  bool widen;  // losses of 16-bit logits are float32
};

// Whether the engine takes the call. What it does not take PyTorch composes of other operators, or
// refuses.
bool fits(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, const Options& options) {
  if (in_transform() || !is_plain(logits) || !is_plain(target) || target.device() != logits.device()) return false;
  if (!at::isFloatingType(logits.scalar_type()) || logits.numel() == 0 || logits.dim() == 0) return false;
  if (target.scalar_type() != at::kLong && target.scalar_type() != at::kByte) return false;
  const size_t dim = logits.dim() > 1 ? 1 : 0;
  c10::DimVector rows(logits.sizes());
  rows.erase(rows.begin() + dim);
  if (target.sizes() != c10::IntArrayRef(rows)) return false;
  if (options.reduction < at::Reduction::None || options.reduction > at::Reduction::Sum) return false;
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) return false;
  if (!weight.has_value() || !weight->defined()) return true;
  // Smoothed losses need sums of weights; weights that require a gradient are refused by nll_loss.
  if (options.label_smoothing != 0 || weight->requires_grad()) return false;
  const bool same = weight->scalar_type() == logits.scalar_type();
  return is_plain(*weight) && weight->device() == logits.device() &&
         weight->sizes() == c10::IntArrayRef{logits.size(dim)} &&
         (same || (options.widen && at::isFloatingType(weight->scalar_type()) && weight->scalar_type() != at::kDouble));
}

// Losses, statistics of rows, and for a mean what it divides by, without a gradient of their own.
std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& logits, const Tensor& target, const MaybeTensor& weight,
                                           const Options& options) {
  using Signature = std::tuple<Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const MaybeTensor&, int64_t,
                                                       int64_t, double, bool);
  static const auto cross_entropy =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::cross_entropy", "").typed<Signature>();
  const at::AutoDispatchBelowADInplaceOrView guard;
  return cross_entropy.call(logits, target, weight, options.reduction, options.ignore_index, options.label_smoothing,
                            options.widen);
}

// The logits' gradient, where it is to be derived again: that of the composed loss.
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
                        const Options& options) {
    auto [loss, statistics, total] = dml::forward(logits, target, weight, options);
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
    static const auto cross_entropy_backward =
        c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::cross_entropy_backward", "").typed<Signature>();
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key());
    const auto maybe = [](const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; };
    const variable_list saved = ctx->get_saved_variables();
    const Options options{ctx->saved_data["reduction"].toInt(), ctx->saved_data["ignore_index"].toInt(),
                          ctx->saved_data["label_smoothing"].toDouble(), ctx->saved_data["widen"].toBool()};
    // Arguments that are no logits have no gradients.
    variable_list results(4);
    if (!grads[0].defined()) return results;
    if (c10::GradMode::is_enabled()) {
      results[0] = composed_backward(grads[0], saved[0], saved[1], maybe(saved[2]), options);
    } else {
      const at::AutoDispatchBelowADInplaceOrView guard;
      results[0] =
          cross_entropy_backward.call(grads[0], saved[0], saved[1], maybe(saved[2]), options.reduction,
                                      options.ignore_index, options.label_smoothing, saved[3], maybe(saved[4]));
    }
    return results;
  }
};

Tensor fused(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, const Options& options) {
  const MaybeTensor given = weight.has_value() && weight->defined() ? weight : std::nullopt;
  if (logits.requires_grad() && c10::GradMode::is_enabled()) {
    return CrossEntropy::apply(logits, target, given, options);
  }
  return std::get<0>(forward(logits, target, given, options));
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, int64_t reduction,
                     c10::SymInt ignore_index, double label_smoothing) {
  const std::optional<int64_t> ignored = ignore_index.maybe_as_int();
  const Options options{reduction, ignored.value_or(0), label_smoothing, /*widen=*/false};
  if (ignored.has_value() && fits(logits, target, weight, options)) return fused(logits, target, weight, options);
  return at::native::cross_entropy_loss_symint(logits, target, weight, reduction, std::move(ignore_index),
                                               label_smoothing);
}

// Under autocast losses are float32, as those of nll_loss. The logits are read as they are.
Tensor cross_entropy_autocast(const Tensor& logits, const Tensor& target, const MaybeTensor& weight, int64_t reduction,
                              c10::SymInt ignore_index, double label_smoothing) {
  const std::optional<int64_t> ignored = ignore_index.maybe_as_int();
  const bool half = logits.scalar_type() == at::kHalf || logits.scalar_type() == at::kBFloat16;
  const Options options{reduction, ignored.value_or(0), label_smoothing, /*widen=*/half};
  if (ignored.has_value() && fits(logits, target, weight, options)) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key());
    return fused(logits, target, weight, options);
  }
  return at::native::cross_entropy_loss_symint(logits, target, weight, reduction, std::move(ignore_index),
                                               label_smoothing);
}

}  // namespace

void register_cross_entropy() {
  // The composite is registered for every key. One kernel serves both: it takes gradients where
  // they are wanted.
  for (const c10::DispatchKey key : {backend.dense, backend.autograd}) {
    library("aten", key).impl("aten::cross_entropy_loss", TORCH_FN(cross_entropy));
  }
  library("aten", autocast_key()).impl("aten::cross_entropy_loss", TORCH_FN(cross_entropy_autocast));
}

}  // namespace dml
