#include "core/library.h"

#include <memory>
#include <vector>

namespace dml {

torch::Library& library(const char* ns, c10::DispatchKey key) {
  // A registration ends with its Library, so they are kept, and never destroyed: tensors outlive
  // static destructors.
  static auto& kept = *new std::vector<std::unique_ptr<torch::Library>>;
  kept.push_back(std::make_unique<torch::Library>(torch::Library::IMPL, ns, key, __FILE__, __LINE__));
  return *kept.back();
}

}  // namespace dml
