// Conversion of PyTorch's values to the engine's. The results borrow: the sources outlive the call.
#pragma once
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/device.h"
#include "core/generator.h"
#include "core/storage.h"
#include "engine.h"

namespace dml {

inline uint8_t dtype_code(c10::ScalarType type) {
  using S = c10::ScalarType;
  switch (type) {
    case S::Bool: return DML_BOOL;
    case S::Byte: return DML_U8;
    case S::Char: return DML_I8;
    case S::Short: return DML_I16;
    case S::Int: return DML_I32;
    case S::Long: return DML_I64;
    case S::Half: return DML_F16;
    case S::BFloat16: return DML_BF16;
    case S::Float: return DML_F32;
    case S::Double: return DML_F64;
    case S::UInt16: return DML_U16;
    case S::UInt32: return DML_U32;
    case S::UInt64: return DML_U64;
    case S::ComplexHalf: return DML_C32;
    case S::ComplexFloat: return DML_C64;
    case S::ComplexDouble: return DML_C128;
    case S::Float8_e4m3fn: return DML_F8E4M3FN;
    case S::Float8_e5m2: return DML_F8E5M2;
    case S::Float8_e4m3fnuz: return DML_F8E4M3FNUZ;
    case S::Float8_e5m2fnuz: return DML_F8E5M2FNUZ;
    default: return DML_DTYPE_NONE;
  }
}

inline c10::ScalarType scalar_type(uint8_t code) {
  using S = c10::ScalarType;
  constexpr S table[] = {S::Bool,          S::Byte,          S::Char,        S::Short,           S::Int,
                         S::Long,          S::Half,          S::BFloat16,    S::Float,           S::Double,
                         S::UInt16,        S::UInt32,        S::UInt64,      S::ComplexHalf,     S::ComplexFloat,
                         S::ComplexDouble, S::Float8_e4m3fn, S::Float8_e5m2, S::Float8_e4m3fnuz, S::Float8_e5m2fnuz};
  return code < std::size(table) ? table[code] : S::Undefined;
}

inline int64_t memory_format_code(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Preserve: return 1;
    case c10::MemoryFormat::ChannelsLast: return 2;
    case c10::MemoryFormat::ChannelsLast3d: return 3;
    default: return 0;
  }
}

// Describes a defined tensor. A tensor without strided storage (sparse, meta, of another backend)
// is described without an address.
inline void describe(c10::TensorImpl* impl, DmlTensor& out) {
  out.handle = impl;
  const c10::Device device = impl->device();
  out.device = device.has_index() ? static_cast<uint8_t>(device.index()) : 0;
  out.place = is_ours(device) ? DML_PLACE_DML : device.is_cpu() ? DML_PLACE_CPU : DML_PLACE_OTHER;
  const c10::ScalarType type = c10::typeMetaToScalarType(impl->dtype());
  out.dtype = dtype_code(type);
  out.flags =
      static_cast<uint8_t>((impl->is_wrapped_number() ? DML_TENSOR_FLAG_WRAPPED_NUMBER : 0) |
                           (impl->is_conj() ? DML_TENSOR_FLAG_CONJ : 0) | (impl->is_neg() ? DML_TENSOR_FLAG_NEG : 0));
  if (C10_UNLIKELY(out.place == DML_PLACE_OTHER || !impl->has_storage())) {
    out.place = DML_PLACE_OTHER;
    out.data = out.storage = out.storage_bytes = 0;
    out.sizes = out.strides = nullptr;
    out.dim = 0;
    return;
  }
  const c10::IntArrayRef sizes = impl->sizes();
  out.sizes = sizes.data();
  out.strides = impl->strides().data();
  out.dim = static_cast<int32_t>(sizes.size());
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (C10_UNLIKELY(may_reach_beyond_storage()) && out.place == DML_PLACE_DML) check_within_storage(impl);
  // mutable_data_ptr: the engine may write, so a copy-on-write storage is materialized here.
  out.storage = reinterpret_cast<uint64_t>(storage->mutable_data_ptr().get());
  out.storage_bytes = storage->nbytes();
  out.data = out.storage + static_cast<uint64_t>(impl->storage_offset()) * impl->dtype().itemsize();
}

// Memory for the lists of one call. The usual call fits in the inline part and allocates nothing.
class Arena {
 public:
  template <class T>
  T* take(size_t count) {
    static_assert(alignof(T) <= 8 && std::is_trivially_destructible_v<T>);
    const size_t bytes = (count * sizeof(T) + 7) & ~size_t{7};
    if (bytes > sizeof(inline_) - used_) {
      overflow_.emplace_back(new uint64_t[bytes / 8]);  // not zeroed: lists of tensors are long
      return reinterpret_cast<T*>(overflow_.back().get());
    }
    T* at = reinterpret_cast<T*>(inline_ + used_);
    used_ += bytes;
    return at;
  }

 private:
  alignas(8) unsigned char inline_[2048];
  size_t used_ = 0;
  std::vector<std::unique_ptr<uint64_t[]>> overflow_;
};

// Fills DmlValues and remembers the device of the call: the device of the first dml tensor, or else
// a Device argument.
class Writer {
 public:
  c10::DeviceIndex device() const {
    return tensor_device_ >= 0 ? tensor_device_ : device_ >= 0 ? device_ : current_device();
  }

  void none(DmlValue& v) { v.tag = DML_TAG_NONE; }

  void tensor(DmlValue& v, c10::TensorImpl* impl) {
    if (impl == c10::UndefinedTensorImpl::singleton()) {
      v.tag = DML_TAG_NONE;
      return;
    }
    v.tag = DML_TAG_TENSOR;
    fill(v.u.tensor, impl);
  }

  void put(DmlValue& v, const at::Tensor& t) { tensor(v, t.unsafeGetTensorImpl()); }

  void put(DmlValue& v, bool b) {
    v.tag = DML_TAG_BOOL;
    v.u.boolean = b;
  }

  void put(DmlValue& v, int64_t i) {
    v.tag = DML_TAG_INT;
    v.u.integer = i;
  }

  void put(DmlValue& v, const c10::SymInt& i) { put(v, i.guard_int(__FILE__, __LINE__)); }

  void put(DmlValue& v, double d) {
    v.tag = DML_TAG_DOUBLE;
    v.u.number = d;
  }

  void put(DmlValue& v, const c10::complex<double>& c) {
    v.tag = DML_TAG_COMPLEX;
    v.u.complex[0] = c.real();
    v.u.complex[1] = c.imag();
  }

  void put(DmlValue& v, const c10::Scalar& s) {
    if (s.isFloatingPoint()) {
      put(v, s.toDouble());
    } else if (s.isBoolean()) {
      put(v, s.toBool());
    } else if (s.isComplex()) {
      put(v, s.toComplexDouble());
    } else {
      // An unsigned number above int64's range keeps its bits.
      put(v, s.type() == c10::ScalarType::UInt64 ? static_cast<int64_t>(s.toUInt64()) : s.toLong());
    }
  }

  void put(DmlValue& v, c10::ScalarType t) { put(v, static_cast<int64_t>(dtype_code(t))); }
  void put(DmlValue& v, c10::Layout l) { put(v, static_cast<int64_t>(l)); }
  void put(DmlValue& v, c10::MemoryFormat f) { put(v, memory_format_code(f)); }

  void put(DmlValue& v, c10::Device d) {
    v.tag = DML_TAG_DEVICE;
    if (is_ours(d)) {
      device_ = d.has_index() ? d.index() : current_device();
      v.u.integer = device_;
    } else {
      v.u.integer = -1;
    }
  }

  void put(DmlValue& v, const at::Generator& g) {
    v.tag = DML_TAG_GENERATOR;
    v.u.generator = g.defined() ? generator_handle(g) : 0;
  }

  void put(DmlValue& v, std::string_view s) {
    v.tag = DML_TAG_STRING;
    v.len = static_cast<int64_t>(s.size());
    v.u.string = s.data();
  }

  void put(DmlValue& v, c10::IntArrayRef list) {
    v.tag = DML_TAG_INTS;
    v.len = static_cast<int64_t>(list.size());
    v.u.ints = list.data();
  }

  void put(DmlValue& v, c10::SymIntArrayRef list) { put(v, C10_AS_INTARRAYREF_SLOW(list)); }

  void put(DmlValue& v, c10::ArrayRef<double> list) {
    v.tag = DML_TAG_DOUBLES;
    v.len = static_cast<int64_t>(list.size());
    v.u.doubles = list.data();
  }

  template <size_t N>
  void put(DmlValue& v, const std::array<bool, N>& list) {
    static_assert(sizeof(bool) == 1);
    v.tag = DML_TAG_BOOLS;
    v.len = N;
    v.u.bools = reinterpret_cast<const uint8_t*>(list.data());
  }

  void put(DmlValue& v, at::TensorList list) {
    DmlTensor* t = tensors(v, list.size());
    for (const at::Tensor& x : list) element(*t++, x.unsafeGetTensorImpl());
  }

  void put(DmlValue& v, const at::ITensorListRef& list) {
    DmlTensor* t = tensors(v, list.size());
    for (const at::Tensor& x : list) element(*t++, x.unsafeGetTensorImpl());
  }

  void put(DmlValue& v, const c10::List<std::optional<at::Tensor>>& list) {
    DmlTensor* t = tensors(v, list.size());
    for (const auto& x : list) {
      const std::optional<at::Tensor> tensor = x;  // the list keeps the TensorImpl alive
      element(*t++, tensor.has_value() ? tensor->unsafeGetTensorImpl() : nullptr);
    }
  }

  void put(DmlValue& v, c10::ArrayRef<c10::Scalar> list) {
    DmlValue* s = scalars(v, list.size());
    for (const c10::Scalar& x : list) put(*s++, x);
  }

  template <class T>
  void put(DmlValue& v, const std::optional<T>& x) {
    if (x.has_value()) {
      put(v, *x);
    } else {
      none(v);
    }
  }

  template <class T>
  void put(DmlValue& v, const c10::OptionalArrayRef<T>& x) {
    if (x.has_value()) {
      put(v, *x);
    } else {
      none(v);
    }
  }

  // A list of `count` tensors, to be filled with element().
  DmlTensor* tensors(DmlValue& v, size_t count) {
    DmlTensor* list = arena.take<DmlTensor>(count);
    v.tag = DML_TAG_TENSORS;
    v.len = static_cast<int64_t>(count);
    v.u.tensors = list;
    return list;
  }

  void element(DmlTensor& t, c10::TensorImpl* impl) {
    if (impl == nullptr || impl == c10::UndefinedTensorImpl::singleton()) {
      t = DmlTensor{};
    } else {
      fill(t, impl);
    }
  }

  DmlValue* scalars(DmlValue& v, size_t count) {
    DmlValue* list = arena.take<DmlValue>(count);
    v.tag = DML_TAG_SCALARS;
    v.len = static_cast<int64_t>(count);
    v.u.scalars = list;
    return list;
  }

  Arena arena;

 private:
  void fill(DmlTensor& t, c10::TensorImpl* impl) {
    describe(impl, t);
    if (t.place == DML_PLACE_DML && tensor_device_ < 0) tensor_device_ = static_cast<c10::DeviceIndex>(t.device);
  }

  c10::DeviceIndex tensor_device_ = -1;
  c10::DeviceIndex device_ = -1;
};

}  // namespace dml
