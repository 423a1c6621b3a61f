// Conversion of the engine's memory statistics to PyTorch's.
#pragma once
#include <c10/core/Allocator.h>

#include "engine.h"

namespace dml {

inline c10::CachingAllocator::Stat stat(const DmlStat& from) {
  c10::CachingAllocator::Stat to;
  to.current = from.current;
  to.peak = from.peak;
  to.allocated = from.allocated;
  to.freed = from.freed;
  return to;
}

}  // namespace dml
