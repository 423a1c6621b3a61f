// Page-locked host memory.
#pragma once
#include <c10/core/Allocator.h>

namespace dml {

c10::Allocator* host_allocator();
bool is_pinned(const void* address);

}  // namespace dml
