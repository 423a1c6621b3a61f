"""The engine's operators and their arguments, parsed from their schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from torch_dml import engine


@dataclass(frozen=True)
class Argument:
    """An argument of an overload."""

    name: str
    type: str  # Tensor, Tensor[], Scalar, int, int[2], ... with ? where None is allowed
    default: str | None
    keyword: bool
    written: bool  # whether it is changed: self of an in-place operator, out


@dataclass(frozen=True)
class Overload:
    """An overload, such as aten::add.out."""

    name: str  # add.out
    arguments: tuple[Argument, ...]
    results: int

    @property
    def base(self) -> str:
        """The operator's name without overload and without the underscore of the in-place form."""
        name = self.name.partition(".")[0]
        return name[:-1] if name.endswith("_") and not name.endswith("__") else name

    @property
    def expression(self) -> str:
        """The overload as an attribute of torch.ops."""
        name, _, overload = self.name.partition(".")
        return f"torch.ops.aten.{name}.{overload or 'default'}"

    @property
    def in_place(self) -> bool:
        """Whether the first argument is changed."""
        return bool(self.arguments) and self.arguments[0].written

    @property
    def outs(self) -> tuple[Argument, ...]:
        """The `out` tensors."""
        return tuple(argument for argument in self.arguments if argument.written and argument.keyword)


def parse(schema: str) -> Overload:
    """The overload of a schema such as aten::add.Tensor(Tensor self, Tensor other, *, Scalar
    alpha=1) -> Tensor.
    """
    name, _, rest = schema.removeprefix("aten::").partition("(")
    inside, _, results = rest.rpartition(") -> ")
    arguments, keyword = [], False
    for text in re.split(r", (?![^\[]*\])", inside) if inside else []:
        if text == "*":
            keyword = True
            continue
        text, _, default = text.partition("=")
        kind, _, argument = text.rpartition(" ")
        written = "!" in kind
        kind = re.sub(r"\(\w+!?\)", "", kind).replace("SymInt", "int")
        arguments.append(Argument(argument, kind, default or None, keyword, written))
    return Overload(name, tuple(arguments), results.count("Tensor"))


@cache
def overloads() -> dict[str, Overload]:
    """Every overload of the aten namespace in the engine's table, by name."""
    schemas = (schema for schema in engine.schemas() if schema.startswith("aten::"))
    return {overload.name: overload for overload in map(parse, schemas)}
