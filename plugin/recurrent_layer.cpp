// The gradients of a recurrent layer: the engine's, or, where they are to be derived again, those
// of the composed layer.
#include "recurrent_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>
#include <utility>

#include "plain.h"

namespace dml {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

const char* name_of(CellKind kind) {
  constexpr const char* names[] = {"lstm", "gru", "tanh", "relu"};
  return names[static_cast<size_t>(kind)];
}

MaybeTensor maybe(const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; }

// The states and what the gradient needs, without a gradient of its own.
std::pair<RecurrentStates, Tensor> forward(const RecurrentLayer& layer, CellKind kind, const RowOrder& order,
                                           bool keep) {
  using Signature = std::tuple<Tensor, Tensor, Tensor, Tensor>(const Tensor&, const Tensor&, const MaybeTensor&,
                                                               const Tensor&, const MaybeTensor&, c10::string_view,
                                                               c10::IntArrayRef, bool, bool, bool);
  static const auto recurrence =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::recurrence", "").typed<Signature>();
  const at::AutoDispatchBelowADInplaceOrView guard;
  const Tensor gates = at::linear(layer.x, layer.w_ih, layer.b_ih);
  auto [output, h, c, kept] = recurrence.call(gates, layer.h, layer.c, layer.w_hh, layer.b_hh, name_of(kind),
                                              order.batch_sizes, order.batch_first, order.reverse, keep);
  return {{std::move(output), std::move(h), maybe(c)}, std::move(kept)};
}

// The same by operators that have gradients of any order, a step at a time.
RecurrentStates composed(const RecurrentLayer& layer, CellKind kind, const RowOrder& order) {
  const Tensor gates = at::linear(layer.x, layer.w_ih, layer.b_ih);
  const int64_t batch = layer.h.size(0), dim = order.batch_first ? 1 : 0;
  std::vector<Tensor> inputs;
  if (!order.batch_sizes.empty()) {
    inputs = gates.split_with_sizes(order.batch_sizes);
  } else {
    const Tensor steps =
        gates.unflatten(0, order.batch_first ? c10::IntArrayRef{batch, -1} : c10::IntArrayRef{-1, batch});
    inputs = steps.unbind(dim);
  }
  Tensor h = layer.h, c = layer.c.value_or(Tensor());
  std::vector<Tensor> outputs(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t t = order.reverse ? inputs.size() - 1 - i : i;
    const int64_t active = inputs[t].size(0);
    const auto with_rest = [&](const Tensor& after, const Tensor& before) {
      return active == batch ? after : at::cat({after, before.narrow(0, active, batch - active)});
    };
    const Tensor now = h.narrow(0, 0, active), sums = at::linear(now, layer.w_hh, layer.b_hh);
    switch (kind) {
      case CellKind::Lstm: {
        auto [next, cell, kept] = at::_thnn_fused_lstm_cell(inputs[t], sums, c.narrow(0, 0, active));
        outputs[t] = next;
        c = with_rest(cell, c);
        break;
      }
      case CellKind::Gru: outputs[t] = std::get<0>(at::_thnn_fused_gru_cell(inputs[t], sums, now)); break;
      case CellKind::Tanh: outputs[t] = at::tanh(inputs[t] + sums); break;
      case CellKind::Relu: outputs[t] = at::relu(inputs[t] + sums); break;
    }
    h = with_rest(outputs[t], h);
  }
  Tensor output = order.batch_sizes.empty() ? at::stack(outputs, dim).flatten(0, 1) : at::cat(outputs);
  return {std::move(output), std::move(h), maybe(c)};
}

variable_list listed(const RecurrentStates& states) {
  variable_list list{states.output, states.h};
  if (states.c.has_value()) list.push_back(*states.c);
  return list;
}

// The gradients by x, h, w_ih, w_hh, c, b_ih and b_hh, where they are to be derived again: of the
// composed layer.
variable_list composed_backward(const RecurrentLayer& layer, CellKind kind, const RowOrder& order,
                                const variable_list& grads) {
  RecurrentLayer twin = layer;
  // Each is an input of its own, even where one tensor is two of them.
  variable_list inputs;
  std::vector<size_t> places;
  size_t place = 0;
  const auto take = [&](Tensor& t) {
    if (t.requires_grad()) {
      t = t.view_as(t);
      inputs.push_back(t);
      places.push_back(place);
    }
    ++place;
  };
  const auto take_optional = [&](MaybeTensor& t) {
    if (t.has_value()) return take(*t);
    ++place;
  };
  for (Tensor* t : {&twin.x, &twin.h, &twin.w_ih, &twin.w_hh}) take(*t);
  for (MaybeTensor* t : {&twin.c, &twin.b_ih, &twin.b_hh}) take_optional(*t);
  variable_list results(place);
  if (inputs.empty()) return results;
  const variable_list found =
      torch::autograd::grad(listed(composed(twin, kind, order)), inputs, grads, /*retain_graph=*/true,
                            /*create_graph=*/true, /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) results[places[i]] = found[i];
  return results;
}

struct LayerFunction : torch::autograd::Function<LayerFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& h, const Tensor& w_ih,
                               const Tensor& w_hh, const MaybeTensor& c, const MaybeTensor& b_ih,
                               const MaybeTensor& b_hh, CellKind kind, const RowOrder& order) {
    auto [states, kept] = dml::forward({x, h, w_ih, w_hh, c, b_ih, b_hh}, kind, order, /*keep=*/true);
    const auto plain = [](const MaybeTensor& t) { return t.value_or(Tensor()); };
    ctx->save_for_backward({x, h, w_ih, w_hh, plain(c), plain(b_ih), plain(b_hh), states.output, kept});
    ctx->saved_data["kind"] = static_cast<int64_t>(kind);
    ctx->saved_data["batch_sizes"] = order.batch_sizes;
    ctx->saved_data["batch_first"] = order.batch_first;
    ctx->saved_data["reverse"] = order.reverse;
    return listed(states);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key());
    const variable_list saved = ctx->get_saved_variables();
    const RecurrentLayer layer{saved[0],        saved[1],        saved[2],       saved[3],
                               maybe(saved[4]), maybe(saved[5]), maybe(saved[6])};
    const CellKind kind{ctx->saved_data["kind"].toInt()};
    const RowOrder order{ctx->saved_data["batch_sizes"].toIntVector(), ctx->saved_data["batch_first"].toBool(),
                         ctx->saved_data["reverse"].toBool()};
    // Arguments that are no tensors have no gradients.
    variable_list results = c10::GradMode::is_enabled() ? composed_backward(layer, kind, order, grads)
                                                        : fused_backward(ctx, layer, kind, order, saved, grads);
    results.resize(9);
    return results;
  }

  static variable_list fused_backward(AutogradContext* ctx, const RecurrentLayer& layer, CellKind kind,
                                      const RowOrder& order, const variable_list& saved, const variable_list& grads) {
    using Signature = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
        const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const MaybeTensor&, const Tensor&,
        const Tensor&, const Tensor&, c10::string_view, c10::IntArrayRef, bool, bool);
    static const auto recurrence_backward =
        c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::recurrence_backward", "").typed<Signature>();
    const at::AutoDispatchBelowADInplaceOrView guard;
    const auto [gates, of_hidden, before, h, c] = recurrence_backward.call(
        grads[0], grads[1], grads.size() > 2 ? maybe(grads[2]) : std::nullopt, layer.h, layer.c, layer.w_hh, saved[7],
        saved[8], name_of(kind), order.batch_sizes, order.batch_first, order.reverse);
    const Tensor& hidden = of_hidden.defined() ? of_hidden : gates;
    // What autograd asks for is counted without what is none.
    size_t edge = 0;
    const auto wanted = [&](bool given) { return given && ctx->needs_input_grad(edge++); };
    variable_list results(7);
    if (wanted(true)) results[0] = gates.mm(layer.w_ih);
    if (wanted(true)) results[1] = h;
    if (wanted(true)) results[2] = gates.t().mm(layer.x);
    if (wanted(true)) results[3] = hidden.t().mm(before);
    if (wanted(layer.c.has_value())) results[4] = c;
    if (wanted(layer.b_ih.has_value())) results[5] = gates.sum(0);
    if (wanted(layer.b_hh.has_value())) {
      results[6] = !of_hidden.defined() && results[5].defined() ? results[5] : hidden.sum(0);
    }
    return results;
  }
};

}  // namespace

RecurrentStates run_layer(const RecurrentLayer& layer, CellKind kind, const RowOrder& order) {
  const auto followed = [](const MaybeTensor& t) { return t.has_value() && t->requires_grad(); };
  const bool any = followed(layer.x) || followed(layer.h) || followed(layer.w_ih) || followed(layer.w_hh) ||
                   followed(layer.c) || followed(layer.b_ih) || followed(layer.b_hh);
  if (!any || !c10::GradMode::is_enabled()) return forward(layer, kind, order, /*keep=*/false).first;
  variable_list found =
      LayerFunction::apply(layer.x, layer.h, layer.w_ih, layer.w_hh, layer.c, layer.b_ih, layer.b_hh, kind, order);
  return {found[0], found[1], found.size() > 2 ? MaybeTensor(found[2]) : std::nullopt};
}

}  // namespace dml
