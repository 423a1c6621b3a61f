// Operators of COO tensors, composed of dense ones on indices and values.
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr.h>
#include <ATen/ops/_sparse_broadcast_to.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "sparse.h"

namespace dml {
namespace {

using at::Tensor;
using c10::IntArrayRef;
using c10::Scalar;

IntArrayRef sparse_sizes(const Tensor& sparse) {
  return sparse.sizes().slice(0, static_cast<size_t>(sparse.sparse_dim()));
}

// The sizes of the values of so many entries.
std::vector<int64_t> values_sizes(const Tensor& sparse, int64_t entries) {
  std::vector<int64_t> sizes{entries};
  const IntArrayRef dense = sparse.sizes().slice(static_cast<size_t>(sparse.sparse_dim()));
  sizes.insert(sizes.end(), dense.begin(), dense.end());
  return sizes;
}

Tensor places(const Tensor& sparse) { return flatten_indices(sparse._indices(), sparse_sizes(sparse)); }

// The inverse of flatten_indices.
Tensor unflatten_indices(const Tensor& flat, IntArrayRef sizes) {
  Tensor indices = at::empty({static_cast<int64_t>(sizes.size()), flat.size(0)}, flat.options());
  Tensor rest = flat;
  for (size_t d = sizes.size(); d-- > 0;) {
    Tensor row = indices.select(0, static_cast<int64_t>(d));
    if (d == 0) {
      row.copy_(rest);
    } else {
      at::remainder_out(row, rest, sizes[d]);
      rest = at::div(rest, sizes[d], "trunc");
    }
  }
  return indices;
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
  const auto [keys, inverse, counts] = at::_unique2(places(self), /*sorted=*/true, /*return_inverse=*/true);
  const Tensor values = self._values();
  Tensor sums = at::zeros(values_sizes(self, keys.size(0)), values.options());
  sums.index_add_(0, inverse, values);
  return like(self, unflatten_indices(keys, sparse_sizes(self)), sums, /*coalesced=*/true);
}

// `out` may be `dense`. Nothing but the rows of `sparse` is touched then.
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
    const IntArrayRef sizes = sparse_sizes(sparse);
    Tensor rows = sum.view(values_sizes(sparse, c10::multiply_integers(sizes)));
    rows.index_add_(0, places(sparse), sparse._values().to(common), alpha);
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

// For each of `keys` where it is in `sorted`, or some place, and whether it is there.
std::pair<Tensor, Tensor> find(const Tensor& sorted, const Tensor& keys) {
  const Tensor at = at::searchsorted(sorted, keys).clamp_max(sorted.size(0) - 1);
  return {at, sorted.index_select(0, at).eq(keys)};
}

Tensor multiply_sparse(const Tensor& self, const Tensor& other) {
  const bool alike = self.dim() == other.dim() && self.sparse_dim() == other.sparse_dim() &&
                     sparse_sizes(self).equals(sparse_sizes(other));
  TORCH_CHECK(alike,
              "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse "
              "dimensions, and shape of sparse dimensions");
  const Tensor a = self.coalesce(), b = other.coalesce();
  Tensor indices = a._indices(), left = a._values(), right = b._values();
  if (a._nnz() == 0 || b._nnz() == 0) {
    indices = indices.narrow(1, 0, 0);
    left = left.narrow(0, 0, 0);
    right = right.narrow(0, 0, 0);
  } else {
    const auto [at, found] = find(places(b), places(a));
    const Tensor common = found.nonzero().squeeze(1);
    indices = indices.index_select(1, common);
    left = left.index_select(0, common);
    right = right.index_select(0, at.index_select(0, common));
  }
  const Tensor values = at::mul(left, right);
  return at::_sparse_coo_tensor_unsafe(indices, values, at::infer_size(self.sizes(), other.sizes()),
                                       values.options().layout(c10::kSparse), true);
}

Tensor multiply_dense(const Tensor& sparse, const Tensor& dense) {
  if (dense.dim() == 0) {
    return like(sparse, sparse._indices().clone(), at::mul(sparse._values(), dense), sparse.is_coalesced());
  }
  const std::vector<int64_t> sizes = at::infer_size(dense.sizes(), sparse.sizes());
  const Tensor wide = sparse.sizes().equals(sizes) ? sparse : at::_sparse_broadcast_to(sparse, sizes);
  const Tensor indices = wide._indices();
  c10::List<std::optional<Tensor>> at;
  for (int64_t d = 0; d < wide.sparse_dim(); ++d) at.push_back(indices.select(0, d));
  const Tensor all = dense.expand(sizes);
  const Tensor chosen = at.empty() ? all.unsqueeze(0) : all.index(at);
  return like(wide, indices.clone(), at::mul(wide._values(), chosen), wide.is_coalesced());
}

// Of a tensor without dimensions.
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

// The values of entries that were found, and zeros for the others.
Tensor kept(const Tensor& values, const Tensor& found) {
  std::vector<int64_t> sizes(static_cast<size_t>(values.dim()), 1);
  sizes[0] = found.size(0);
  return at::where(found.view(sizes), values, at::zeros({}, values.options()));
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
  const Tensor from = self.coalesce();
  if (from._nnz() == 0 || mask._nnz() == 0) {
    const Tensor zeros = at::zeros(mask._values().sizes(), self._values().options());
    return like(mask, indices, zeros, mask.is_coalesced());
  }
  const auto [at, found] = find(places(from), places(mask));
  return like(mask, indices, kept(from._values().index_select(0, at), found), mask.is_coalesced());
}

// The entries of `self`, zeros where `mask` has none; times how many `mask` has, if these are to be
// accumulated.
Tensor mask_projection(const Tensor& self, const Tensor& mask, bool accumulate_matches) {
  check_mask(self, mask, "_sparse_mask_projection");
  Tensor values = self._values();
  if (self._nnz() == 0 || mask._nnz() == 0) {
    values = at::zeros(values.sizes(), values.options());
  } else {
    const auto [keys, inverse, counts] = at::_unique2(places(mask), /*sorted=*/true, /*return_inverse=*/false,
                                                      /*return_counts=*/true);
    const auto [at, found] = find(keys, places(self));
    values = kept(values, found);
    if (accumulate_matches && !mask.is_coalesced()) {
      std::vector<int64_t> sizes(static_cast<size_t>(values.dim()), 1);
      sizes[0] = at.size(0);
      values = at::mul(values, counts.index_select(0, at).view(sizes).to(values.scalar_type()));
    }
  }
  return like(self, self._indices().clone(), values, self.is_coalesced());
}

void check_product(const Tensor& self, const Tensor& sparse, const Tensor& dense) {
  TORCH_CHECK(self.layout() == c10::kStrided,
              "addmm_sparse_dense: expected 't' to have strided layout, got tensor with ", "layout ", self.layout());
  TORCH_CHECK(
      sparse.is_sparse() && dense.layout() == c10::kStrided,
      "addmm_sparse_dense: expected either 'mat1' to have sparse layout and 'mat2' to have strided layout, got ",
      "'mat1' with layout ", sparse.layout(), " and 'mat2' with layout ", dense.layout());
  TORCH_CHECK(sparse.sparse_dim() == 2, "addmm: matrices expected, got ", sparse.sparse_dim(), "D tensor");
  TORCH_CHECK(sparse.dense_dim() == 0, "addmm: scalar values expected, got ", sparse.dense_dim(), "D values");
  TORCH_CHECK(dense.dim() == 2, "addmm: matrices expected, got ", dense.dim(), "D tensor");
  TORCH_CHECK(dense.size(0) == sparse.size(1), "addmm: Argument #3 (dense): Expected dim 0 size ", sparse.size(1),
              ", got ", dense.size(0));
  TORCH_CHECK(self.size(0) == sparse.size(0), "addmm: Argument #1 (t): Expected dim 0 size ", sparse.size(0), ", got ",
              self.size(0));
  TORCH_CHECK(self.size(1) == dense.size(1), "addmm: Argument #1 (t): Expected dim 1 size ", dense.size(1), ", got ",
              self.size(1));
  for (const Tensor& t : {self, dense}) {
    TORCH_CHECK(t.scalar_type() == sparse.scalar_type(), "expected scalar type ", sparse.scalar_type(), " but found ",
                t.scalar_type());
    TORCH_CHECK(t.device() == sparse.device(), "Expected all tensors to be on the same device, but found at least two ",
                "devices, ", sparse.device(), " and ", t.device(), "! (in aten::addmm)");
  }
}

Tensor addmm_of_sizes(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta,
                      const Scalar& alpha) {
  check_product(self, sparse, dense);
  const Tensor rows = sparse.coalesce(), indices = rows._indices();
  const Tensor offsets = at::_convert_indices_from_coo_to_csr(indices.select(0, 0), sparse.size(0));
  return compressed_mm(offsets, indices.select(0, 1), rows._values(), dense, self, beta, alpha);
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

// The matrices of a batch are one below the other.
Tensor dense_bmm(const Tensor& self, const Tensor& dense) {
  TORCH_CHECK(dense.layout() == c10::kStrided, "bmm_sparse: Tensor 'mat2' must be dense");
  TORCH_CHECK(self.dense_dim() == 0, "bmm_sparse: Tensor 'self' must have 0 dense dims, but has ", self.dense_dim());
  TORCH_CHECK(self.sparse_dim() == 3, "bmm_sparse: Tensor 'self' must have 3 sparse dims, but has ", self.sparse_dim());
  TORCH_CHECK(dense.dim() == 3, "bmm_sparse: Tensor 'mat2' must have 3 dims, but has ", dense.dim());
  TORCH_CHECK(self.size(0) == dense.size(0), "bmm_sparse: 'self.size(0)' and 'mat2.size(0)' must match");
  TORCH_CHECK(self.size(2) == dense.size(1), "bmm_sparse: 'self.size(2)' and 'mat2.size(1)' must match");
  TORCH_CHECK(self.scalar_type() == dense.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
              dense.scalar_type());
  const int64_t batches = self.size(0), rows = self.size(1), columns = self.size(2), width = dense.size(2);
  const Tensor entries = self.coalesce(), indices = entries._indices();
  const auto below = [&](int64_t d, int64_t size) { return at::add(indices.select(0, d), indices.select(0, 0), size); };
  const Tensor offsets = at::_convert_indices_from_coo_to_csr(below(1, rows), batches * rows);
  const Tensor all = dense.reshape({batches * columns, width});
  return compressed_mm(offsets, below(2, columns), entries._values(), all).view({batches, rows, width});
}

Tensor& bmm_out(const Tensor& self, const Tensor& dense, Tensor& out) { return put(dense_bmm(self, dense), out); }

// Rows, columns and so on of `self` in another order, or several times.
Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  TORCH_CHECK_INDEX(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK_INDEX(index.dim() == 1 && index.scalar_type() == c10::ScalarType::Long && index.layout() == c10::kStrided,
                    "index_select() argument index must be 1-D strided (non-sparse) long-tensor.");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.size(dim), count = index.size(0);
  if (count > 0) {
    const auto [least, most] = at::aminmax(index);
    for (const int64_t x : {least.item<int64_t>(), most.item<int64_t>()}) {
      TORCH_CHECK_INDEX(-size <= x && x < size, "index_select(): index contains ", x,
                        " that is out of range for tensor of size ", self.sizes(), " at dimension ", dim);
    }
  }
  const Tensor wanted = count == 0 ? index : at::remainder(index, size);
  Tensor indices = self._indices(), values = self._values();
  if (dim >= self.sparse_dim()) {
    values = values.index_select(dim - self.sparse_dim() + 1, wanted);
    indices = indices.clone();
  } else if (count == 0) {
    indices = indices.narrow(1, 0, 0).clone();
    values = values.narrow(0, 0, 0).clone();
  } else {
    // The entries in the order of the dimension, and where those of each place begin.
    const auto [sorted, order] = at::sort(indices.select(0, dim), /*stable=*/std::optional<bool>(true));
    const Tensor offsets = at::_convert_indices_from_coo_to_csr(sorted, size);
    const Tensor begin = offsets.index_select(0, wanted);
    const Tensor each = offsets.index_select(0, at::add(wanted, 1)).sub(begin);
    const Tensor row = at::arange(count, index.options()).repeat_interleave(each);
    const Tensor before = each.cumsum(0).sub(each);
    const Tensor within = at::arange(row.size(0), index.options()).sub(before.index_select(0, row));
    const Tensor entries = order.index_select(0, at::add(within, begin.index_select(0, row)));
    indices = indices.index_select(1, entries);
    indices.select(0, dim).copy_(row);
    values = values.index_select(0, entries);
  }
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[static_cast<size_t>(dim)] = count;
  return at::_sparse_coo_tensor_unsafe(indices, values, sizes, values.options().layout(c10::kSparse));
}

// Each entry of `self` gets the element of `grad` that it was added to.
Tensor sum_backward(const Tensor& grad, const Tensor& self, IntArrayRef dims) {
  const Tensor from = self.coalesce(), indices = from._indices(), values = from._values();
  const int64_t sparse_dim = self.sparse_dim();
  const auto summed = at::dim_list_to_bitset(dims, static_cast<size_t>(self.dim()));
  std::vector<int64_t> kept_sizes;
  std::vector<Tensor> kept_indices;
  for (int64_t d = 0; d < sparse_dim; ++d) {
    if (summed[static_cast<size_t>(d)]) continue;
    kept_sizes.push_back(self.size(d));
    kept_indices.push_back(indices.select(0, d));
  }
  Tensor elements = grad.unsqueeze(0);
  if (!kept_sizes.empty()) {
    TORCH_CHECK(grad.is_sparse(), "_sparse_sum_backward_cpu: expected grad_ Tensor to be sparse, but got dense");
    const Tensor there = grad.coalesce();
    if (there._nnz() == 0 || from._nnz() == 0) return like(self, indices.clone(), at::zeros_like(values), true);
    const auto [at, found] = find(places(there), flatten_indices(at::stack(kept_indices), kept_sizes));
    elements = kept(there._values().index_select(0, at), found);
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
