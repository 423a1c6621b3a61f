// Copies between devices. The engine copies, casts, conjugates and negates the dtypes that it
// computes with. Other dtypes are copied as bits and cast on the CPU. The CPU fallback uses this
// file, so nothing here may fall back to it.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_copy_from_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/resize_ops.h>

#include "core/backend.h"
#include "core/call.h"
#include "core/convert.h"
#include "core/copy.h"
#include "core/fallback.h"
#include "core/library.h"
#include "core/register.h"
#include "core/table.h"

namespace dml {

at::Tensor view_of_memory(const at::Tensor& t, caffe2::TypeMeta type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          int64_t offset) {
  const c10::DispatchKeySet keys(t.is_cpu() ? c10::DispatchKey::CPU : backend.dense);
  auto impl = c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(t.storage()), keys, type);
  impl->set_sizes_and_strides(sizes, strides, offset);
  return at::Tensor(std::move(impl));
}

namespace {

uint32_t copy_id = UINT32_MAX;

bool run_copy(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  if (copy_id == UINT32_MAX) return false;
  DmlValue args[3], result;
  Writer writer;
  writer.put(args[0], self);
  writer.put(args[1], dst);
  writer.put(args[2], non_blocking);
  Call call;
  return call.run(copy_id, writer.device(), args, 3, &result, 1);
}

bool computes(c10::ScalarType type) { return dtype_code(type) != DML_DTYPE_NONE; }

// The same elements as integers of the same size (16 bytes: as pairs), without conjugate and
// negative bits.
at::Tensor as_bits(const at::Tensor& t) {
  const size_t itemsize = t.element_size();
  c10::SmallVector<int64_t, 6> sizes(t.sizes().begin(), t.sizes().end());
  c10::SmallVector<int64_t, 6> strides(t.strides().begin(), t.strides().end());
  int64_t offset = t.storage_offset();
  if (itemsize == 16) {
    for (int64_t& s : strides) s *= 2;
    offset *= 2;
    sizes.push_back(2);
    strides.push_back(1);
  }
  const caffe2::TypeMeta type = itemsize == 1   ? caffe2::TypeMeta::Make<uint8_t>()
                                : itemsize == 2 ? caffe2::TypeMeta::Make<int16_t>()
                                : itemsize == 4 ? caffe2::TypeMeta::Make<int32_t>()
                                                : caffe2::TypeMeta::Make<int64_t>();
  return view_of_memory(t, type, sizes, strides, offset);
}

bool plain_on_cpu(const at::Tensor& t) { return t.is_contiguous() && !t.is_neg() && !t.is_conj(); }

// The engine requires that a CPU tensor is contiguous, has no conjugate or negative bit and, as a
// destination, has the dtype and the sizes of the source. Returns false when the engine has no
// kernel for the two dtypes.
bool run_staged(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  if (self.is_cpu()) {
    if (dst.is_neg()) return run_staged(self.neg(), dst._neg_view(), non_blocking);
    if (dst.is_conj()) return run_staged(self.conj(), dst.conj(), non_blocking);
    // A cast to a narrower dtype on the CPU reduces the bytes to copy, and adapters without float64
    // can take doubles.
    const bool narrow = self.scalar_type() != dst.scalar_type() && self.element_size() >= dst.element_size();
    const at::Tensor source = narrow ? self.to(dst.scalar_type()) : self;
    return run_copy(source.resolve_conj().resolve_neg().contiguous(), dst, non_blocking);
  }
  if (dst.is_cpu()) {
    if (plain_on_cpu(dst) && dst.scalar_type() == self.scalar_type() && dst.sizes() == self.sizes()) {
      return run_copy(self, dst, non_blocking);
    }
    const at::Tensor host = at::empty(self.sizes(), self.options().device(c10::kCPU));
    if (!run_copy(self, host, false)) return false;
    dst.copy_(host);
    return true;
  }
  return run_copy(self, dst, non_blocking);
}

void copy_bits(const at::Tensor& self, const at::Tensor& dst) {
  const at::Tensor from = as_bits(self), to = as_bits(dst);
  TORCH_CHECK(run_staged(from, to, false), "the dml engine cannot copy ", self.scalar_type(), " from ", self.device(),
              " to ", dst.device());
}

// A copy of the memory on the CPU, with the conjugate and negative bits of the tensor.
at::Tensor raw_on_cpu(const at::Tensor& self) {
  at::Tensor host = at::empty(self.sizes(), self.options().device(c10::kCPU));
  copy_bits(self, host);
  if (self.is_conj()) host._set_conj(true);
  if (self.is_neg()) host._set_neg(true);
  return host;
}

// A tensor of a third backend, such as CUDA: copies from and to it go through the CPU.
bool foreign(const at::Tensor& t) { return !t.is_cpu() && !is_ours(t.device()); }

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  TORCH_CHECK(self.defined() && dst.defined(), "copy: undefined tensor");
  if (dst.numel() == 0) return dst;
  if (C10_UNLIKELY(foreign(self))) return copy_from(self.cpu(), dst, non_blocking);
  if (C10_UNLIKELY(foreign(dst))) {
    dst.copy_(self.cpu());
    return dst;
  }
  if (C10_LIKELY(computes(self.scalar_type()) && computes(dst.scalar_type())) && run_staged(self, dst, non_blocking)) {
    return dst;
  }
  const at::Tensor source = self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
  if (source.scalar_type() == dst.scalar_type() && source.is_conj() == dst.is_conj() &&
      source.is_neg() == dst.is_neg()) {
    copy_bits(source, dst);
    return dst;
  }
  // A cast or a conjugation for which the engine has no kernel. The CPU does it; if both tensors
  // are on the device, that is a fallback.
  if (!source.is_cpu() && !dst.is_cpu())
    count_fallback("aten::_copy_from", "torch-dml does not convert between these dtypes");
  const at::Tensor host = source.is_cpu() ? source : raw_on_cpu(source);
  if (dst.is_cpu()) {
    dst.copy_(host);
    return dst;
  }
  at::Tensor cast = at::empty(dst.sizes(), dst.options().device(c10::kCPU));
  if (dst.is_conj()) cast._set_conj(true);
  if (dst.is_neg()) cast._set_neg(true);
  cast.copy_(host);
  copy_bits(cast, dst);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.sizes() != self.sizes()) at::_ops::resize_::call(dst, self.sym_sizes(), std::nullopt);
  return copy_from(self, dst, false);
}

}  // namespace

void register_copies(torch::Library& aten, Names& taken) {
  const std::optional<uint32_t> id = find_operator("aten::_copy_from");
  TORCH_CHECK(id.has_value(), "this torch's schema of aten::_copy_from is not the one that torch-dml was made for");
  copy_id = *id;
  aten.impl("aten::_copy_from", TORCH_FN(copy_from));
  aten.impl("aten::_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  taken.insert({"aten::_copy_from", "aten::_copy_from_and_resize"});
  // The copy handles both bits. Resolving them before would be a copy, and so recurse without end.
  for (const c10::DispatchKey key : {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}) {
    library("aten", key).impl("aten::_copy_from", torch::CppFunction::makeFallthrough());
  }
}

}  // namespace dml
