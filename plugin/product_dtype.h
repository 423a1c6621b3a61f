// What this thread's products round operands of float32 to.
#pragma once
#include <c10/core/ScalarType.h>

namespace dml {

// While it lives, products take float32 beside its dtype of 16 bits. Without one they take what the
// CPU's take.
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
