#include "core/call.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <c10/core/DefaultDtype.h>

#include "core/allocator.h"
#include "core/backend.h"
#include "core/convert.h"
#include "core/device.h"
#include "core/interrupt.h"
#include "core/product_dtype.h"
#include "core/storage.h"

namespace dml {
namespace {

int32_t status_of(const std::exception& e) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr) return DML_OUT_OF_MEMORY;
  if (dynamic_cast<const c10::IndexError*>(&e) != nullptr) return DML_INDEX_ERROR;
  if (dynamic_cast<const c10::TypeError*>(&e) != nullptr) return DML_TYPE_ERROR;
  if (dynamic_cast<const c10::ValueError*>(&e) != nullptr) return DML_VALUE_ERROR;
  if (dynamic_cast<const c10::NotImplementedError*>(&e) != nullptr) return DML_NOT_IMPLEMENTED;
  return DML_RUNTIME_ERROR;
}

}  // namespace

Call::Call() {
  host_.context = this;
  host_.empty = &Call::empty;
  host_.resize = &Call::resize;
  host_.view = &Call::view;
  host_.warn = &Call::warn;
  host_.matmul_precision = &Call::matmul_precision;
  host_.product_dtype = &Call::product_dtype;
  host_.default_dtype = dtype_code(c10::get_default_dtype_as_scalartype());
  host_.deterministic = at::globalContext().deterministicAlgorithms();
}

bool Call::run(uint32_t op, c10::DeviceIndex device, const DmlValue* args, size_t nargs, DmlValue* results,
               size_t nresults) {
  const int32_t status = dml_call(op, device, args, nargs, &host_, results, nresults);
  if (C10_LIKELY(status == DML_OK)) {
    if (C10_UNLIKELY(may_hold_interruption()) && holds_interruption()) throw_interruption();
    return true;
  }
  if (error_) std::rethrow_exception(error_);
  if (status == DML_FALLBACK) return false;
  raise(status);
}

at::Tensor Call::take(const DmlTensor& tensor) {
  auto* impl = static_cast<c10::TensorImpl*>(tensor.handle);
  TORCH_INTERNAL_ASSERT(impl != nullptr, "the dml engine returned a tensor that PyTorch does not know");
  // Lists are returned in the order in which they were made, so the search continues where the last
  // one ended.
  for (size_t i = 0; i < made_.size(); ++i) {
    const size_t at = next_ < made_.size() ? next_ : 0;
    next_ = at + 1;
    // Copied, not moved: an operator may return one tensor twice.
    if (made_[at].get() == impl) return at::Tensor(made_[at]);
  }
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(impl));
}

at::Tensor Call::take(const DmlValue& result) {
  if (result.tag == DML_TAG_NONE) return {};
  TORCH_INTERNAL_ASSERT(result.tag == DML_TAG_TENSOR, "the dml engine returned a value where a tensor belongs");
  return take(result.u.tensor);
}

template <class F>
int32_t Call::guarded(F&& body) noexcept {
  try {
    body();
    return DML_OK;
  } catch (const std::exception& e) {
    if (!error_) error_ = std::current_exception();
    const auto* torch_error = dynamic_cast<const c10::Error*>(&e);
    dml_set_error(torch_error != nullptr ? torch_error->what_without_backtrace() : e.what());
    return status_of(e);
  }
}

int32_t Call::empty(void* self, const int64_t* sizes, const int64_t* strides, int32_t dim, uint8_t dtype,
                    uint8_t device, DmlTensor* out) {
  Call& call = *static_cast<Call*>(self);
  return call.guarded([&] {
    const c10::IntArrayRef shape(sizes, static_cast<size_t>(dim));
    at::detail::check_size_nonnegative(shape);
    const caffe2::TypeMeta type = c10::scalarTypeToTypeMeta(scalar_type(dtype));
    const size_t itemsize = type.itemsize();
    const size_t bytes = strides == nullptr
                             ? at::detail::computeStorageNbytesContiguous(shape, itemsize)
                             : at::detail::computeStorageNbytes(shape, {strides, static_cast<size_t>(dim)}, itemsize);
    // As at::detail::empty_strided_generic, but without changing the thread's current device.
    c10::DataPtr memory = allocate(bytes, static_cast<c10::DeviceIndex>(device));
    const auto address = reinterpret_cast<uint64_t>(memory.get());
    auto made = c10::make_intrusive<c10::TensorImpl>(
        c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                           std::move(memory), allocator(), /*resizable=*/true)),
        backend.keys, type);
    if (strides == nullptr) {
      made->set_sizes_contiguous(shape);
    } else {
      made->set_sizes_and_strides(shape, {strides, static_cast<size_t>(dim)});
    }
    *out = DmlTensor{
        made.get(), address, made->sizes().data(), made->strides().data(), address, bytes, dim, dtype, DML_PLACE_DML,
        device,     0};
    call.made_.push_back(std::move(made));
  });
}

int32_t Call::resize(void* self, DmlTensor* tensor, const int64_t* sizes, const int64_t* strides, int32_t dim) {
  return static_cast<Call*>(self)->guarded([&] {
    auto* impl = static_cast<c10::TensorImpl*>(tensor->handle);
    const at::Tensor out(c10::intrusive_ptr<c10::TensorImpl>::unsafe_reclaim_from_nonowning(impl));
    const c10::IntArrayRef shape(sizes, static_cast<size_t>(dim));
    if (at::native::resize_output_check(out, shape)) {
      std::optional<c10::IntArrayRef> wanted;
      if (strides != nullptr) wanted.emplace(strides, static_cast<size_t>(dim));
      resize_tensor(impl, shape, wanted);
    }
    describe(impl, *tensor);
  });
}

int32_t Call::view(void* self, const DmlTensor* base, const int64_t* sizes, const int64_t* strides, int32_t dim,
                   int64_t storage_offset, DmlTensor* out) {
  Call& call = *static_cast<Call*>(self);
  return call.guarded([&] {
    auto* from = static_cast<c10::TensorImpl*>(base->handle);
    auto made = c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(from->storage()),
                                                     from->key_set(), from->dtype());
    const size_t n = static_cast<size_t>(dim);
    made->set_sizes_and_strides({sizes, n}, {strides, n}, storage_offset);
    describe(made.get(), *out);
    call.made_.push_back(std::move(made));
  });
}

void Call::warn(void* self, const char* message) {
  static_cast<Call*>(self)->guarded([&] { dml::warn(message); });
}

uint8_t Call::product_dtype(void*) { return dtype_code(ProductDtype::current()); }

uint8_t Call::matmul_precision(void*) {
  // The setting that CUDA's products use: torch.set_float32_matmul_precision and both
  // torch.backends.cuda.matmul.allow_tf32 and .fp32_precision set it.
  // Context::float32MatmulPrecision throws if several of these were used. "medium" and "high"
  // differ only in the setting of the CPU's products.
  using at::Float32Backend, at::Float32Op, at::Float32Precision;
  const at::Context& context = at::globalContext();
  if (context.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL) != Float32Precision::TF32 ||
      at::NoTF32Guard::should_disable_tf32()) {
    return DML_PRECISION_HIGHEST;
  }
  const bool bfloat = context.float32Precision(Float32Backend::MKLDNN, Float32Op::MATMUL) == Float32Precision::BF16;
  return bfloat ? DML_PRECISION_MEDIUM : DML_PRECISION_HIGH;
}

c10::Scalar to_scalar(const DmlValue& value) {
  switch (value.tag) {
    case DML_TAG_BOOL: return c10::Scalar(value.u.boolean != 0);
    case DML_TAG_INT: return c10::Scalar(value.u.integer);
    case DML_TAG_UNSIGNED: return c10::Scalar(static_cast<uint64_t>(value.u.integer));
    case DML_TAG_DOUBLE: return c10::Scalar(value.u.number);
    case DML_TAG_COMPLEX: return c10::Scalar(c10::complex<double>(value.u.complex[0], value.u.complex[1]));
    default: TORCH_INTERNAL_ASSERT(false, "the dml engine returned no number");
  }
}

}  // namespace dml
