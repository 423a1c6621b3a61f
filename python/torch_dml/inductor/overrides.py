"""Inductor's operations on elements, as calls of the engine's elementwise functions: the same that
the operators use which run one by one, so results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import OpOverrides
from torch._inductor.virtualized import V
from torch._prims_common import is_boolean_dtype, is_float_dtype

from torch_dml.inductor.errors import MissingKernelError
from torch_dml.inductor.types import computed, is_rounded, stored
from torch_dml.inductor.values import TextVariable, constant

Operand = TextVariable | bool | int | float

# The names of functions in the engine's catalogue, where Inductor's are others.
_RENAMED = {
    "truediv": "div",
    "floordiv": "div_floor",
    "truncdiv": "div_trunc",
    "mod": "fmod",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "shift_left",
    "rshift": "shift_right",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
    "mul_rn": "mul",
    "div_rn": "div",
    "fmaximum": "fmax",
    "airy_ai": "special_airy_ai",
    "bessel_j0": "special_bessel_j0",
    "bessel_j1": "special_bessel_j1",
    "bessel_y0": "special_bessel_y0",
    "bessel_y1": "special_bessel_y1",
    "i0e": "special_i0e",
    "i1": "special_i1",
    "i1e": "special_i1e",
    "modified_bessel_i0": "special_modified_bessel_i0",
    "modified_bessel_i1": "special_modified_bessel_i1",
    "modified_bessel_k0": "special_modified_bessel_k0",
    "modified_bessel_k1": "special_modified_bessel_k1",
    "scaled_modified_bessel_k0": "special_scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1": "special_scaled_modified_bessel_k1",
    "spherical_bessel_j0": "special_spherical_bessel_j0",
    "gammainc": "igamma",
    "gammaincc": "igammac",
}

# Functions of floats: an integer becomes one of the default dtype.
_OF_FLOATS = [
    "acos",
    "acosh",
    "airy_ai",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "copysign",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "gammainc",
    "gammaincc",
    "hypot",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "igamma",
    "igammac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_ndtr",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtri",
    "nextafter",
    "reciprocal",
    "rsqrt",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "sigmoid",
    "sin",
    "sinh",
    "spherical_bessel_j0",
    "sqrt",
    "tan",
    "tanh",
    "truediv",
    "div_rn",
    "zeta",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]
# Functions whose results have the dtype of their operands.
_OF_ANY = [
    "add",
    "and_",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "floordiv",
    "fmod",
    "lshift",
    "mod",
    "mul",
    "mul_rn",
    "or_",
    "pow",
    "remainder",
    "rshift",
    "sub",
    "truncdiv",
    "xor",
]
# The same, and no result has to be rounded.
_CLOSED = ["abs", "fmaximum", "ceil", "floor", "maximum", "minimum", "neg", "relu", "round", "sign", "trunc"]
_RELATIONS = [
    "eq",
    "ge",
    "gt",
    "isinf",
    "isnan",
    "le",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "signbit",
]


def dtype_of(operands: tuple[Operand, ...]) -> torch.dtype:
    """Return the dtype in which operands meet. Numbers without a dtype adapt to the others."""
    dtypes = [x.dtype for x in operands if isinstance(x, TextVariable) and x.dtype is not None]
    if not dtypes:
        kinds = {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}
        dtypes = [kinds[type(x)] for x in operands if not isinstance(x, TextVariable)]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = torch.promote_types(result, dtype)
    if is_boolean_dtype(result) and any(type(x) in (int, float) for x in operands):
        return torch.int64
    return result


def define(instruction: str, dtype: torch.dtype, kind: str | None = None) -> TextVariable:
    """Write an instruction among the kernel's computations."""
    return V.kernel.cse.generate(V.kernel.compute, instruction, dtype=dtype, kind=kind)  # type: ignore[no-any-return]


def converted(x: Operand, dtype: torch.dtype) -> TextVariable:
    """Return an operand as a value of the dtype."""
    if not isinstance(x, TextVariable):
        return constant(x, dtype)
    if x.dtype == dtype:
        return x
    assert x.dtype is not None
    if is_rounded(dtype):
        return define(f"round_{stored(dtype)} {x.text}", dtype)
    if computed(x.dtype) == computed(dtype):
        return x.seen_as(dtype)
    return define(f"convert {x.text}", dtype)


def element(x: Operand, dtype: torch.dtype) -> TextVariable:
    """Return an operand as an element of the dtype: a number is rounded, as one that is compared or
    chosen is.
    """
    number = x.number if isinstance(x, TextVariable) else x
    if number is None or not (is_rounded(dtype) and dtype.is_floating_point):
        return converted(x, dtype)
    return constant(torch.tensor(number, dtype=dtype).item(), dtype)


def rounded(x: TextVariable, dtype: torch.dtype) -> TextVariable:
    """Return a result as a value of its dtype."""
    return define(f"round_{stored(dtype)} {x.text}", dtype) if is_rounded(dtype) else x


def call(
    name: str,
    operands: tuple[Operand, ...],
    dtype: torch.dtype,
    result: torch.dtype,
    options: str = "",
    closed: bool = False,
) -> TextVariable:
    """Write a call of a function of the catalogue, of operands that meet in a dtype."""
    convert = element if closed or result == torch.bool else converted
    texts = ", ".join(convert(x, dtype).text for x in operands)
    # The dtype of an unrounded result is the one it is computed in.
    exact = result if closed or not is_rounded(result) else _UNROUNDED[computed(result)]
    value = define(f"call {name}{options} {texts}", exact)
    return value if exact == result else rounded(value, result)


_UNROUNDED = {"f32": torch.float32, "i32": torch.int32}


def _of_floats(name: str) -> Callable[..., TextVariable]:
    def function(*operands: Operand) -> TextVariable:
        dtype = dtype_of(operands)
        if not is_float_dtype(dtype):
            dtype = torch.get_default_dtype()
        return call(_RENAMED.get(name, name), operands, dtype, dtype)

    return function


def _of_any(name: str, closed: bool) -> Callable[..., TextVariable]:
    def function(*operands: Operand) -> TextVariable:
        dtype = dtype_of(operands)
        return call(_RENAMED.get(name, name), operands, dtype, dtype, closed=closed)

    return function


def _relation(name: str) -> Callable[..., TextVariable]:
    def function(*operands: Operand) -> TextVariable:
        return call(name, operands, dtype_of(operands), torch.bool)

    return function


def _to_integer(name: str) -> Callable[[TextVariable, torch.dtype], TextVariable]:
    def function(x: TextVariable, dtype: torch.dtype) -> TextVariable:
        of = dtype_of((x,))
        return converted(call(name, (x,), of, of, closed=True), dtype)

    return function


class DmlOverrides(OpOverrides):
    """What Inductor's operations on elements become."""

    @staticmethod
    def constant(value: bool | float, dtype: torch.dtype) -> TextVariable:
        return constant(value, dtype)

    @staticmethod
    def identity(x: TextVariable) -> TextVariable:
        return x

    @staticmethod
    def to_dtype(
        x: Operand,
        dtype: torch.dtype,
        src_dtype: torch.dtype | None = None,
        use_compute_types: bool = True,
    ) -> TextVariable:
        return converted(x, dtype)

    @staticmethod
    def to_dtype_bitcast(x: TextVariable, dtype: torch.dtype, src_dtype: torch.dtype) -> TextVariable:
        x = converted(x, src_dtype)
        if dtype == src_dtype:
            return x
        if src_dtype.itemsize != dtype.itemsize:
            raise MissingKernelError(f"the bits of {src_dtype} as {dtype}")
        if dtype.itemsize >= 4:
            return define(f"bitcast {x.text}", dtype)
        word = define(f"encode_{stored(src_dtype)} {x.text}", torch.uint32)
        return define(f"decode_{stored(dtype)} {word.text}", dtype)

    @staticmethod
    def index_expr(expr: sympy.Expr, dtype: torch.dtype) -> TextVariable:
        return converted(V.kernel.index_value(expr, dtype), dtype)

    # Torch 2.15's, for values that are no indices.
    value_expr = index_expr

    @staticmethod
    def where(condition: Operand, x: Operand, y: Operand) -> TextVariable:
        dtype = dtype_of((x, y))
        texts = [converted(condition, torch.bool), element(x, dtype), element(y, dtype)]
        return define(f"select {', '.join(text.text for text in texts)}", dtype)

    @staticmethod
    def masked(mask: TextVariable, body: Callable[[], Any], other: bool | float) -> TextVariable:
        with V.kernel.mask_loads(mask, other) as inner:
            result = body()
        result = getattr(result, "value", result)
        return DmlOverrides.where(inner, result, constant(other, dtype_of((result,))))

    @staticmethod
    def square(x: Operand) -> TextVariable:
        dtype = dtype_of((x,))
        return call("mul", (x, x), dtype, dtype)

    @staticmethod
    def int_truediv(x: Operand, y: Operand) -> TextVariable:
        dtype = torch.get_default_dtype()
        return call("div", (x, y), dtype, dtype)

    @staticmethod
    def fma(x: Operand, y: Operand, z: Operand) -> TextVariable:
        dtype = dtype_of((x, y, z))
        texts = ", ".join(converted(operand, dtype).text for operand in (x, y, z))
        word = "fused" if dtype.is_floating_point else "fma"
        return rounded(define(f"{word} {texts}", dtype), dtype)

    @staticmethod
    def frexp(x: TextVariable) -> tuple[TextVariable, TextVariable]:
        dtype = dtype_of((x,))
        mantissa = call("frexp", (x,), dtype, dtype, closed=True)
        return mantissa, call("frexp", (x,), dtype, torch.int32, " [result 1]")

    @staticmethod
    def ldexp(x: Operand, exponent: Operand) -> TextVariable:
        dtype = dtype_of((x,))
        return call("ldexp", (x, exponent), dtype, dtype)

    @staticmethod
    def polygamma(order: Operand, x: Operand) -> TextVariable:
        raise MissingKernelError("polygamma")

    @staticmethod
    def rand(seed: TextVariable, offset: TextVariable) -> TextVariable:
        raise MissingKernelError("random numbers are the operators' own")

    randn = randint64 = load_seed = rand_eager = rand

    @staticmethod
    def dml_call(*operands: Operand, function: str, dtype: torch.dtype) -> TextVariable:
        """A function of the catalogue that Inductor has no operation for."""
        return call(function, operands, dtype, dtype)


for _name in _OF_FLOATS:
    setattr(DmlOverrides, _name, staticmethod(_of_floats(_name)))
for _name in _OF_ANY:
    setattr(DmlOverrides, _name, staticmethod(_of_any(_name, closed=False)))
for _name in _CLOSED:
    setattr(DmlOverrides, _name, staticmethod(_of_any(_name, closed=True)))
for _name in ("ceil", "floor", "round", "trunc"):
    setattr(DmlOverrides, f"{_name}_to_int", staticmethod(_to_integer(_name)))
for _name in _RELATIONS:
    setattr(DmlOverrides, _name, staticmethod(_relation(_name)))
