// Measures the host's time: the plugin's own share is the stage "unpacking". While off, it costs a
// load and a branch.
#pragma once
#include <c10/macros/Macros.h>

#include <atomic>

#include "engine.h"

namespace dml {

class Measured {
 public:
  Measured() : token_(C10_UNLIKELY(on()) ? dml_measure_enter() : 0) {}
  ~Measured() {
    if (C10_UNLIKELY(token_ != 0)) dml_measure_leave(token_);
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  static bool on() {
    return reinterpret_cast<const std::atomic<uint32_t>*>(word_)->load(std::memory_order_relaxed) != 0;
  }

  static inline const uint32_t* const word_ = dml_measuring();
  const uint32_t token_;
};

}  // namespace dml
