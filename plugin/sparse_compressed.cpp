// Operators of compressed tensors (CSR, CSC, BSR, BSC), composed of dense ones on offsets, indices
// and values.
#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_convert_indices_from_csr_to_coo.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/add.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sparse_sampled_addmm_ops.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "fallback.h"
#include "sparse.h"

namespace dml {
namespace {

using at::Tensor;
using c10::kSparseBsr;
using c10::kSparseCsc;
using c10::kSparseCsr;
using c10::kStrided;
using c10::Scalar;

void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fallback(op, stack, c10::DispatchKey::SparseCsrCPU);
}

template <class Op, class... Arguments>
decltype(auto) on_cpu(Arguments&&... arguments) {
  return at::native::call_fallback_fn<&boxed, Op>::call(std::forward<Arguments>(arguments)...);
}

bool is(const Tensor& t, c10::Layout layout) { return t.layout() == layout; }

// Of one matrix, not of a batch.
bool is_matrix(const Tensor& t, c10::Layout layout) { return is(t, layout) && t.dim() == 2 && t.dense_dim() == 0; }

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

// The product of each block with the rows of `dense` that it meets, added up block row by block
// row.
Tensor blocks_mm(const Tensor& self, const Tensor& blocks, const Tensor& dense, const Scalar& beta,
                 const Scalar& alpha) {
  const Tensor values = blocks.values(), indices = blocks.col_indices();
  const int64_t height = values.size(1), width = values.size(2), n = dense.size(1);
  const Tensor met = dense.reshape({dense.size(0) / width, width * n}).index_select(0, indices);
  const Tensor products = at::bmm(values, met.view({-1, width, n})).reshape({-1, height * n});
  const Tensor places = at::arange(indices.size(0), indices.options());
  const Tensor sums = compressed_mm(blocks.crow_indices(), places, std::nullopt, products, std::nullopt, 0, alpha);
  const Tensor product = sums.reshape({blocks.size(0), n});
  return beta.equal(0) ? product : at::add(product, self, beta);
}

// `self` is expanded already.
Tensor addmm_of_sizes(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta,
                      const Scalar& alpha) {
  if (is(sparse, kSparseBsr)) return blocks_mm(self, sparse, dense, beta, alpha);
  const Tensor rows = is(sparse, kSparseCsr) ? sparse : sparse.to_sparse_csr();
  return compressed_mm(rows.crow_indices(), rows.col_indices(), rows.values(), dense, self, beta, alpha);
}

bool is_native(const Tensor& sparse) {
  if (is_matrix(sparse, kSparseBsr)) return sparse.scalar_type() != c10::ScalarType::Bool && sparse._nnz() > 0;
  return is_matrix(sparse, kSparseCsr) || is_matrix(sparse, kSparseCsc);
}

// The product of a compressed and a strided matrix, or the other way round; none where that is the
// CPU's to compute.
std::optional<Tensor> product(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                              const Scalar& alpha) {
  const bool left = is_native(mat1) && is(mat2, kStrided);
  const bool right = is_native(mat2) && !is(mat2, kSparseBsr) && is(mat1, kStrided);
  if ((!left && !right) || !is(self, kStrided) || mat1.dim() != 2 || mat2.dim() != 2) return std::nullopt;
  TORCH_CHECK(mat1.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x",
              mat1.size(1), " and ", mat2.size(0), "x", mat2.size(1), ")");
  const Tensor &sparse = left ? mat1 : mat2, &dense = left ? mat2 : mat1;
  for (const Tensor& t : {self, dense}) {
    TORCH_CHECK(t.device() == sparse.device(), "Expected all tensors to be on the same device, but found at least two ",
                "devices, ", sparse.device(), " and ", t.device(), "! (in aten::addmm)");
    TORCH_CHECK(t.scalar_type() == sparse.scalar_type(), "expected scalar type ", t.scalar_type(), " but found ",
                sparse.scalar_type());
  }
  const Tensor addend = self.expand({mat1.size(0), mat2.size(1)});
  if (left) return addmm_of_sizes(addend, mat1, mat2, beta, alpha);
  return addmm_of_sizes(addend.t(), mat2.transpose(0, 1), mat1.t(), beta, alpha).t();
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
  if (!is_native(mat) || vec.scalar_type() != mat.scalar_type() || self.scalar_type() != mat.scalar_type()) {
    return on_cpu<at::_ops::addmv_out>(self, mat, vec, beta, alpha, out);
  }
  const Tensor addend = self.expand({mat.size(0)}).unsqueeze(1);
  return put(addmm_of_sizes(addend, mat, vec.unsqueeze(1), beta, alpha).squeeze(1), out);
}

void check_sampled(const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  TORCH_CHECK(is(mat1, kStrided), "sampled_addmm: Expected mat1 to have strided layout, but got ", mat1.layout());
  TORCH_CHECK(is(mat2, kStrided), "sampled_addmm: Expected mat2 to have strided layout, but got ", mat2.layout());
  TORCH_CHECK(self.dense_dim() == 0, "sampled_addmm: Expected non-hybrid self tensor");
  TORCH_CHECK(mat1.scalar_type() == mat2.scalar_type(),
              "sampled_addmm: Expected mat1 and mat2 to have the same dtype, ", "but got ", mat1.scalar_type(), " and ",
              mat2.scalar_type());
  TORCH_CHECK(mat1.scalar_type() == self.scalar_type(),
              "sampled_addmm: Expected mat1 and self to have the same dtype, ", "but got ", mat1.scalar_type(), " and ",
              self.scalar_type());
  TORCH_CHECK(mat1.dim() >= 2, "sampled_addmm: Expected mat1 to be a matrix, got ", mat1.dim(), "-D tensor");
  TORCH_CHECK(mat2.dim() >= 2, "sampled_addmm: Expected mat2 to be a matrix, got ", mat2.dim(), "-D tensor");
  TORCH_CHECK(mat1.size(-1) == mat2.size(-2), "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (",
              mat1.size(-2), "x", mat1.size(-1), " and ", mat2.size(-2), "x", mat2.size(-1), ")");
  TORCH_CHECK(self.size(-2) == mat1.size(-2), "sampled_addmm: self.shape[-2] must match mat1.shape[-2]");
  TORCH_CHECK(self.size(-1) == mat2.size(-1), "sampled_addmm: self.shape[-1] must match mat2.shape[-1]");
}

// The row and the column of each entry.
std::pair<Tensor, Tensor> coordinates(const Tensor& self) {
  const Tensor columns = self.col_indices();
  const bool narrow = columns.scalar_type() == c10::ScalarType::Int;
  return {at::_convert_indices_from_csr_to_coo(self.crow_indices(), columns, narrow).select(0, 0), columns};
}

// The engine's: of real numbers.
Tensor sampled_mm_of_reals(const Tensor& rows, const Tensor& columns, const Tensor& a, const Tensor& b) {
  using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
  static const auto engine =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::sampled_mm", "").typed<Signature>();
  return engine.call(rows, columns, a, b);
}

// A row of complex numbers is one of reals, (re, im) after (re, im). The sums of its products with
// (re, -im) are the real parts of the complex ones, those with (im, re) the imaginary parts.
Tensor sampled_mm(const Tensor& rows, const Tensor& columns, const Tensor& a, const Tensor& b) {
  if (!a.is_complex()) return sampled_mm_of_reals(rows, columns, a, b);
  const auto reals = [](const Tensor& t) { return at::view_as_real(t.resolve_conj().contiguous()).flatten(1); };
  const Tensor left = reals(a), conjugate = b.conj();
  const Tensor swapped = at::mul(conjugate, Scalar(c10::complex<double>(0, 1)));
  return at::complex(sampled_mm_of_reals(rows, columns, left, reals(conjugate)),
                     sampled_mm_of_reals(rows, columns, left, reals(swapped)));
}

Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  const bool floats = self.is_floating_point() || self.is_complex();
  TORCH_CHECK(floats, "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got ",
              self.scalar_type());
  check_sampled(self, mat1, mat2);
  if (!is(self, kSparseCsr) || self.dim() != 2 || mat1.dim() != 2 || mat2.dim() != 2) {
    return on_cpu<at::_ops::sparse_sampled_addmm>(self, mat1, mat2, beta, alpha);
  }
  const auto [rows, columns] = coordinates(self);
  Tensor values = sampled_mm(rows, columns, mat1, mat2.t());
  if (!alpha.equal(1)) values = at::mul(values, alpha);
  if (!beta.equal(0)) values = at::add(values, self.values(), beta);
  return at::_sparse_compressed_tensor_unsafe(self.crow_indices().clone(), columns.clone(), values, self.sizes(),
                                              values.options().layout(kSparseCsr));
}

Tensor& sampled_addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                          const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(is(out, kSparseCsr), "sampled_addmm: Expected result to have sparse csr layout, but got ", out.layout());
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "sampled_addmm: Expected result and self to have the same dtype, ", "but got ", out.scalar_type(),
              " and ", self.scalar_type());
  return put(sampled_addmm(self, mat1, mat2, beta, alpha), out);
}

bool is_extremum(std::string_view reduce) { return reduce == "amax" || reduce == "amin"; }

// How many entries each row has, at least one, as a column.
Tensor row_lengths(const Tensor& self) {
  return self.crow_indices().diff().clamp_min(1).unsqueeze(1).to(self.scalar_type());
}

void check_reduce(const Tensor& self, const Tensor& other, std::string_view reduce) {
  TORCH_CHECK(is(self, kSparseCsr), "sparse_mm_reduce: expect self to be SparseCsr, got ", self.layout());
  TORCH_CHECK(self.dense_dim() == 0, "sparse_mm_reduce: expected non-hybrid self tensor.");
  TORCH_CHECK(self.dim() == 2, "sparse_mm_reduce: expected self to be a 2-D tensor, got ", self.dim(), "D tensor");
  TORCH_CHECK(other.dim() == 2 && other.size(0) == self.size(1), "Expected a tensor of dimension 2 and tensor.size[0] ",
              "== ", self.size(1), " but got: dimension ", other.dim(), " and tensor.size[0] = ", other.size(0));
  TORCH_CHECK(other.scalar_type() == self.scalar_type(), "Expected tensor for argument #1 'other' to have scalar type ",
              self.scalar_type(), "; but got torch.", c10::toString(other.scalar_type()),
              "Tensor instead (while checking arguments for sparse_mm_reduce)");
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"spmm_reduce_kernel\" not implemented for '",
                              self.scalar_type(), "'");
  TORCH_CHECK(reduce != "prod", "sparse_mm_reduce: reduce type of prod has not been enabled.");
  TORCH_CHECK(reduce == "sum" || reduce == "mean" || is_extremum(reduce),
              "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
}

std::tuple<Tensor, Tensor> mm_reduce(const Tensor& self, const Tensor& other, std::string_view reduce) {
  check_reduce(self, other, reduce);
  const Tensor offsets = self.crow_indices(), columns = self.col_indices(), values = self.values();
  if (is_extremum(reduce)) {
    using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool);
    static const auto engine =
        c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::compressed_extremum", "").typed<Signature>();
    return engine.call(offsets, columns, values, other, reduce == "amax");
  }
  const Tensor sum = compressed_mm(offsets, columns, values, other);
  return {reduce == "sum" ? sum : at::div(sum, row_lengths(self)), at::empty({0}, offsets.options())};
}

// Of an extremum, the gradient goes to the product that it is.
std::tuple<Tensor, Tensor> extremum_backward(const Tensor& self, const Tensor& grad, const Tensor& other,
                                             const Tensor& places) {
  const Tensor values = self.values();
  // Rows without entries give theirs to one more entry, which is dropped.
  const auto one_more = [](const Tensor& t) { return at::cat({t, t.new_zeros({1})}); };
  const Tensor rows =
      one_more(self.col_indices().to(c10::ScalarType::Long)).index_select(0, places.flatten()).view_as(places);
  const Tensor weights = one_more(values).index_select(0, places.flatten()).view_as(places);
  const Tensor by_values = at::mul(grad, other.gather(0, rows)).flatten();
  Tensor grad_values = values.new_zeros({values.size(0) + 1}).index_add_(0, places.flatten(), by_values);
  const Tensor grad_other = at::zeros_like(other).scatter_add_(0, rows, at::mul(grad, weights));
  return {grad_values.narrow(0, 0, values.size(0)), grad_other};
}

std::tuple<Tensor, Tensor> mm_reduce_backward(const Tensor& self, const Tensor& grad_out, const Tensor& weight,
                                              std::string_view reduce, const Tensor& places, std::array<bool, 2> mask) {
  const Tensor grad = reduce == "mean" ? at::div(grad_out, row_lengths(self)) : grad_out;
  Tensor grad_values, grad_other;
  if (is_extremum(reduce)) {
    std::tie(grad_values, grad_other) = extremum_backward(self, grad, weight, places);
  } else {
    const auto [rows, columns] = coordinates(self);
    if (mask[0]) grad_values = sampled_mm(rows, columns, grad, weight);
    if (mask[1]) grad_other = at::mm(self.transpose(0, 1), grad);
  }
  Tensor grad_self;
  if (mask[0]) {
    grad_self = at::_sparse_compressed_tensor_unsafe(self.crow_indices().clone(), self.col_indices().clone(),
                                                     grad_values, self.sizes(), self.options());
  }
  return {grad_self, mask[1] ? grad_other : Tensor()};
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
