// LSTM, GRU and RNN as layers of the engine.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/backend.h"
#include "core/library.h"
#include "core/plain.h"
#include "operators/recurrent_layer.h"
#include "operators/register.h"

namespace dml {
namespace {

using at::Tensor;
using at::TensorList;

// The layers of a network. `hx` holds the hidden states of all layers and directions and, of an
// LSTM, the cell states.
struct Network {
  CellKind kind;
  TensorList hx, params;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  size_t params_of_layer() const { return has_biases ? 4 : 2; }

  // Whether these are plain tensors, as many as a network with these options has, with states of
  // `batch` sequences. The engine checks the sizes of each layer.
  bool fits(const Tensor& input, int64_t batch) const {
    if (in_transform()) return false;
    const auto plain = [&](const Tensor& t) {
      return is_plain(t) && t.device() == input.device() && at::isFloatingType(t.scalar_type());
    };
    if (!plain(input) || !std::all_of(hx.begin(), hx.end(), plain)) return false;
    if (!std::all_of(params.begin(), params.end(), plain)) return false;
    const int64_t count = num_layers * directions();
    if (count <= 0 || params.size() != count * params_of_layer() || hx.size() != (kind == CellKind::Lstm ? 2 : 1)) {
      return false;
    }
    const auto of_all = [&](const Tensor& t) { return t.dim() == 3 && t.size(0) == count && t.size(1) == batch; };
    return std::all_of(hx.begin(), hx.end(), of_all);
  }

  // The output of the last layer, and the states of all layers after the last step. Nothing if the
  // engine declines a layer: PyTorch's composite then computes the network, or raises.
  std::optional<RecurrentStates> run(Tensor rows, RowOrder order) const {
    std::vector<Tensor> last_h, last_c;
    for (int64_t i = 0; i < num_layers; ++i) {
      std::vector<Tensor> outputs;
      for (int64_t direction = 0; direction < directions(); ++direction) {
        const int64_t index = i * directions() + direction;
        const TensorList of = params.slice(index * params_of_layer(), params_of_layer());
        RecurrentLayer layer{rows, hx[0].select(0, index), std::nullopt, of[0], of[1], std::nullopt, std::nullopt};
        if (kind == CellKind::Lstm) layer.c = hx[1].select(0, index);
        if (has_biases) {
          layer.b_ih = of[2];
          layer.b_hh = of[3];
        }
        order.reverse = direction == 1;
        std::optional<RecurrentStates> states = run_layer(layer, kind, order);
        if (!states.has_value()) return std::nullopt;
        outputs.push_back(std::move(states->output));
        last_h.push_back(std::move(states->h));
        if (states->c.has_value()) last_c.push_back(std::move(*states->c));
      }
      rows = outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1);
      if (dropout != 0 && train && i + 1 < num_layers) rows = at::dropout(rows, dropout, /*train=*/true);
    }
    const auto joined = [](const std::vector<Tensor>& all) {
      return all.size() == 1 ? all[0].unsqueeze(0) : at::stack(all);
    };
    return RecurrentStates{rows, joined(last_h), last_c.empty() ? std::nullopt : std::optional(joined(last_c))};
  }

  // Sequences of one length.
  std::optional<RecurrentStates> of_input(const Tensor& input, bool batch_first) const {
    if (input.dim() != 3 || !fits(input, input.size(batch_first ? 0 : 1))) return std::nullopt;
    std::optional<RecurrentStates> states = run(input.flatten(0, 1), {{}, batch_first, false});
    if (states.has_value()) states->output = states->output.unflatten(0, input.sizes().slice(0, 2));
    return states;
  }

  // Packed sequences. Their batch sizes are a CPU tensor.
  std::optional<RecurrentStates> of_data(const Tensor& data, const Tensor& batch_sizes) const {
    if (data.dim() != 2 || !batch_sizes.defined() || !batch_sizes.is_cpu() || batch_sizes.dim() != 1 ||
        batch_sizes.scalar_type() != at::kLong || batch_sizes.numel() == 0) {
      return std::nullopt;
    }
    const Tensor sizes = batch_sizes.contiguous();
    const int64_t* first = sizes.const_data_ptr<int64_t>();
    std::vector<int64_t> list(first, first + sizes.numel());
    if (!fits(data, list[0])) return std::nullopt;
    return run(data, {std::move(list), false, false});
  }
};

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Three three(RecurrentStates&& states) { return {std::move(states.output), std::move(states.h), std::move(*states.c)}; }
Two two(RecurrentStates&& states) { return {std::move(states.output), std::move(states.h)}; }

Three lstm_input(const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers,
                 double dropout, bool train, bool bidirectional, bool batch_first) {
  const Network network{CellKind::Lstm, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_input(input, batch_first)) return three(std::move(*states));
  return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

// The batch sizes of packed sequences are read on the host, here and in PyTorch's composites.
Tensor on_host(const Tensor& batch_sizes) { return batch_sizes.defined() ? batch_sizes.cpu() : batch_sizes; }

Three lstm_data(const Tensor& data, const Tensor& sizes, TensorList hx, TensorList params, bool has_biases,
                int64_t num_layers, double dropout, bool train, bool bidirectional) {
  const Tensor batch_sizes = on_host(sizes);
  const Network network{CellKind::Lstm, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_data(data, batch_sizes)) return three(std::move(*states));
  return at::native::lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional);
}

using Input = Two(const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool, bool);
using Data = Two(const Tensor&, const Tensor&, const Tensor&, TensorList, bool, int64_t, double, bool, bool);

// A network without cell states; `composite` is PyTorch's function.
template <CellKind kind, Input* composite>
Two input(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,
          bool train, bool bidirectional, bool batch_first) {
  const Network network{kind, hx, params, has_biases, num_layers, dropout, train, bidirectional};
  if (auto states = network.of_input(input, batch_first)) return two(std::move(*states));
  return composite(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
}

template <CellKind kind, Data* composite>
Two data(const Tensor& data, const Tensor& sizes, const Tensor& hx, TensorList params, bool has_biases,
         int64_t num_layers, double dropout, bool train, bool bidirectional) {
  const Tensor batch_sizes = on_host(sizes);
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
  // PyTorch registers its composites for all keys. One kernel here serves both the dense and the
  // autograd key: it records gradients where they are required.
  for (const c10::DispatchKey key : {backend.dense, backend.autograd}) {
    torch::Library& aten = library("aten", key);
    aten.impl("aten::lstm.input", TORCH_FN(lstm_input));
    aten.impl("aten::lstm.data", TORCH_FN(lstm_data));
    aten.impl("aten::gru.input", TORCH_FN((input<CellKind::Gru, &native::gru>)));
    aten.impl("aten::gru.data", TORCH_FN((data<CellKind::Gru, &native::gru>)));
    aten.impl("aten::rnn_tanh.input", TORCH_FN((input<CellKind::Tanh, &native::rnn_tanh>)));
    aten.impl("aten::rnn_tanh.data", TORCH_FN((data<CellKind::Tanh, &native::rnn_tanh>)));
    aten.impl("aten::rnn_relu.input", TORCH_FN((input<CellKind::Relu, &native::rnn_relu>)));
    aten.impl("aten::rnn_relu.data", TORCH_FN((data<CellKind::Relu, &native::rnn_relu>)));
  }
  // Under autocast input, states and weights are converted to the lower precision, as for cuDNN.
  using namespace at;  // the macros name types without it
  torch::Library& m = library("aten", autocast_key());
  if (is_cuda()) {
    DML_ALL(KERNEL_CUDA)
  } else {
    DML_ALL(KERNEL_PRIVATEUSEONE)
  }
}

}  // namespace dml
