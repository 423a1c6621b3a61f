// The engine's table of operators, compared with the operators of the running torch and of the
// libraries that it has loaded.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dml {

// An operator of the engine with the same schema as in the running torch.
struct TableOperator {
  uint32_t id;
  c10::OperatorHandle handle;
};

// An operator that this torch has with another schema, so that its arguments would be misread.
struct ChangedOperator {
  std::string engine, torch;  // the schemas
};

struct Table {
  std::vector<TableOperator> operators;  // in the engine's order
  std::vector<std::string> unknown;      // this torch has no such overload
  std::vector<ChangedOperator> changed;
};

// The operators of a namespace: "aten", or a library's, such as "torchvision". Made at the first
// call, when the library is loaded.
const Table& table(const std::string& name_space);

// The tables of all namespaces for which table() was called.
std::vector<const Table*> tables();

// The id of an operator of aten by name ("aten::add.Tensor"), if its schema is the running torch's.
std::optional<uint32_t> find_operator(const std::string& name);

}  // namespace dml
