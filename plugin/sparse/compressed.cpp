// Operators of compressed tensors (CSR, CSC, BSR, BSC), which the engine computes from offsets,
// indices and values.
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/add.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sparse_sampled_addmm_ops.h>

#include <array>
#include <optional>
#include <tuple>
#include <utility>

#include "core/engine_operator.h"
#include "core/fallback.h"
#include "sparse/sparse.h"

namespace dml {
namespace {

using at::Tensor;
using c10::kSparseBsr;
using c10::kSparseCsc;
using c10::kSparseCsr;
using c10::kStrided;
using c10::Scalar;

void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fallback(op, stack, kNotWritten, c10::DispatchKey::SparseCsrCPU);
}

template <class Op, class... Arguments>
decltype(auto) on_cpu(Arguments&&... arguments) {
  return at::native::call_fallback_fn<&boxed, Op>::call(std::forward<Arguments>(arguments)...);
}

bool is(const Tensor& t, c10::Layout layout) { return t.layout() == layout; }

// Whether it is one matrix, not a batch.
bool is_matrix(const Tensor& t, c10::Layout layout) { return is(t, layout) && t.dim() == 2 && t.dense_dim() == 0; }

// The tensor with other values at its positions.
Tensor with_values(const Tensor& self, const Tensor& values) {
  return at::_sparse_compressed_tensor_unsafe(self.crow_indices().clone(), self.col_indices().clone(), values,
                                              self.sizes(), self.options());
}

Tensor& add_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  if (is(self, kStrided) && is_matrix(other, kSparseCsr)) return put(at::add(self, other.to_sparse(), alpha), out);
  if (is(other, kStrided) && is_matrix(self, kSparseCsr)) {
    return put(at::add(at::mul(other, alpha), self.to_sparse()), out);
  }
  const bool rows = is_matrix(self, kSparseCsr) && is_matrix(other, kSparseCsr) && is_matrix(out, kSparseCsr);
  if (!rows || self.scalar_type() != other.scalar_type() || out.scalar_type() != self.scalar_type()) {
    return on_cpu<at::_ops::add_out>(self, other, alpha, out);
  }
  TORCH_CHECK(self.sizes().equals(other.sizes()), "torch.add: Expected input tensors to have the same shape, but got ",
              "tensor `self` with shape ", self.sizes(), " and tensor `other` with shape ", other.sizes());
  return put(at::add(self.to_sparse(), other.to_sparse(), alpha).to_sparse_csr(), out);
}

bool is_native(const Tensor& sparse, bool left) {
  return is_matrix(sparse, kSparseCsr) || is_matrix(sparse, kSparseCsc) || (left && is_matrix(sparse, kSparseBsr));
}

// The product of a compressed and a strided matrix, in either order; nothing if it runs on the CPU.
std::optional<Tensor> product(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                              const Scalar& alpha) {
  using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, c10::IntArrayRef, const Tensor&,
                           bool, const Scalar&, const Scalar&);
  static const auto engine = engine_operator<Signature>("torch_dml::compressed_addmm");
  const bool left = !is(mat1, kStrided);
  const Tensor &sparse = left ? mat1 : mat2, &dense = left ? mat2 : mat1;
  if (!is_native(sparse, left) || !is(dense, kStrided) || !is(self, kStrided) || mat1.dim() != 2 || mat2.dim() != 2) {
    return std::nullopt;
  }
  Tensor rows = left ? sparse : sparse.transpose(0, 1);
  if (is(rows, kSparseCsc)) rows = rows.to_sparse_csr();
  const Tensor addend = self.expand({mat1.size(0), mat2.size(1)});
  const Tensor found = engine.call(addend, rows.crow_indices(), rows.col_indices(), rows.values(), rows.sizes(), dense,
                                   left, beta, alpha);
  return found.defined() ? std::optional(found) : std::nullopt;
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  const std::optional<Tensor> found = product(self, mat1, mat2, beta, alpha);
  return found.has_value() ? *found : on_cpu<at::_ops::addmm>(self, mat1, mat2, beta, alpha);
}

Tensor& addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  const std::optional<Tensor> found = is(out, kStrided) ? product(self, mat1, mat2, beta, alpha) : std::nullopt;
  return found.has_value() ? put(*found, out) : on_cpu<at::_ops::addmm_out>(self, mat1, mat2, beta, alpha, out);
}

Tensor& addmv_out(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  TORCH_CHECK(mat.dim() == 2, "addmv: Expected mat to be 2-D");
  TORCH_CHECK(vec.dim() == 1, "addmv: Expected vec to be 1-D");
  const bool alike = vec.scalar_type() == mat.scalar_type() && self.scalar_type() == mat.scalar_type();
  std::optional<Tensor> found;
  if (alike) found = product(self.expand({mat.size(0)}).unsqueeze(1), mat, vec.unsqueeze(1), beta, alpha);
  return found.has_value() ? put(found->squeeze(1), out)
                           : on_cpu<at::_ops::addmv_out>(self, mat, vec, beta, alpha, out);
}

Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, c10::IntArrayRef, const Tensor&, const Tensor&,
                           const Scalar&, const Scalar&);
  static const auto engine = engine_operator<Signature>("torch_dml::sampled_addmm");
  TORCH_CHECK(is(mat1, kStrided), "sampled_addmm: Expected mat1 to have strided layout, but got ", mat1.layout());
  TORCH_CHECK(is(mat2, kStrided), "sampled_addmm: Expected mat2 to have strided layout, but got ", mat2.layout());
  TORCH_CHECK(self.dense_dim() == 0, "sampled_addmm: Expected non-hybrid self tensor");
  Tensor values;
  if (is(self, kSparseCsr)) {
    values = engine.call(self.crow_indices(), self.col_indices(), self.values(), self.sizes(), mat1, mat2, beta, alpha);
  }
  if (!values.defined()) return on_cpu<at::_ops::sparse_sampled_addmm>(self, mat1, mat2, beta, alpha);
  return with_values(self, values);
}

Tensor& sampled_addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                          const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(is(out, kSparseCsr), "sampled_addmm: Expected result to have sparse csr layout, but got ", out.layout());
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "sampled_addmm: Expected result and self to have the same dtype, ", "but got ", out.scalar_type(),
              " and ", self.scalar_type());
  return put(sampled_addmm(self, mat1, mat2, beta, alpha), out);
}

std::tuple<Tensor, Tensor> mm_reduce(const Tensor& self, const Tensor& other, c10::string_view reduce) {
  using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, c10::IntArrayRef,
                                               const Tensor&, c10::string_view);
  static const auto engine = engine_operator<Signature>("torch_dml::sparse_mm_reduce");
  TORCH_CHECK(is(self, kSparseCsr), "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  TORCH_CHECK(self.dense_dim() == 0, "sparse_mm_reduce: expected non-hybrid self tensor.");
  return engine.call(self.crow_indices(), self.col_indices(), self.values(), self.sizes(), other, reduce);
}

std::tuple<Tensor, Tensor> mm_reduce_backward(const Tensor& self, const Tensor& grad_out, const Tensor& weight,
                                              c10::string_view reduce, const Tensor& places, std::array<bool, 2> mask) {
  using Signature =
      std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, c10::IntArrayRef, const Tensor&,
                                 const Tensor&, c10::string_view, const Tensor&, std::array<bool, 2>);
  static const auto engine = engine_operator<Signature>("torch_dml::sparse_mm_reduce_backward");
  const auto [values, grad_other] = engine.call(self.crow_indices(), self.col_indices(), self.values(), self.sizes(),
                                                grad_out, weight, reduce, places, mask);
  return {values.defined() ? with_values(self, values) : values, grad_other};
}

}  // namespace

void register_compressed(torch::Library& compressed) {
  compressed.impl("aten::_sparse_mm_reduce_impl", TORCH_FN(mm_reduce));
  compressed.impl("aten::_sparse_mm_reduce_impl_backward", TORCH_FN(mm_reduce_backward));
  compressed.impl("aten::add.out", TORCH_FN(add_out));
  compressed.impl("aten::addmm", TORCH_FN(addmm));
  compressed.impl("aten::addmm.out", TORCH_FN(addmm_out));
  compressed.impl("aten::addmv.out", TORCH_FN(addmv_out));
  compressed.impl("aten::sparse_sampled_addmm", TORCH_FN(sampled_addmm));
  compressed.impl("aten::sparse_sampled_addmm.out", TORCH_FN(sampled_addmm_out));
}

}  // namespace dml
