// Device memory as PyTorch allocates it.
#pragma once
#include <c10/core/Allocator.h>

namespace dml {

c10::Allocator* allocator();
void register_allocator();

}  // namespace dml
