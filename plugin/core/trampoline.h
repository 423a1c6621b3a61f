// The registration of the operators that both the engine and the running torch have.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dml {

struct TableCounts {
  uint64_t registered = 0;
  std::vector<std::string> composite;  // this torch decomposes it: a kernel would never be called, or break autograd
};
const TableCounts& table_counts();

}  // namespace dml
