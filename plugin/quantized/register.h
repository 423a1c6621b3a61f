// Operators of quantized tensors.
#pragma once

namespace dml {

void register_quantized();
void register_quantized_linear();

}  // namespace dml
