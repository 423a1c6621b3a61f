// A recurrent layer in one direction, with its gradients.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace dml {

enum class CellKind : int64_t { Lstm, Gru, Tanh, Relu };

// The order of rows: packed by `batch_sizes` or, if there are none, sequence after sequence
// (`batch_first`) or step after step. `reverse`: the layer runs from the last step to the first.
struct RowOrder {
  std::vector<int64_t> batch_sizes;
  bool batch_first, reverse;
};

// A layer in one direction, with its input and the states that it begins with. Cell states and
// biases may be none.
struct RecurrentLayer {
  at::Tensor x, h;
  std::optional<at::Tensor> c;
  at::Tensor w_ih, w_hh;
  std::optional<at::Tensor> b_ih, b_hh;
};

struct RecurrentStates {
  at::Tensor output, h;
  std::optional<at::Tensor> c;
};

// Runs the layer, and records its gradient where one is required. Nothing if the engine declines
// it.
std::optional<RecurrentStates> run_layer(const RecurrentLayer& layer, CellKind kind, const RowOrder& order);

}  // namespace dml
