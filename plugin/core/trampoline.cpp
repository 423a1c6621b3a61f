// The boxed kernel of every operator of the engine's table.
#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/stack.h>
#include <ATen/ops/zeros_like.h>

#include "core/backend.h"
#include "core/call.h"
#include "core/convert.h"
#include "core/device.h"
#include "core/fallback.h"
#include "core/library.h"
#include "core/measure.h"
#include "core/register.h"
#include "core/table.h"
#include "core/trampoline.h"

namespace dml {
namespace {

// The type of an argument that is an int on the stack.
enum class Reading : uint8_t { Plain, DType, MemoryFormat };

Reading reading_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType: return Reading::DType;
    case c10::TypeKind::MemoryFormatType: return Reading::MemoryFormat;
    default: return Reading::Plain;
  }
}

void put_list(Writer& writer, DmlValue& v, const at::IValue& value) {
  const c10::ArrayRef<at::IValue> list = value.toListRef();
  const size_t n = list.size();
  const c10::TypePtr element = value.type()->cast<c10::ListType>()->getElementType();
  switch (element->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: {
      int64_t* to = writer.arena.take<int64_t>(n);
      for (size_t i = 0; i < n; ++i) {
        to[i] = list[i].isInt() ? list[i].toInt() : list[i].toSymInt().guard_int(__FILE__, __LINE__);
      }
      return writer.put(v, c10::IntArrayRef(to, n));
    }
    case c10::TypeKind::FloatType: {
      double* to = writer.arena.take<double>(n);
      for (size_t i = 0; i < n; ++i) to[i] = list[i].toDouble();
      return writer.put(v, c10::ArrayRef<double>(to, n));
    }
    case c10::TypeKind::BoolType: {
      uint8_t* to = writer.arena.take<uint8_t>(n);
      for (size_t i = 0; i < n; ++i) to[i] = list[i].toBool();
      v.tag = DML_TAG_BOOLS;
      v.len = static_cast<int64_t>(n);
      v.u.bools = to;
      return;
    }
    case c10::TypeKind::NumberType: {
      DmlValue* to = writer.scalars(v, n);
      for (const at::IValue& x : list) writer.put(*to++, x.toScalar());
      return;
    }
    case c10::TypeKind::TensorType:
    case c10::TypeKind::OptionalType: {
      DmlTensor* to = writer.tensors(v, n);
      for (const at::IValue& x : list) writer.element(*to++, x.isTensor() ? x.unsafeToTensorImpl() : nullptr);
      return;
    }
    default: TORCH_CHECK_NOT_IMPLEMENTED(false, "dml: an argument of type ", element->str(), "[] is not supported");
  }
}

void put(Writer& writer, DmlValue& v, const at::IValue& value, Reading reading) {
  if (value.isTensor()) return writer.tensor(v, value.unsafeToTensorImpl());
  if (value.isNone()) return writer.none(v);
  if (value.isInt()) {
    const int64_t i = value.toInt();
    if (reading == Reading::DType) return writer.put(v, static_cast<c10::ScalarType>(i));
    if (reading == Reading::MemoryFormat) return writer.put(v, static_cast<c10::MemoryFormat>(i));
    return writer.put(v, i);
  }
  if (value.isDouble()) return writer.put(v, value.toDouble());
  if (value.isBool()) return writer.put(v, value.toBool());
  if (value.isList()) return put_list(writer, v, value);
  if (value.isSymInt()) return writer.put(v, value.toSymInt());
  if (value.isScalar()) return writer.put(v, value.toScalar());
  if (value.isString()) return writer.put(v, value.toStringView());
  if (value.isDevice()) return writer.put(v, value.toDevice());
  if (value.isGenerator()) return writer.put(v, value.toGenerator());
  TORCH_CHECK_NOT_IMPLEMENTED(false, "dml: an argument of type ", value.tagKind(), " is not supported");
}

// Zeros without memory, which stand for tangents that are zero. For most operators PyTorch
// materializes them; a few, such as aten::dot and aten::vdot, have to do it themselves.
bool is_zero_tensor(const at::IValue& value) {
  return value.isTensor() && value.unsafeToTensorImpl()->key_set().has(c10::DispatchKey::ZeroTensor);
}

constexpr size_t kInlineArgs = 8, kInlineResults = 4;

class Trampoline final : public c10::OperatorKernel {
 public:
  Trampoline(uint32_t op, const c10::FunctionSchema& schema) : op_(op) {
    for (const c10::Argument& argument : schema.arguments()) readings_.push_back(reading_of(argument));
    for (const c10::Argument& result : schema.returns()) {
      returns_.push_back({source_of(schema, result), kind_of(result)});
    }
  }

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const Measured stage;
    const size_t nargs = readings_.size(), nresults = returns_.size();
    const size_t base = stack->size() - nargs;
    Writer writer;
    DmlValue* args = writer.arena.take<DmlValue>(nargs);
    DmlValue* results = writer.arena.take<DmlValue>(nresults);
    for (size_t i = 0; i < nargs; ++i) {
      at::IValue& value = (*stack)[base + i];
      if (C10_UNLIKELY(is_zero_tensor(value))) value = at::zeros_like(value.toTensor());
      put(writer, args[i], value, readings_[i]);
    }
    Call call;
    if (!call.run(op_, writer.device(), args, nargs, results, nresults)) {
      return fallback(handle, stack, dml_last_error());
    }
    c10::SmallVector<at::IValue, kInlineResults> out;
    for (size_t i = 0; i < nresults; ++i) {
      out.push_back(returns_[i].source >= 0 ? (*stack)[base + static_cast<size_t>(returns_[i].source)]
                                            : result(call, results[i], returns_[i].kind));
    }
    torch::jit::drop(*stack, nargs);
    for (at::IValue& value : out) stack->push_back(std::move(value));
  }

 private:
  struct Return {
    int source;  // the argument that is returned (in-place and out=), or -1
    c10::TypeKind kind;
  };

  static int source_of(const c10::FunctionSchema& schema, const c10::Argument& result) {
    const c10::AliasInfo* alias = result.alias_info();
    if (alias == nullptr || !alias->isWrite()) return -1;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::AliasInfo* other = schema.arguments()[i].alias_info();
      if (other != nullptr && *other == *alias) return static_cast<int>(i);
    }
    return -1;
  }

  static c10::TypeKind kind_of(const c10::Argument& result) {
    if (auto list = result.type()->cast<c10::ListType>()) return c10::TypeKind::ListType;
    return result.type()->kind();
  }

  static at::IValue result(Call& call, const DmlValue& value, c10::TypeKind kind) {
    if (kind == c10::TypeKind::TensorType) return call.take(value);
    if (kind == c10::TypeKind::ListType) {
      c10::List<at::Tensor> list;
      TORCH_INTERNAL_ASSERT(value.tag == DML_TAG_TENSORS, "the dml engine returned no list of tensors");
      list.reserve(static_cast<size_t>(value.len));
      for (int64_t i = 0; i < value.len; ++i) {
        list.push_back(value.u.tensors[i].handle == nullptr ? at::Tensor() : call.take(value.u.tensors[i]));
      }
      return list;
    }
    const c10::Scalar number = to_scalar(value);
    switch (kind) {
      case c10::TypeKind::BoolType: return number.toBool();
      case c10::TypeKind::IntType:
      case c10::TypeKind::SymIntType: return number.toLong();
      case c10::TypeKind::FloatType: return number.toDouble();
      default: return number;
    }
  }

  const uint32_t op_;
  c10::SmallVector<Reading, kInlineArgs> readings_;
  c10::SmallVector<Return, kInlineResults> returns_;
};

TableCounts counts;

}  // namespace

const TableCounts& table_counts() { return counts; }

void register_table(torch::Library& library, const char* name_space, const Names& taken) {
  for (const auto& [op, handle] : table(name_space).operators) {
    const std::string name = dml_operator_name(op);
    if (taken.count(name) != 0) {
      ++counts.registered;
      continue;
    }
    // A backend kernel for a composite without a derivative formula would silently make its result
    // non-differentiable.
    if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
        !handle.hasKernelForDispatchKey(c10::DispatchKey::Autograd)) {
      counts.composite.push_back(name);
      continue;
    }
    library.impl(name.c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Trampoline>(op, handle.schema())));
    ++counts.registered;
  }
}

void register_own() {
  constexpr const char* kOwn = "torch_dml";
  static torch::Library& definitions =
      *new torch::Library(torch::Library::FRAGMENT, kOwn, std::nullopt, __FILE__, __LINE__);
  const uint32_t count = dml_operator_count();
  for (uint32_t op = 0; op < count; ++op) {
    const std::string name = dml_operator_name(op);
    if (name.rfind(std::string(kOwn) + "::", 0) == 0) definitions.def(dml_operator_schema(op));
  }
  register_table(library(kOwn, backend.dense), kOwn, {});
}

}  // namespace dml
