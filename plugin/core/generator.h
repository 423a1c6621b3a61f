// Random generators: PyTorch's object, the engine's state.
#pragma once
#include <ATen/core/Generator.h>

#include <cstdint>

namespace dml {

// The generator that a device uses when none is given.
const at::Generator& default_generator(c10::DeviceIndex device);
at::Generator new_generator(c10::DeviceIndex device);

// The engine's handle, 0 for a default generator. Raises for another backend's generator.
uint64_t generator_handle(const at::Generator& generator);

}  // namespace dml
