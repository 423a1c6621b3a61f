// One call of the engine: the callbacks into PyTorch that it may use, and its results.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <exception>

#include "engine.h"

namespace dml {

// Tensors made while the engine runs. Those that are not returned die with this object.
class Call {
 public:
  Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Returns false when the engine has no kernel for these arguments, so that the operator has to
  // run on the CPU. Other failures throw.
  bool run(uint32_t op, c10::DeviceIndex device, const DmlValue* args, size_t nargs, DmlValue* results,
           size_t nresults);

  // Converts a result to a tensor: one that was made in this call, or one of its arguments.
  at::Tensor take(const DmlTensor& tensor);
  at::Tensor take(const DmlValue& result);  // undefined for DML_TAG_NONE

 private:
  static int32_t empty(void* self, const int64_t* sizes, const int64_t* strides, int32_t dim, uint8_t dtype,
                       uint8_t device, DmlTensor* out);
  static int32_t resize(void* self, DmlTensor* tensor, const int64_t* sizes, const int64_t* strides, int32_t dim);
  static int32_t view(void* self, const DmlTensor* base, const int64_t* sizes, const int64_t* strides, int32_t dim,
                      int64_t storage_offset, DmlTensor* out);
  static void warn(void* self, const char* message);
  static uint8_t matmul_precision(void* self);
  static uint8_t product_dtype(void* self);

  template <class F>
  int32_t guarded(F&& body) noexcept;

  DmlHost host_;
  c10::SmallVector<c10::intrusive_ptr<c10::TensorImpl>, 4> made_;
  size_t next_ = 0;  // where the search of take() starts
  std::exception_ptr error_;  // thrown by a callback; the engine passes on a status, then it is rethrown
};

// A number that the engine returned.
c10::Scalar to_scalar(const DmlValue& value);

}  // namespace dml
