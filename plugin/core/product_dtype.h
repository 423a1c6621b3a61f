// The dtype to which matrix products of this thread round float32 operands.
#pragma once
#include <c10/core/ScalarType.h>

namespace dml {

// While an object exists, products accept float32 operands together with its 16-bit dtype. Without
// one, products accept the same dtypes as on the CPU.
class ProductDtype {
 public:
  explicit ProductDtype(c10::ScalarType dtype) : before_(current_) { current_ = dtype; }
  ~ProductDtype() { current_ = before_; }
  ProductDtype(const ProductDtype&) = delete;
  ProductDtype& operator=(const ProductDtype&) = delete;

  // float32: nothing is rounded.
  static c10::ScalarType current() { return current_; }

 private:
  static inline thread_local c10::ScalarType current_ = c10::ScalarType::Float;
  c10::ScalarType before_;
};

}  // namespace dml
