"""Values of a kernel's text, and the elimination of common subexpressions among them."""

from __future__ import annotations

import enum
from typing import Any

import torch
from torch._inductor.codegen.common import CSE, CSEVariable
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import OpsValue, V
from torch.utils._sympy.value_ranges import ValueRanges

from torch_dml.inductor.types import computed, literal


class Place(enum.Enum):
    """Where a value is defined: a loop over a row consists of what computes indices and of the
    rest, and the body continues behind it.
    """

    BODY = enum.auto()
    INDICES = enum.auto()
    LOOP = enum.auto()
    BEHIND = enum.auto()

    def is_visible_at(self, place: Place) -> bool:
        """Return whether a value that is defined here may be used there."""
        return self in (Place.BODY, place) or (self, place) == (Place.INDICES, Place.LOOP)


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
        self.place = Place.BODY
        # The number that a literal stands for. Beside 16-bit elements it is a float32, as it is in
        # the operators' arithmetic.
        self.number: bool | float | None = None

    def seen_as(self, dtype: torch.dtype) -> TextVariable:
        """Return the same value, of another dtype that is computed in the same type."""
        seen = TextVariable(self.name, self.bounds, dtype, self.shape)
        seen.text, seen.place = self.text, self.place
        return seen


def named(text: str, dtype: torch.dtype) -> TextVariable:
    """Return a value that has been written elsewhere."""
    variable = TextVariable(text, ValueRanges.unknown(), dtype, ())
    variable.text = text
    return variable


def constant(value: bool | float, dtype: torch.dtype) -> TextVariable:
    """Return a literal."""
    variable = named(literal(value, dtype), dtype)
    variable.number = value
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
        place = V.kernel.place_of(buffer)
        key = f"{kind} {dtype} {expr}"
        variable = self.try_get(key)
        if variable is None or not variable.place.is_visible_at(place):
            variable = self.newvar(bounds, dtype, shape)
            variable.place = place
            self.put(key, variable)
            buffer.writeline(f"{variable.text}: {kind} = {expr}")
        else:
            variable.bounds = variable.bounds.tighten(bounds)
            variable.use_count += 1
        return variable
