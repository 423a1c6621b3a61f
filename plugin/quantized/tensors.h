// Quantized tensors.
#pragma once
#include <ATen/core/Tensor.h>

namespace dml {

// The integers of a quantized tensor (int8, uint8 or int32), in the same memory.
at::Tensor integers(const at::Tensor& q);

}  // namespace dml
