// The engine's table of operators, held against the running torch.
#include "table.h"

#include <ATen/core/function_schema.h>

#include <sstream>
#include <unordered_map>

#include "engine.h"

namespace dml {
namespace {

c10::OperatorName parse(const std::string& full) {
  const size_t dot = full.find('.');
  return {full.substr(0, dot), dot == std::string::npos ? "" : full.substr(dot + 1)};
}

std::string print(const c10::FunctionSchema& schema) {
  std::ostringstream text;
  text << schema;
  return text.str();
}

struct Held {
  Table table;
  std::unordered_map<std::string, uint32_t> ids;

  Held() {
    // An overload may stand there several times, with the schemas of several torches.
    std::unordered_map<std::string, ChangedOperator> changed;
    const uint32_t count = dml_operator_count();
    for (uint32_t op = 0; op < count; ++op) {
      const std::string name = dml_operator_name(op), schema = dml_operator_schema(op);
      const auto handle = c10::Dispatcher::singleton().findSchema(parse(name));
      if (!handle.has_value()) {
        table.unknown.push_back(name);
        continue;
      }
      const std::string there = print(handle->schema());
      if (schema == there) {
        ids.emplace(name, op);
        table.operators.push_back({op, *handle});
      } else {
        changed.emplace(name, ChangedOperator{schema, there});
      }
    }
    for (auto& [name, schemas] : changed) {
      if (ids.count(name) == 0) table.changed.push_back(std::move(schemas));
    }
  }
};

const Held& held() {
  static const Held& made = *new Held;
  return made;
}

}  // namespace

const Table& table() { return held().table; }

std::optional<uint32_t> find_operator(const std::string& name) {
  const auto found = held().ids.find(name);
  return found == held().ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace dml
