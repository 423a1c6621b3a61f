#include "core/table.h"

#include <ATen/core/function_schema.h>

#include <map>
#include <mutex>
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

  explicit Held(const std::string& name_space) {
    // The table may list an overload several times, with the schemas of several minors of torch.
    std::unordered_map<std::string, ChangedOperator> changed;
    const uint32_t count = dml_operator_count();
    for (uint32_t op = 0; op < count; ++op) {
      const std::string name = dml_operator_name(op), schema = dml_operator_schema(op);
      if (name.rfind(name_space + "::", 0) != 0) continue;
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

struct Namespaces {
  std::mutex mutex;
  std::map<std::string, Held> held;
};

Namespaces& namespaces() {
  static Namespaces& made = *new Namespaces;
  return made;
}

const Held& held(const std::string& name_space) {
  Namespaces& all = namespaces();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.held.try_emplace(name_space, name_space).first->second;
}

}  // namespace

const Table& table(const std::string& name_space) { return held(name_space).table; }

std::vector<const Table*> tables() {
  Namespaces& all = namespaces();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<const Table*> found;
  for (const auto& [name, held] : all.held) found.push_back(&held.table);
  return found;
}

std::optional<uint32_t> find_operator(const std::string& name) {
  const auto& ids = held("aten").ids;
  const auto found = ids.find(name);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace dml
