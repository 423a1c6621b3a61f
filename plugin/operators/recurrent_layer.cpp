// A recurrent layer and its gradients: the engine's or, for a second derivative, those of the
// composed layer.
#include "operators/recurrent_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <array>
#include <tuple>
#include <utility>

#include "operators/gradient.h"

namespace dml {
namespace {

using at::Tensor;

const char* name_of(CellKind kind) {
  constexpr const char* names[] = {"lstm", "gru", "tanh", "relu"};
  return names[static_cast<size_t>(kind)];
}

// The states, and the numbers that the gradient needs beside them.
struct Found {
  RecurrentStates states;
  Tensor kept;
};

// Computes a layer without recording a gradient. Nothing if the engine declines it.
std::optional<Found> forward(const RecurrentLayer& layer, CellKind kind, const RowOrder& order, bool keep) {
  using Signature = std::tuple<Tensor, Tensor, Tensor, Tensor>(
      const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const Tensor&, const MaybeTensor&,
      const MaybeTensor&, c10::string_view, c10::IntArrayRef, bool, bool, bool);
  static const auto engine = engine_operator<Signature>("torch_dml::recurrent_layer");
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto [output, h, c, kept] = engine.call(layer.x, layer.h, layer.c, layer.w_ih, layer.w_hh, layer.b_ih, layer.b_hh,
                                          name_of(kind), order.batch_sizes, order.batch_first, order.reverse, keep);
  if (!output.defined()) return std::nullopt;
  return Found{{std::move(output), std::move(h), maybe(c)}, std::move(kept)};
}

// The same layer, composed of differentiable operators, one step at a time.
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

// The gradients by the layer's tensors, in their order, for a second derivative: of the composed
// layer.
variable_list composed_backward(const RecurrentLayer& layer, CellKind kind, const RowOrder& order,
                                const variable_list& grads) {
  RecurrentLayer twin = layer;
  // Each is a separate input, even if one tensor is two of them.
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
  take(twin.x);
  take(twin.h);
  take_optional(twin.c);
  take(twin.w_ih);
  take(twin.w_hh);
  take_optional(twin.b_ih);
  take_optional(twin.b_hh);
  variable_list results(place);
  if (inputs.empty()) return results;
  const variable_list found =
      torch::autograd::grad(listed(composed(twin, kind, order)), inputs, grads, /*retain_graph=*/true,
                            /*create_graph=*/true, /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) results[places[i]] = found[i];
  return results;
}

struct LayerFunction : torch::autograd::Function<LayerFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& h, const MaybeTensor& c,
                               const Tensor& w_ih, const Tensor& w_hh, const MaybeTensor& b_ih, const MaybeTensor& b_hh,
                               const Found& found, CellKind kind, const RowOrder& order) {
    const auto plain = [](const MaybeTensor& t) { return t.value_or(Tensor()); };
    ctx->save_for_backward({x, h, plain(c), w_ih, w_hh, plain(b_ih), plain(b_hh), found.states.output, found.kept});
    ctx->saved_data["kind"] = static_cast<int64_t>(kind);
    ctx->saved_data["batch_sizes"] = order.batch_sizes;
    ctx->saved_data["batch_first"] = order.batch_first;
    ctx->saved_data["reverse"] = order.reverse;
    return listed(found.states);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const RecurrentLayer layer{saved[0], saved[1],        maybe(saved[2]), saved[3],
                               saved[4], maybe(saved[5]), maybe(saved[6])};
    const CellKind kind{ctx->saved_data["kind"].toInt()};
    const RowOrder order{ctx->saved_data["batch_sizes"].toIntVector(), ctx->saved_data["batch_first"].toBool(),
                         ctx->saved_data["reverse"].toBool()};
    variable_list results = gradients([&] { return fused_backward(ctx, layer, kind, order, saved, grads); },
                                      [&] { return composed_backward(layer, kind, order, grads); });
    results.resize(10);  // The other arguments of `forward` have no gradients.
    return results;
  }

  static variable_list fused_backward(AutogradContext* ctx, const RecurrentLayer& layer, CellKind kind,
                                      const RowOrder& order, const variable_list& saved, const variable_list& grads) {
    using Signature = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>(
        const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const Tensor&, const MaybeTensor&,
        const Tensor&, const Tensor&, const Tensor&, const Tensor&, c10::string_view, c10::IntArrayRef, bool, bool,
        std::array<bool, 7>);
    static const auto engine = engine_operator<Signature>("torch_dml::recurrent_layer_backward");
    // needs_input_grad counts the tensors without those that are missing.
    size_t edge = 0;
    std::array<bool, 7> wanted;
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = saved[i].defined() && ctx->needs_input_grad(edge++);
    const auto found = engine.call(grads[0], grads[1], grads.size() > 2 ? maybe(grads[2]) : std::nullopt, layer.x,
                                   layer.h, layer.c, layer.w_ih, layer.w_hh, saved[7], saved[8], name_of(kind),
                                   order.batch_sizes, order.batch_first, order.reverse, wanted);
    return std::apply([](const auto&... gradients) { return variable_list{gradients...}; }, found);
  }
};

}  // namespace

std::optional<RecurrentStates> run_layer(const RecurrentLayer& layer, CellKind kind, const RowOrder& order) {
  const auto followed = [](const MaybeTensor& t) { return t.has_value() && t->requires_grad(); };
  const bool any = followed(layer.x) || followed(layer.h) || followed(layer.c) || followed(layer.w_ih) ||
                   followed(layer.w_hh) || followed(layer.b_ih) || followed(layer.b_hh);
  const bool keep = any && c10::GradMode::is_enabled();
  std::optional<Found> found = forward(layer, kind, order, keep);
  if (!found.has_value()) return std::nullopt;
  if (!keep) return std::move(found->states);
  variable_list states = LayerFunction::apply(layer.x, layer.h, layer.c, layer.w_ih, layer.w_hh, layer.b_ih, layer.b_hh,
                                              *found, kind, order);
  return RecurrentStates{states[0], states[1], states.size() > 2 ? MaybeTensor(states[2]) : std::nullopt};
}

}  // namespace dml
