// A recurrent layer in one direction, with its gradients.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace dml {

enum class CellKind : int64_t { Lstm, Gru, Tanh, Relu };

inline int64_t gates_of(CellKind kind) { return kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1; }

// Which step of which sequence a row is: packed by `batch_sizes`, or, where there are none,
// sequence after sequence (`batch_first`) or step after step. Whether the last step comes first.
struct RowOrder {
  std::vector<int64_t> batch_sizes;
  bool batch_first, reverse;
};

// What goes through the steps: a layer in one direction. Cell states and biases may be none.
struct RecurrentLayer {
  at::Tensor x, h, w_ih, w_hh;
  std::optional<at::Tensor> c, b_ih, b_hh;
};

struct RecurrentStates {
  at::Tensor output, h;
  std::optional<at::Tensor> c;
};

// Takes the sequences through the layer. Autograd follows it where that is wanted.
RecurrentStates run_layer(const RecurrentLayer& layer, CellKind kind, const RowOrder& order);

}  // namespace dml
