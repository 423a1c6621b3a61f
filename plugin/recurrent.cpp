// LSTM, GRU and RNN: for every layer and direction one product of all steps' inputs, and the engine's recurrence.
#include <ATen/FuncTorchTLS.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend.h"
#include "register.h"

namespace dml {
namespace {

using at::Tensor;
using at::TensorList;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<Tensor>;

enum class Kind : int64_t { Lstm, Gru, Tanh, Relu };

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"lstm", "gru", "tanh", "relu"};
  return names[static_cast<size_t>(kind)];
}

int64_t gates_of(Kind kind) { return kind == Kind::Lstm ? 4 : kind == Kind::Gru ? 3 : 1; }

// Which step of which sequence a row is: packed by `batch_sizes`, or, where there are none, sequence after sequence
// (`batch_first`) or step after step. Whether the last step comes first.
struct Order {
  std::vector<int64_t> batch_sizes;
  bool batch_first, reverse;
};

// What goes through the steps: a layer in one direction. Cell states and biases may be none.
struct Layer {
  Tensor x, h, w_ih, w_hh;
  MaybeTensor c, b_ih, b_hh;
};

struct States {
  Tensor output, h;
  MaybeTensor c;
};

c10::DispatchKey autocast_key() {
  return is_cuda() ? c10::DispatchKey::AutocastCUDA : c10::DispatchKey::AutocastPrivateUse1;
}

// Whether a transform of torch.func runs: PyTorch's functions with gradients of their own are refused under it.
bool in_transform() {
  const auto& functorch = at::functorch::functorchTLSAccessor();
  if (functorch == nullptr) return false;
  try {
    functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

MaybeTensor maybe(const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; }

// The states and what the gradient needs, without a gradient of its own.
std::pair<States, Tensor> forward(const Layer& layer, Kind kind, const Order& order, bool keep) {
  using Signature = std::tuple<Tensor, Tensor, Tensor, Tensor>(
      const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const MaybeTensor&, c10::string_view,
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
States composed(const Layer& layer, Kind kind, const Order& order) {
  const Tensor gates = at::linear(layer.x, layer.w_ih, layer.b_ih);
  const int64_t batch = layer.h.size(0), dim = order.batch_first ? 1 : 0;
  std::vector<Tensor> inputs;
  if (!order.batch_sizes.empty()) {
    inputs = gates.split_with_sizes(order.batch_sizes);
  } else {
    const Tensor steps = gates.unflatten(0, order.batch_first ? c10::IntArrayRef{batch, -1} : c10::IntArrayRef{-1, batch});
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
      case Kind::Lstm: {
        auto [next, cell, kept] = at::_thnn_fused_lstm_cell(inputs[t], sums, c.narrow(0, 0, active));
        outputs[t] = next;
        c = with_rest(cell, c);
        break;
      }
      case Kind::Gru: outputs[t] = std::get<0>(at::_thnn_fused_gru_cell(inputs[t], sums, now)); break;
      case Kind::Tanh: outputs[t] = at::tanh(inputs[t] + sums); break;
      case Kind::Relu: outputs[t] = at::relu(inputs[t] + sums); break;
    }
    h = with_rest(outputs[t], h);
  }
  Tensor output = order.batch_sizes.empty() ? at::stack(outputs, dim).flatten(0, 1) : at::cat(outputs);
  return {std::move(output), std::move(h), maybe(c)};
}

variable_list listed(const States& states) {
  variable_list list{states.output, states.h};
  if (states.c.has_value()) list.push_back(*states.c);
  return list;
}

// The gradients by x, h, w_ih, w_hh, c, b_ih and b_hh, where they are to be derived again: of the composed layer.
variable_list composed_backward(const Layer& layer, Kind kind, const Order& order, const variable_list& grads) {
  Layer twin = layer;
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

struct RecurrentLayer : torch::autograd::Function<RecurrentLayer> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& h, const Tensor& w_ih,
                               const Tensor& w_hh, const MaybeTensor& c, const MaybeTensor& b_ih,
                               const MaybeTensor& b_hh, Kind kind, const Order& order) {
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
    const Layer layer{saved[0], saved[1], saved[2], saved[3], maybe(saved[4]), maybe(saved[5]), maybe(saved[6])};
    const Kind kind{ctx->saved_data["kind"].toInt()};
    const Order order{ctx->saved_data["batch_sizes"].toIntVector(), ctx->saved_data["batch_first"].toBool(),
                      ctx->saved_data["reverse"].toBool()};
    // Arguments that are no tensors have no gradients.
    variable_list results = c10::GradMode::is_enabled() ? composed_backward(layer, kind, order, grads)
                                                        : fused_backward(ctx, layer, kind, order, saved, grads);
    results.resize(9);
    return results;
  }

  static variable_list fused_backward(AutogradContext* ctx, const Layer& layer, Kind kind, const Order& order,
                                      const variable_list& saved, const variable_list& grads) {
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

States run_layer(const Layer& layer, Kind kind, const Order& order) {
  const auto followed = [](const MaybeTensor& t) { return t.has_value() && t->requires_grad(); };
  const bool any = followed(layer.x) || followed(layer.h) || followed(layer.w_ih) || followed(layer.w_hh) ||
                   followed(layer.c) || followed(layer.b_ih) || followed(layer.b_hh);
  if (!any || !c10::GradMode::is_enabled()) return forward(layer, kind, order, /*keep=*/false).first;
  variable_list found = RecurrentLayer::apply(layer.x, layer.h, layer.w_ih, layer.w_hh, layer.c, layer.b_ih,
                                              layer.b_hh, kind, order);
  return {found[0], found[1], found.size() > 2 ? MaybeTensor(found[2]) : std::nullopt};
}

// A whole network: `hx` holds the states of all layers and directions, the hidden ones and those of an LSTM's cells.
struct Network {
  Kind kind;
  TensorList hx, params;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  size_t params_of_layer() const { return has_biases ? 4 : 2; }

  // A plain tensor of the device: nothing follows it that takes operators apart.
  static bool is_plain(const Tensor& t, const Tensor& like) {
    using c10::DispatchKey;
    const c10::DispatchKeySet plain({backend.dense, backend.autograd, DispatchKey::ADInplaceOrView, autocast_key()});
    return t.defined() && is_ours(t.device()) && t.device() == like.device() &&
           t.scalar_type() == like.scalar_type() && plain.has_all(t.key_set()) && !t._fw_grad(/*level=*/0).defined();
  }

  // Whether the engine takes the network with rows of `width` numbers from `batch` sequences. What it does not take is
  // PyTorch's to compose, or to refuse.
  bool fits(const Tensor& input, int64_t batch, int64_t width) const {
    if (in_transform() || !at::isFloatingType(input.scalar_type())) return false;
    const auto plain = [&](const Tensor& t) { return is_plain(t, input); };
    if (!plain(input) || !std::all_of(hx.begin(), hx.end(), plain)) return false;
    if (!std::all_of(params.begin(), params.end(), plain) || input.numel() == 0) return false;
    const int64_t count = num_layers * directions();
    if (count <= 0 || params.size() != count * params_of_layer() || hx.size() != (kind == Kind::Lstm ? 2 : 1)) {
      return false;
    }
    if (hx[0].dim() != 3 || hx[0].numel() == 0) return false;
    const int64_t hidden = hx[0].size(2), gates = gates_of(kind) * hidden;
    for (const Tensor& states : hx) {
      if (states.sizes() != c10::IntArrayRef{count, batch, hidden}) return false;
    }
    for (int64_t i = 0; i < count; ++i) {
      const TensorList of = params.slice(i * params_of_layer(), params_of_layer());
      const int64_t inputs = i < directions() ? width : hidden * directions();
      if (of[0].sizes() != c10::IntArrayRef{gates, inputs} || of[1].sizes() != c10::IntArrayRef{gates, hidden}) {
        return false;
      }
      for (const Tensor& bias : of.slice(2)) {
        if (bias.sizes() != c10::IntArrayRef{gates}) return false;
      }
    }
    return true;
  }

  // The rows of the last layer, and the states of all after their last steps.
  States run(Tensor rows, Order order) const {
    std::vector<Tensor> last_h, last_c;
    for (int64_t i = 0; i < num_layers; ++i) {
      std::vector<Tensor> outputs;
      for (int64_t direction = 0; direction < directions(); ++direction) {
        const int64_t index = i * directions() + direction;
        const TensorList of = params.slice(index * params_of_layer(), params_of_layer());
        Layer layer{rows, hx[0].select(0, index), of[0], of[1], std::nullopt, std::nullopt, std::nullopt};
        if (kind == Kind::Lstm) layer.c = hx[1].select(0, index);
        if (has_biases) {
          layer.b_ih = of[2];
          layer.b_hh = of[3];
        }
        order.reverse = direction == 1;
        States states = run_layer(layer, kind, order);
        outputs.push_back(std::move(states.output));
        last_h.push_back(std::move(states.h));
        if (states.c.has_value()) last_c.push_back(std::move(*states.c));
      }
      rows = outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1);
      if (dropout != 0 && train && i + 1 < num_layers) rows = at::dropout(rows, dropout, /*train=*/true);
    }
    return {rows, at::stack(last_h), last_c.empty() ? std::nullopt : MaybeTensor(at::stack(last_c))};
  }

  // Sequences of one length.
  std::optional<States> of_input(const Tensor& input, bool batch_first) const {
    if (input.dim() != 3 || !fits(input, input.size(batch_first ? 0 : 1), input.size(2))) return std::nullopt;
    States states = run(input.flatten(0, 1), {{}, batch_first, false});
    states.output = states.output.unflatten(0, input.sizes().slice(0, 2));
    return states;
  }

  // Packed sequences. Their batch sizes are a CPU tensor.
  std::optional<States> of_data(const Tensor& data, const Tensor& batch_sizes) const {
    if (data.dim() != 2 || !batch_sizes.defined() || !batch_sizes.is_cpu() || batch_sizes.dim() != 1 ||
        batch_sizes.scalar_type() != at::kLong || batch_sizes.numel() == 0) {
      return std::nullopt;
    }
    const Tensor sizes = batch_sizes.contiguous();
    const int64_t* first = sizes.const_data_ptr<int64_t>();
    std::vector<int64_t> list(first, first + sizes.numel());
    int64_t rows = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] <= 0 || (i > 0 && list[i] > list[i - 1])) return std::nullopt;
      rows += list[i];
    }
    if (rows != data.size(0) || !fits(data, list[0], data.size(1))) return std::nullopt;
    return run(data, {std::move(list), false, false});
  }
};

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Three three(States&& states) { return {std::move(states.output), std::move(states.h), std::move(*states.c)}; }
Two two(States&& states) { return {std::move(states.output), std::move(states.h)}; }

Three lstm_input(const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers,
                 double dropout, bool train, bool bidirectional, bool batch_first) {
  const Network network{Kind::Lstm, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_input(input, batch_first)) return three(std::move(*states));
  return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

Three lstm_data(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params, bool has_biases,
                int64_t num_layers, double dropout, bool train, bool bidirectional) {
  const Network network{Kind::Lstm, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_data(data, batch_sizes)) return three(std::move(*states));
  return at::native::lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
}

using Input = Two(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool);
using Data = Two(const Tensor&, const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool);

// A network with hidden states alone; `composite` is PyTorch's.
template <Kind kind, Input* composite>
Two input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,
          bool train, bool bidirectional, bool batch_first) {
  const Network network{kind, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_input(input, batch_first)) return two(std::move(*states));
  return composite(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

template <Kind kind, Data* composite>
Two data(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases,
         int64_t num_layers, double dropout, bool train, bool bidirectional) {
  const Network network{kind, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_data(data, batch_sizes)) return two(std::move(*states));
  return composite(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
}

}  // namespace

#define DML_ALL(KERNEL)                       \
  KERNEL(lstm, input, lower_precision_fp)     \
  KERNEL(lstm, data, lower_precision_fp)      \
  KERNEL(gru, input, lower_precision_fp)      \
  KERNEL(gru, data, lower_precision_fp)       \
  KERNEL(rnn_tanh, input, lower_precision_fp) \
  KERNEL(rnn_tanh, data, lower_precision_fp)  \
  KERNEL(rnn_relu, input, lower_precision_fp) \
  KERNEL(rnn_relu, data, lower_precision_fp)

void register_recurrent() {
  namespace native = at::native;
  // The composites are registered for every key. One kernel serves both: it takes gradients where they are wanted.
  for (const c10::DispatchKey key : {backend.dense, backend.autograd}) {
    torch::Library& aten = library("aten", key);
    aten.impl("aten::lstm.input", TORCH_FN(lstm_input));
    aten.impl("aten::lstm.data", TORCH_FN(lstm_data));
    aten.impl("aten::gru.input", TORCH_FN((input<Kind::Gru, &native::gru>)));
    aten.impl("aten::gru.data", TORCH_FN((data<Kind::Gru, &native::gru>)));
    aten.impl("aten::rnn_tanh.input", TORCH_FN((input<Kind::Tanh, &native::rnn_tanh>)));
    aten.impl("aten::rnn_tanh.data", TORCH_FN((data<Kind::Tanh, &native::rnn_tanh>)));
    aten.impl("aten::rnn_relu.input", TORCH_FN((input<Kind::Relu, &native::rnn_relu>)));
    aten.impl("aten::rnn_relu.data", TORCH_FN((data<Kind::Relu, &native::rnn_relu>)));
  }
  // Under autocast a network runs in the lower precision, weights, input and states, as cuDNN's do.
  using namespace at;  // the macros name types without it
  torch::Library& m = library("aten", autocast_key());
  if (is_cuda()) {
    DML_ALL(KERNEL_CUDA)
  } else {
    DML_ALL(KERNEL_PRIVATEUSEONE)
  }
}

}  // namespace dml
