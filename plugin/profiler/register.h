// PyTorch's profilers.
#pragma once

namespace dml {

void register_kineto();
void register_profiler();

}  // namespace dml
