// Device memory as PyTorch allocates it.
#pragma once
#include <c10/core/Allocator.h>

namespace dml {

c10::Allocator* allocator();
c10::DataPtr allocate(size_t bytes, c10::DeviceIndex device);
void register_allocator();

}  // namespace dml
