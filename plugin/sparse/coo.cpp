// Operators of COO tensors, which the engine computes from indices and values.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/ops/_sparse_broadcast_to.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>
#include <vector>

#include "core/engine_operator.h"
#include "sparse/sparse.h"

namespace dml {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using c10::Scalar;

IntArrayRef sparse_sizes(const Tensor& sparse) {
  return sparse.sizes().slice(0, static_cast<size_t>(sparse.sparse_dim()));
}

// The sizes of the values of this number of entries.
std::vector<int64_t> values_sizes(const Tensor& sparse, int64_t entries) {
  std::vector<int64_t> sizes{entries};
  const IntArrayRef dense = sparse.sizes().slice(static_cast<size_t>(sparse.sparse_dim()));
  sizes.insert(sizes.end(), dense.begin(), dense.end());
  return sizes;
}

Tensor like(const Tensor& sparse, const Tensor& indices, const Tensor& values, bool coalesced) {
  return at::_sparse_coo_tensor_unsafe(indices, values, sparse.sizes(), values.options().layout(c10::kSparse),
                                       coalesced);
}

Tensor& write(Tensor& out, const Tensor& found, c10::ScalarType common, const char* where) {
  TORCH_CHECK(c10::canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ",
              out.scalar_type(), where);
  return put(found, out);
}

Tensor coalesce(const Tensor& self) {
  if (self._nnz() < 2) return self.clone()._coalesced_(true);
  using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, IntArrayRef);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_coalesce");
  const auto [indices, values] = engine.call(self._indices(), self._values(), sparse_sizes(self));
  return like(self, indices, values, /*coalesced=*/true);
}

// `out` may be `dense`. In that case only the rows at the indices of `sparse` are accessed.
Tensor& add_to_dense(const Tensor& dense, const Tensor& sparse, const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(dense.sizes().equals(sparse.sizes()),
              "add: expected 'self' and 'other' to have same size, but self has size ", dense.sizes(),
              " while other has size ", sparse.sizes(),
              " (FYI: dense-sparse addition does not currently support broadcasting)");
  const c10::ScalarType common = c10::promoteTypes(dense.scalar_type(), sparse.scalar_type());
  TORCH_CHECK(c10::canCast(common, out.scalar_type()), "Can't convert result type ", common, " to output ",
              out.scalar_type(), " in add operation");
  if (!out.is_same(dense)) out.resize_(dense.sizes());
  const bool direct = out.scalar_type() == common && out.is_contiguous();
  Tensor sum = direct ? out : at::empty(dense.sizes(), dense.options().dtype(common));
  if (!sum.is_same(dense)) sum.copy_(dense);
  if (sparse._nnz() > 0 && sum.numel() > 0) {
    using Signature = Tensor&(Tensor&, const Tensor&, const Tensor&, IntArrayRef, const Scalar&);
    static const auto engine = engine_operator<Signature>("torch_dml::coo_add_");
    const IntArrayRef sizes = sparse_sizes(sparse);
    Tensor rows = sum.view(values_sizes(sparse, c10::multiply_integers(sizes)));
    engine.call(rows, sparse._indices(), sparse._values().to(common), sizes, alpha);
  }
  return direct ? out : put(sum, out);
}

constexpr const char* kInAdd = " in add operation";

Tensor& add_out(const Tensor& self, const Tensor& other, const Scalar& alpha, Tensor& out) {
  if (!self.is_sparse()) return add_to_dense(self, other, alpha, out);
  TORCH_CHECK(other.is_sparse(), "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  TORCH_CHECK(self.sizes().equals(other.sizes()), "add: expected sizes of 'self' and 'other' to match, but ",
              self.sizes(), " != ", other.sizes());
  const c10::ScalarType common = c10::promoteTypes(self.scalar_type(), other.scalar_type());
  const Tensor scaled = alpha.equal(1) ? other._values().to(common) : at::mul(other._values().to(common), alpha);
  const bool coalesced = self.is_coalesced() && other.is_coalesced();
  if (other._nnz() == 0) return write(out, self, common, kInAdd);
  if (self._nnz() == 0) return write(out, like(other, other._indices(), scaled, other.is_coalesced()), common, kInAdd);
  TORCH_CHECK(self.sparse_dim() == other.sparse_dim() && self.dense_dim() == other.dense_dim(),
              "add: expected 'self' and 'other' to have same density, but 'self' has ", self.sparse_dim(),
              " sparse dimensions while 'other' has ", other.sparse_dim(), " sparse dimensions");
  TORCH_CHECK_NOT_IMPLEMENTED(common != c10::ScalarType::Bool, "\"cadd_sparse\" not implemented for 'Bool'");
  const Tensor sum = like(self, at::cat({self._indices(), other._indices()}, 1),
                          at::cat({self._values().to(common), scaled}, 0), /*coalesced=*/false);
  return write(out, coalesced ? sum.coalesce() : sum, common, kInAdd);
}

// The values of a coalesced tensor at the wanted positions, zeros where it has none.
Tensor values_at(const Tensor& coalesced, const Tensor& wanted) {
  using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, IntArrayRef);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_at");
  return engine.call(coalesced._indices(), coalesced._values(), wanted, sparse_sizes(coalesced));
}

Tensor multiply_sparse(const Tensor& self, const Tensor& other) {
  const bool alike = self.dim() == other.dim() && self.sparse_dim() == other.sparse_dim() &&
                     sparse_sizes(self).equals(sparse_sizes(other));
  TORCH_CHECK(alike,
              "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse "
              "dimensions, and shape of sparse dimensions");
  using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, const Tensor&, IntArrayRef);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_mul");
  const Tensor a = self.coalesce(), b = other.coalesce();
  const auto [indices, values] = engine.call(a._indices(), a._values(), b._indices(), b._values(), sparse_sizes(self));
  return at::_sparse_coo_tensor_unsafe(indices, values, at::infer_size(self.sizes(), other.sizes()),
                                       values.options().layout(c10::kSparse), true);
}

Tensor multiply_dense(const Tensor& sparse, const Tensor& dense) {
  if (dense.dim() == 0) {
    return like(sparse, sparse._indices().clone(), at::mul(sparse._values(), dense), sparse.is_coalesced());
  }
  const std::vector<int64_t> sizes = at::infer_size(dense.sizes(), sparse.sizes());
  const Tensor wide = sparse.sizes().equals(sizes) ? sparse : at::_sparse_broadcast_to(sparse, sizes);
  using Signature = Tensor(const Tensor&, const Tensor&);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_elements");
  const Tensor all = dense.expand(sizes), indices = wide._indices();
  const Tensor elements = wide.sparse_dim() == 0 ? all.unsqueeze(0) : engine.call(indices, all);
  return like(wide, indices.clone(), at::mul(wide._values(), elements), wide.is_coalesced());
}

// The value of a tensor without dimensions.
Tensor number_of(const Tensor& sparse) { return sparse._values().sum().to(sparse.scalar_type()); }

Tensor& mul_out(const Tensor& self, const Tensor& other, Tensor& out) {
  const c10::ScalarType common = at::result_type(self, other);
  Tensor product;
  if (!other.is_sparse()) {
    product = multiply_dense(self, other);
  } else if (!self.is_sparse()) {
    product = multiply_dense(other, self);
  } else if (other.dim() == 0) {
    product = multiply_dense(self, number_of(other));
  } else if (self.dim() == 0) {
    product = multiply_dense(other, number_of(self));
  } else {
    product = multiply_sparse(self, other);
  }
  return write(out, product, common, "");
}

void check_mask(const Tensor& self, const Tensor& mask, const char* name) {
  TORCH_CHECK(self.sizes().equals(mask.sizes()), name, "(): operands have incompatible sizes; self has size ",
              self.sizes(), " but mask has size ", mask.sizes());
}

// The elements of `self` where `mask` has entries.
Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  check_mask(self, mask, "sparse_mask");
  if (self.is_same(mask)) return self;
  const Tensor indices = mask._indices().clone();
  if (!self.is_sparse()) {
    const Tensor ones = at::ones({}, self.options()).expand(mask._values().sizes());
    return multiply_dense(like(mask, indices, ones, mask.is_coalesced()), self);
  }
  return like(mask, indices, values_at(self.coalesce(), indices), mask.is_coalesced());
}

// The entries of `self`, with zeros where `mask` has no entry; with `accumulate_matches`,
// multiplied by the number of entries that `mask` has there.
Tensor mask_projection(const Tensor& self, const Tensor& mask, bool accumulate_matches) {
  check_mask(self, mask, "_sparse_mask_projection");
  using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, IntArrayRef, bool);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_project");
  const Tensor values = engine.call(self._indices(), self._values(), mask._indices(), sparse_sizes(mask),
                                    accumulate_matches && !mask.is_coalesced());
  return like(self, self._indices().clone(), values, self.is_coalesced());
}

Tensor addmm_of_sizes(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta,
                      const Scalar& alpha) {
  using Signature =
      Tensor(const Tensor&, const Tensor&, const Tensor&, IntArrayRef, const Tensor&, const Scalar&, const Scalar&);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_addmm");
  TORCH_CHECK(self.layout() == c10::kStrided,
              "addmm_sparse_dense: expected 't' to have strided layout, got tensor with ", "layout ", self.layout());
  TORCH_CHECK(
      sparse.is_sparse() && dense.layout() == c10::kStrided,
      "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got ",
      "'mat1' with layout ", sparse.layout(), " and 'mat2' with layout ", dense.layout());
  const Tensor from = sparse.coalesce();
  return engine.call(self, from._indices(), from._values(), from.sizes(), dense, beta, alpha);
}

Tensor dense_addmm(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta,
                   const Scalar& alpha) {
  return addmm_of_sizes(self.expand({sparse.size(0), dense.size(1)}), sparse, dense, beta, alpha);
}

Tensor& addmm_out(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta,
                  const Scalar& alpha, Tensor& out) {
  TORCH_CHECK(out.layout() == c10::kStrided, "addmm_sparse_dense: expected strided result tensor, got tensor with ",
              "layout ", out.layout());
  return put(dense_addmm(self, sparse, dense, beta, alpha), out);
}

Tensor& addmm_(Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta, const Scalar& alpha) {
  return put(addmm_of_sizes(self, sparse, dense, beta, alpha), self);
}

Tensor dense_bmm(const Tensor& self, const Tensor& dense) {
  using Signature = Tensor(const Tensor&, const Tensor&, IntArrayRef, const Tensor&);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_bmm");
  TORCH_CHECK(dense.layout() == c10::kStrided, "bmm_sparse: Tensor 'mat2' must be dense");
  const Tensor from = self.coalesce();
  return engine.call(from._indices(), from._values(), from.sizes(), dense);
}

Tensor& bmm_out(const Tensor& self, const Tensor& dense, Tensor& out) { return put(dense_bmm(self, dense), out); }

// The slices of `self` along a dimension that `index` names.
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  TORCH_CHECK_INDEX(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK_INDEX(index.dim() == 1 && index.scalar_type() == c10::ScalarType::Long && index.layout() == c10::kStrided,
                    "index_select() argument index must be 1-D strided (non-sparse) long-tensor.");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, IntArrayRef, int64_t, const Tensor&);
  static const auto engine = engine_operator<Signature>("torch_dml::coo_index_select");
  const auto [indices, values] = engine.call(self._indices(), self._values(), self.sizes(), dim, index);
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[static_cast<size_t>(dim)] = index.size(0);
  return at::_sparse_coo_tensor_unsafe(indices, values, sizes, values.options().layout(c10::kSparse));
}

// Each entry of `self` gets the element of `grad` to whose sum it contributed.
Tensor sum_backward(const Tensor& grad, const Tensor& self, IntArrayRef dims) {
  const Tensor from = self.coalesce(), indices = from._indices(), values = from._values();
  const int64_t sparse_dim = self.sparse_dim();
  const auto summed = at::dim_list_to_bitset(dims, static_cast<size_t>(self.dim()));
  std::vector<Tensor> kept_indices;
  for (int64_t d = 0; d < sparse_dim; ++d) {
    if (!summed[static_cast<size_t>(d)]) kept_indices.push_back(indices.select(0, d));
  }
  Tensor elements = grad.unsqueeze(0);
  if (!kept_indices.empty()) {
    TORCH_CHECK(grad.is_sparse(), "_sparse_sum_backward_cpu: expected grad_ Tensor to be sparse, but got dense");
    const Tensor there = grad.coalesce();
    if (there._nnz() == 0 || from._nnz() == 0) return like(self, indices.clone(), at::zeros_like(values), true);
    elements = values_at(there, at::stack(kept_indices));
  }
  for (int64_t d = sparse_dim; d < self.dim(); ++d) {
    if (summed[static_cast<size_t>(d)]) elements = elements.unsqueeze(d - sparse_dim + 1);
  }
  return like(self, indices.clone(), elements.expand(values.sizes()).clone(), true);
}

}  // namespace

void register_coo(torch::Library& coo) {
  coo.impl("aten::_coalesce", TORCH_FN(coalesce));
  coo.impl("aten::_sparse_mask_projection", TORCH_FN(mask_projection));
  coo.impl("aten::_sparse_sum_backward", TORCH_FN(sum_backward));
  coo.impl("aten::add.out", TORCH_FN(add_out));
  coo.impl("aten::addmm", TORCH_FN(dense_addmm));
  coo.impl("aten::addmm.out", TORCH_FN(addmm_out));
  coo.impl("aten::addmm_", TORCH_FN(addmm_));
  coo.impl("aten::bmm", TORCH_FN(dense_bmm));
  coo.impl("aten::bmm.out", TORCH_FN(bmm_out));
  coo.impl("aten::index_select", TORCH_FN(index_select));
  coo.impl("aten::mul.out", TORCH_FN(mul_out));
  coo.impl("aten::sparse_mask", TORCH_FN(sparse_mask));
}

}  // namespace dml
