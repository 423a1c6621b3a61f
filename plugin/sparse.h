// What operators of sparse tensors are composed of.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>

#include "register.h"

namespace dml {

// Each entry's place in the row-major order of all: of indices [dims, entries] into dimensions of
// these sizes.
at::Tensor flatten_indices(const at::Tensor& indices, c10::IntArrayRef sizes);

// The engine's product of compressed rows with a dense matrix: `values` none stands for ones.
// Complex too.
at::Tensor compressed_mm(const at::Tensor& offsets, const at::Tensor& indices, const std::optional<at::Tensor>& values,
                         const at::Tensor& dense, const std::optional<at::Tensor>& addend = std::nullopt,
                         const c10::Scalar& beta = 0, const c10::Scalar& alpha = 1);

// Writes what an operator found to the tensor that it is to go to, of whatever layout both have.
at::Tensor& put(const at::Tensor& found, at::Tensor& out);

void register_coo(torch::Library& coo);
void register_compressed(torch::Library& compressed);

}  // namespace dml
