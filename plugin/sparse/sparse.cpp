// Sparse tensors. Most of PyTorch's functions for them consist of operators on indices and values
// and work on any device, but PyTorch registers them only for its own devices. Functions that read
// the CPU's memory are the engine's here instead (coo.cpp, compressed.cpp), or fall back to the
// CPU.
#include "sparse/sparse.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/DispatchStub.h>

#include "core/backend.h"
#include "core/device.h"
#include "core/engine_operator.h"
#include "core/library.h"
#include "core/redirect.h"
#include "sparse/register.h"

namespace at::native {

// PyTorch does not install the header that declares this.
using flatten_indices_fn = at::Tensor (*)(const at::Tensor&, c10::IntArrayRef);
DECLARE_DISPATCH(flatten_indices_fn, flatten_indices_stub)

}  // namespace at::native

namespace dml {
namespace {

using at::Tensor;
using c10::DispatchKey;

// Operators of COO tensors that must not run the CPU's kernels, because these read memory on the
// host: native_functions.yaml names other kernels for CUDA (tests/sparse/test_sparse_tensors.py
// compares). A few more have a faster implementation here.
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

// Operators that convert strided tensors to sparse ones.
constexpr const char* kToSparse[] = {
    "aten::_to_sparse",     "aten::_to_sparse.sparse_dim", "aten::_to_sparse_csr",
    "aten::_to_sparse_csc", "aten::_to_sparse_bsr",        "aten::_to_sparse_bsc",
};

// The device of an operator's results: its argument `device`, or else the device of its first dml
// tensor.
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

// The CPU's kernels create sparse tensors on the current device, whatever device the operands are
// on.
template <DispatchKey Cpu>
void run_kernel_of(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const CurrentDevice scope(device_of(op, *stack));
  run_under<Cpu>(op, stack);
}

// The CPU fallback uses this to write the results of in-place and out= overloads.
Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  Tensor out = dst;
  return put(self, out);
}

// The row-major linear index of each entry, from indices [dims, entries] into dimensions of these
// sizes.
Tensor flatten_indices(const Tensor& indices, c10::IntArrayRef sizes) {
  static const auto engine = engine_operator<Tensor(const Tensor&, c10::IntArrayRef)>("torch_dml::coo_flatten");
  return engine.call(indices, sizes);
}

}  // namespace

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
