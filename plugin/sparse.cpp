// Sparse tensors. Most of PyTorch's functions for them are composed of operators on indices and
// values, and serve any device, but it registers them for its own devices alone. Those of the CPU's
// memory are ours to compose (sparse_coo.cpp, sparse_compressed.cpp), or fall back.
#include "sparse.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/ops/add.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/real.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include "backend.h"
#include "device.h"
#include "redirect.h"
#include "register.h"

namespace at::native {

// Its header is not among those that PyTorch installs.
using flatten_indices_fn = at::Tensor (*)(const at::Tensor&, c10::IntArrayRef);
DECLARE_DISPATCH(flatten_indices_fn, flatten_indices_stub)

}  // namespace at::native

namespace dml {
namespace {

using at::Tensor;
using c10::DispatchKey;

// Operators of COO tensors that are not the CPU's kernels: those that read memory there, for which
// native_functions.yaml names other kernels for other devices (tests/sparse/test_sparse_tensors.py
// compares), and a few more that have better ways here.
const Names kCooApart = {
    "aten::_coalesce",
    "aten::_pin_memory",
    "aten::_sparse_log_softmax",
    "aten::_sparse_log_softmax_backward_data",
    "aten::_sparse_mask_projection",
    "aten::_sparse_softmax",
    "aten::_sparse_softmax_backward_data",
    "aten::_sparse_sparse_matmul",
    "aten::_sparse_sum_backward",
    "aten::add.out",
    "aten::addmm",
    "aten::addmm.out",
    "aten::addmm_",
    "aten::bmm",
    "aten::bmm.out",
    "aten::hspmm",
    "aten::hspmm.out",
    "aten::index_select",
    "aten::is_pinned",
    "aten::mul.out",
    "aten::sparse_mask",
    "aten::sspaddmm.out",
};

// The same of compressed tensors.
const Names kCompressedApart = {
    "aten::_pin_memory",
    "aten::_sparse_csr_prod.dim_dtype",
    "aten::_sparse_csr_sum.dim_dtype",
    "aten::_sparse_mm_reduce_impl",
    "aten::_sparse_mm_reduce_impl_backward",
    "aten::add.out",
    "aten::addmm",
    "aten::addmm.out",
    "aten::addmv.out",
    "aten::is_pinned",
    "aten::sparse_sampled_addmm",
    "aten::sparse_sampled_addmm.out",
    "aten::triangular_solve.X",
};

// Operators of strided tensors that make sparse ones.
constexpr const char* kToSparse[] = {
    "aten::_to_sparse",     "aten::_to_sparse.sparse_dim", "aten::_to_sparse_csr",
    "aten::_to_sparse_csc", "aten::_to_sparse_bsr",        "aten::_to_sparse_bsc",
};

// The device of an operator's results: that of its argument `device`, or else of its first tensor
// of ours.
c10::DeviceIndex device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::optional<c10::Device> found;
  for (const at::IValue& value : torch::jit::last(stack, op.schema().arguments().size())) {
    if (value.isDevice() && is_ours(value.toDevice()) && value.toDevice().has_index()) return value.toDevice().index();
    const Tensor first = value.isTensor()                                     ? value.toTensor()
                         : value.isTensorList() && !value.toListRef().empty() ? value.toTensorVector()[0]
                                                                              : Tensor();
    if (!found.has_value() && first.defined() && is_ours(first.device())) found = first.device();
  }
  return found.has_value() ? found->index() : current_device();
}

// The CPU's kernels make sparse tensors on the current device, whatever device the operands are on.
template <DispatchKey Cpu>
void run_kernel_of(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const CurrentDevice scope(device_of(op, *stack));
  run_under<Cpu>(op, stack);
}

// The CPU fallback writes results of out= and of operators in place with it.
Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  Tensor out = dst;
  return put(self, out);
}

}  // namespace

Tensor flatten_indices(const Tensor& indices, c10::IntArrayRef sizes) {
  if (indices.size(0) == 0) return at::zeros({indices.size(1)}, indices.options());
  Tensor flat = indices.select(0, 0);
  for (int64_t d = 1; d < indices.size(0); ++d) {
    flat = at::add(indices.select(0, d), flat, sizes[static_cast<size_t>(d)]);
  }
  return flat;
}

Tensor compressed_mm(const Tensor& offsets, const Tensor& indices, const std::optional<Tensor>& values,
                     const Tensor& dense, const std::optional<Tensor>& addend, const c10::Scalar& beta,
                     const c10::Scalar& alpha) {
  using Signature = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, const Tensor&,
                           const std::optional<Tensor>&, const c10::Scalar&, const c10::Scalar&);
  static const auto engine =
      c10::Dispatcher::singleton().findSchemaOrThrow("torch_dml::compressed_mm", "").typed<Signature>();
  if (!dense.is_complex()) return engine.call(offsets, indices, values, dense, addend, beta, alpha);
  // A complex number is two columns, and i times it two others.
  const auto columns = [](const Tensor& t) { return at::view_as_real(t.resolve_conj().contiguous()).flatten(1); };
  Tensor sum;
  if (values.has_value()) {
    const Tensor factors = values->resolve_conj();
    sum = engine.call(offsets, indices, at::real(factors).contiguous(), columns(dense), std::nullopt, 0, 1);
    const Tensor turned = at::mul(dense, c10::Scalar(c10::complex<double>(0, 1)));
    sum = engine.call(offsets, indices, at::imag(factors).contiguous(), columns(turned), sum, 1, 1);
  } else {
    sum = engine.call(offsets, indices, std::nullopt, columns(dense), std::nullopt, 0, 1);
  }
  Tensor result = at::view_as_complex(sum.unflatten(1, {dense.size(1), 2}));
  if (!alpha.equal(1)) result = at::mul(result, alpha);
  const bool added = addend.has_value() && !beta.equal(0);
  return added ? at::add(result, *addend, beta) : result;
}

Tensor& put(const Tensor& found, Tensor& out) {
  if (out.is_same(found)) return out;
  if (out.layout() == c10::kStrided) {
    out.resize_(found.sizes());
  } else {
    out.resize_as_sparse_(found);
  }
  return out.copy_(found);
}

void register_sparse() {
  torch::Library& coo = library("aten", backend.sparse);
  redirect<&run_kernel_of<DispatchKey::SparseCPU>>(coo, "aten", DispatchKey::SparseCPU, kCooApart);
  coo.impl("aten::_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  register_coo(coo);
  torch::Library& compressed = library("aten", backend.sparse_csr);
  redirect<&run_kernel_of<DispatchKey::SparseCsrCPU>>(compressed, "aten", DispatchKey::SparseCsrCPU, kCompressedApart);
  compressed.impl("aten::_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  register_compressed(compressed);
  torch::Library& aten = library("aten", backend.dense);
  for (const char* name : kToSparse) {
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_kernel_of<DispatchKey::CPU>>());
  }
  set_stub(at::native::flatten_indices_stub, &flatten_indices);
}

}  // namespace dml
