// Copies, and views of a tensor's memory as another dtype.
#pragma once
#include <ATen/core/Tensor.h>

namespace dml {

// The memory of a tensor as a plain tensor of a dtype: without quantizer, conjugate bit, negative
// bit and gradient. The offset counts elements of that dtype.
at::Tensor view_of_memory(const at::Tensor& t, caffe2::TypeMeta type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          int64_t offset);

}  // namespace dml
