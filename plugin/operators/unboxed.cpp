// Unboxed kernels of the hot overloads: the same call of the engine, with arguments that are
// converted from their C++ types instead of from the stack. The table of operators says which
// overloads are hot.
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/call.h"
#include "core/convert.h"
#include "core/fallback.h"
#include "core/library.h"
#include "core/measure.h"
#include "core/table.h"
#include "operators/hot_operators.h"
#include "operators/register.h"

namespace dml {
namespace {

template <class R>
struct Results {  // one tensor
  static constexpr size_t count = 1;
  static R from(Call& call, const DmlValue* values) {
    if constexpr (std::is_same_v<R, c10::Scalar>) {
      return to_scalar(values[0]);
    } else if constexpr (std::is_same_v<R, c10::SymInt>) {
      return to_scalar(values[0]).toLong();
    } else {
      return call.take(values[0]);
    }
  }
};

template <>
struct Results<std::vector<at::Tensor>> {
  static constexpr size_t count = 1;
  static std::vector<at::Tensor> from(Call& call, const DmlValue* values) {
    TORCH_INTERNAL_ASSERT(values->tag == DML_TAG_TENSORS, "the dml engine returned no list of tensors");
    std::vector<at::Tensor> list;
    list.reserve(static_cast<size_t>(values->len));
    for (int64_t i = 0; i < values->len; ++i) list.push_back(call.take(values->u.tensors[i]));
    return list;
  }
};

template <class... R>
struct Results<std::tuple<R...>> {
  static constexpr size_t count = sizeof...(R);
  static std::tuple<R...> from(Call& call, const DmlValue* values) {
    return from(call, values, std::index_sequence_for<R...>());
  }
  template <size_t... I>
  static std::tuple<R...> from(Call& call, const DmlValue* values, std::index_sequence<I...>) {
    return {Results<R>::from(call, values + I)...};
  }
};

// The tensor that an in-place or out= overload returns: its only non-const argument.
inline at::Tensor* written() { return nullptr; }
template <class First, class... Rest>
at::Tensor* written(First&& first, Rest&&... rest) {
  if constexpr (std::is_same_v<First, at::Tensor&>) {
    return &first;
  } else {
    return written(std::forward<Rest>(rest)...);
  }
}

// `Op` is a struct of at::_ops, such as at::_ops::add_Tensor, which has the name and the signature.
template <class Op, class Schema = typename Op::schema>
struct Hot;

template <class Op, class R, class... A>
struct Hot<Op, R(A...)> {
  static inline uint32_t id = 0;

  static R run(A... args) {
    const Measured stage;
    DmlValue values[sizeof...(A)];
    Writer writer;
    size_t i = 0;
    (writer.put(values[i++], args), ...);
    Call call;
    if constexpr (std::is_reference_v<R>) {
      DmlValue result;
      if (C10_UNLIKELY(!call.run(id, writer.device(), values, sizeof...(A), &result, 1))) cpu(args...);
      return *written(std::forward<A>(args)...);
    } else if constexpr (std::is_void_v<R>) {
      if (C10_UNLIKELY(!call.run(id, writer.device(), values, sizeof...(A), nullptr, 0))) cpu(args...);
    } else {
      DmlValue results[Results<R>::count];
      if (C10_UNLIKELY(!call.run(id, writer.device(), values, sizeof...(A), results, Results<R>::count))) {
        return cpu(args...);
      }
      return Results<R>::from(call, results);
    }
  }

  // The CPU fallback takes the arguments from a stack.
  C10_NOINLINE static R cpu(A... args) {
    static const c10::OperatorHandle handle =
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    torch::jit::Stack stack;
    (stack.push_back(boxed(args)), ...);
    fallback(handle, &stack, dml_last_error());
    if constexpr (std::is_reference_v<R>) {
      return *written(std::forward<A>(args)...);
    } else if constexpr (!std::is_void_v<R>) {
      return unboxed<R>(stack);
    }
  }

 private:
  template <class T>
  static at::IValue boxed(const T& x) {
    if constexpr (std::is_same_v<T, at::ITensorListRef>) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : x) list.push_back(t);
      return list;
    } else {
      return at::IValue(x);
    }
  }

  template <class T, size_t... I>
  static T unboxed_tuple(torch::jit::Stack& stack, std::index_sequence<I...>) {
    return T{std::move(stack[I]).template to<std::tuple_element_t<I, T>>()...};
  }

  template <class T>
  static T unboxed(torch::jit::Stack& stack) {
    if constexpr (std::is_same_v<T, at::Tensor> || std::is_same_v<T, c10::Scalar> ||
                  std::is_same_v<T, std::vector<at::Tensor>>) {
      return std::move(stack[0]).template to<T>();
    } else {
      return unboxed_tuple<T>(stack, std::make_index_sequence<std::tuple_size_v<T>>());
    }
  }
};

template <class Op>
void hot(torch::Library& aten, Names& taken) {
  std::string name = Op::name;
  if (*Op::overload_name != 0) name = name + "." + Op::overload_name;
  const std::optional<uint32_t> id = find_operator(name);
  if (!id.has_value()) return;  // the operator runs on the CPU
  Hot<Op>::id = *id;
  aten.impl(name.c_str(), torch::CppFunction(&Hot<Op>::run));
  taken.insert(std::move(name));
}

template <class... Op>
void hot_all(torch::Library& aten, Names& taken, Operators<Op...>) {
  (hot<Op>(aten, taken), ...);
}

}  // namespace

void register_hot(torch::Library& aten, Names& taken) { hot_all(aten, taken, HotOperators()); }

}  // namespace dml
