"""Values of a kernel's text, and the elimination of common subexpressions among them."""

from __future__ import annotations

from typing import Any

import torch
from torch._inductor.codegen.common import CSE, CSEVariable
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import OpsValue, V
from torch.utils._sympy.value_ranges import ValueRanges

from torch_dml.inductor.types import computed, literal


class TextVariable(CSEVariable):
    """A value of the text, `%tmp3`, or a literal. Its dtype is PyTorch's, not the type that it is
    computed in: a bfloat16's text is an f32 which has been rounded.
    """

    def __init__(
        self,
        name: str,
        bounds: ValueRanges[Any],
        dtype: torch.dtype | None = None,
        shape: Any = None,
    ) -> None:
        """Name a value of a dtype."""
        super().__init__(name, bounds, dtype, shape)
        self.text = f"%{name}"
        # Whether it is defined outside the loops, and so visible in all that follows.
        self.outside = False

    def seen_as(self, dtype: torch.dtype) -> TextVariable:
        """Return the same value, of another dtype that is computed in the same type."""
        seen = TextVariable(self.name, self.bounds, dtype, self.shape)
        seen.text, seen.outside = self.text, self.outside
        return seen


def constant(value: bool | float, dtype: torch.dtype) -> TextVariable:
    """Return a literal."""
    text = literal(value, dtype)
    variable = TextVariable(text, ValueRanges.unknown(), dtype, ())
    variable.text = text
    variable.outside = True
    return variable


class TextCSE(CSE[TextVariable, str]):
    """Defines each value once. An expression is an instruction, `add %a, %b`, whose value has the
    dtype that is given.
    """

    def generate(
        self,
        buffer: IndentedBuffer,
        expr: Any,
        *,
        bounds: ValueRanges[Any] = ValueRanges.unknown(),  # noqa: B008 (as the base class)
        write: bool = True,
        assignment: bool = True,
        dtype: torch.dtype | None = None,
        shape: Any = None,
        kind: str | None = None,
    ) -> TextVariable:
        """Return the value of an instruction; `kind` is its type where the dtype's is another."""
        if isinstance(expr, OpsValue):
            expr = expr.value
        if isinstance(expr, TextVariable):
            expr.bounds = expr.bounds.tighten(bounds)
            expr.use_count += 1
            return expr
        assert isinstance(expr, str), expr
        assert dtype is not None, expr
        kind = kind or computed(dtype)
        outside = V.kernel.is_outside(buffer)
        key = f"{kind} {dtype} {expr}"
        variable = self.try_get(key)
        if variable is None or (outside and not variable.outside):
            variable = self.newvar(bounds, dtype, shape)
            variable.outside = outside
            self.put(key, variable)
            buffer.writeline(f"{variable.text}: {kind} = {expr}")
        else:
            variable.bounds = variable.bounds.tighten(bounds)
            variable.use_count += 1
        return variable
