// Copies, and tensors that are other views of a tensor's memory.
#pragma once
#include <ATen/core/Tensor.h>

namespace dml {

// What the memory of a tensor holds, as a plain tensor of a dtype: with no quantizer, no conjugate
// or negative bit, and no gradient. The offset counts elements of that dtype.
at::Tensor view_of_memory(const at::Tensor& t, caffe2::TypeMeta type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          int64_t offset);

}  // namespace dml
