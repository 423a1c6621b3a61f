// What became of the engine's table of operators.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dml {

struct TableCounts {
  uint64_t registered = 0;
  std::vector<std::string> unknown;    // this torch has no such overload
  std::vector<std::string> composite;  // this torch decomposes it; a kernel would never be asked, or break autograd
};
const TableCounts& table_counts();

}  // namespace dml
