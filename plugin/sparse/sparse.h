// Common parts of the operators of sparse tensors.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/library.h"

namespace dml {

// Copies the result of an operator to `out`, resized, for any layout of both.
at::Tensor& put(const at::Tensor& found, at::Tensor& out);

void register_coo(torch::Library& coo);
void register_compressed(torch::Library& compressed);

}  // namespace dml
