// Operators of sparse tensors.
#pragma once

namespace dml {

void register_sparse();

}  // namespace dml
