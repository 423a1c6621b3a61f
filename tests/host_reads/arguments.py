"""Random arguments for a schema: a number determines everything about a draw."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .registry import Argument, Operator

KINDS = ("strided", "coo", "csr", "quantized", "nested")
# Floats are most frequent, since most operators support them.
DTYPES = [
    *[torch.float32] * 7,
    *[torch.int64] * 2,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]
RANKS = [0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5]
# Possible string arguments.
WORDS = ["mean", "sum", "none", "max", "ij", "constant", "floor", "reflect", "cpu", "left", "abc", ""]
OF_INTEGERS = re.compile(r"ind|length|offset|size|target|state|quasi|shape|bins|crow|ccol|inverse|perm|choice|batches")
OF_BOOLS = re.compile(r"mask|cond|found_inf")


class CannotDraw(Exception):
    """There are no values of that type here."""


@dataclass
class Draw:
    """The state that the arguments of one call share."""

    kind: str
    random: random.Random
    dtype: torch.dtype = torch.float32
    shape: tuple[int, ...] = ()
    tensors: int = 0
    generator: torch.Generator = field(default_factory=torch.Generator)

    @classmethod
    def of(cls, kind: str, name: str, number: int) -> Draw:
        """Start draw `number` for an operator."""
        chance = random.Random(f"{kind} {name} {number}")
        draw = cls(kind, chance)
        draw.dtype = torch.float32 if kind == "quantized" else chance.choice(DTYPES)
        rank = 2 if kind == "csr" else chance.choice(RANKS)
        sizes = (1, 2, 3, 4) if chance.random() < 0.5 else (chance.choice((2, 3, 4)),)
        draw.shape = tuple(chance.choice(sizes) for _ in range(rank))
        draw.generator.manual_seed(number)
        return draw

    def plain(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A strided tensor with small numbers."""
        if dtype == torch.bool:
            return torch.rand(shape, generator=self.generator) < 0.6
        if not dtype.is_floating_point and not dtype.is_complex:
            top = self.random.choice((1, 2, 3))
            return torch.randint(0, top + 1, shape, generator=self.generator).to(dtype)
        values = torch.randn(shape, generator=self.generator)
        return (values.abs() if self.random.random() < 0.4 else values).to(dtype)

    def tensor(self, argument: Argument) -> torch.Tensor:
        """A tensor for an argument with this name."""
        self.tensors += 1
        first = self.tensors == 1
        dtype, chance = self.dtype, self.random
        if OF_INTEGERS.search(argument.name) and not first and chance.random() < 0.8:
            dtype = torch.int64
        elif OF_BOOLS.search(argument.name) and chance.random() < 0.8:
            dtype = torch.bool
        elif chance.random() < 0.1:
            dtype = chance.choice(DTYPES)
        shape = self.shape if first else self._shape()
        tensor = self.plain(shape, dtype)
        return self._of_kind(tensor) if first or chance.random() < 0.4 else tensor

    def _shape(self) -> tuple[int, ...]:
        chance, shape = self.random, self.shape
        which = chance.random()
        if which < 0.5:
            return shape
        if which < 0.75 and shape:
            return (chance.choice(shape),)
        if which < 0.82 and len(shape) > 1:
            return (*shape[:-2], shape[-1], shape[-2])
        if which < 0.9:
            return ()
        return tuple(chance.choice((1, 2, 3)) for _ in range(chance.choice(RANKS)))

    def _of_kind(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.kind == "coo":
            return tensor.to_sparse()
        if self.kind == "csr" and tensor.dim() == 2:
            return tensor.to_sparse_csr()
        if self.kind == "quantized" and tensor.dtype == torch.float32:
            dtype = self.random.choice((torch.quint8, torch.qint8, torch.qint32))
            if tensor.dim() > 0 and self.random.random() < 0.2:
                scales = torch.full((tensor.size(0),), 0.1)
                return torch.quantize_per_channel(tensor, scales, torch.zeros(tensor.size(0)).long(), 0, dtype)
            return torch.quantize_per_tensor(tensor, 0.1, 2, dtype)
        if self.kind == "nested" and tensor.dim() > 0:
            return torch.nested.nested_tensor([tensor, tensor[: max(1, tensor.size(0) - 1)]])
        return tensor

    def integer(self, argument: Argument) -> int:
        """An integer that may be a dimension or a small size."""
        if argument.name in ("groups", "num_groups", "n_groups", "blank", "padding_idx"):
            return self.random.choice((1, 0, -1, 2))
        return self.random.choice((0, 0, 1, 1, 2, 2, 3, 4, 8, -1))

    def integers(self) -> list[int]:
        """Integers that may be dimensions, sizes or strides."""
        chance, count = self.random, len(self.shape)
        which = chance.random()
        if which < 0.3:
            return list(self.shape)
        length = count if which < 0.5 else chance.choice((1, 1, 2, 2, 3, 4))
        if which < 0.7:
            return [chance.choice((0, 1, 1, 2))] * length
        return [chance.choice((0, 1, 2, 3)) for _ in range(length)]

    def number(self) -> float:
        """A float."""
        return self.random.choice((0.0, 0.5, 1.0, 1.0, 2.0, 1e-5, -1.0))

    def value(self, argument: Argument, kind: str) -> Any:
        """A value of a type."""
        if optional := re.fullmatch(r"Optional\[(.*)\]", kind):
            return None if self.random.random() < 0.35 else self.value(argument, optional[1])
        if make := SIMPLE.get(kind):
            return make(self, argument)
        if item := re.fullmatch(r"List\[(.*)\]", kind):
            return [self.value(argument, item[1]) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3)))]
        if entry := re.fullmatch(r"Dict\[(\w+), (.*)\]", kind):
            return {self.value(argument, entry[1]): self.value(argument, entry[2])}
        if pair := re.fullmatch(r"Tuple\[(\w+), (\w+)\]", kind):
            return (self.value(argument, pair[1]), self.value(argument, pair[2]))
        raise CannotDraw(kind)


def _packed(draw: Draw, dims: int) -> Any:
    weights = torch.quantize_per_tensor(torch.randn((4, 4, *[3] * dims), generator=draw.generator), 0.1, 0, torch.qint8)
    if dims == 0:
        return torch.ops.quantized.linear_prepack(weights, torch.zeros(4))
    prepack = torch.ops.quantized.conv2d_prepack if dims == 2 else torch.ops.quantized.conv3d_prepack
    return prepack(weights, torch.zeros(4), [1] * dims, [1] * dims, [1] * dims, 1)


def _packed_embedding(draw: Draw, _: Argument) -> Any:
    rows = torch.randn((4, 4), generator=draw.generator)
    weights = torch.quantize_per_channel(rows, torch.full((4,), 0.1), torch.zeros(4), 0, torch.quint8)
    return torch.ops.quantized.embedding_bag_prepack(weights)


def _number(draw: Draw, _: Argument) -> Any:
    return draw.random.choice((0, 1, 2, 0.5, 1.0, -1.0, True))


def _any(draw: Draw, argument: Argument) -> Any:
    which = draw.random.random()
    return draw.tensor(argument) if which < 0.7 else draw.integer(argument) if which < 0.85 else draw.number()


SIMPLE: dict[str, Callable[[Draw, Argument], Any]] = {
    "Tensor": Draw.tensor,
    "int": Draw.integer,
    "SymInt": Draw.integer,
    "float": lambda draw, _: draw.number(),
    "complex": lambda draw, _: complex(draw.number(), 1),
    "number": _number,
    "bool": lambda draw, _: draw.random.random() < 0.5,
    "str": lambda draw, _: draw.random.choice(WORDS),
    "List[int]": lambda draw, _: draw.integers(),
    "List[float]": lambda draw, _: [draw.number() for _ in range(draw.random.choice((1, 2, 2, 3)))],
    "Device": lambda draw, _: torch.device("cpu"),
    "ScalarType": lambda draw, _: draw.dtype if draw.random.random() < 0.5 else draw.random.choice(DTYPES),
    "Layout": lambda draw, _: torch.strided if draw.random.random() < 0.6 else torch.sparse_coo,
    "MemoryFormat": lambda draw, _: draw.random.choice(
        (torch.contiguous_format, torch.preserve_format, torch.channels_last)
    ),
    "Generator": lambda draw, _: torch.Generator(),
    "Storage": lambda draw, argument: draw.tensor(argument).untyped_storage(),
    "t": _any,
    "t1": _any,
    "t2": _any,
    "tVal": _any,
    "Any": _any,
    "__torch__.torch.classes.quantized.LinearPackedParamsBase": lambda draw, _: _packed(draw, 0),
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase": lambda draw, _: _packed(draw, 2),
    "__torch__.torch.classes.quantized.Conv3dPackedParamsBase": lambda draw, _: _packed(draw, 3),
    "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase": _packed_embedding,
}


def draw(operator: Operator, kind: str, number: int) -> tuple[list[Any], dict[str, Any]]:
    """CPU arguments: positional ones, and keywords."""
    common = Draw.of(kind, operator.name, number)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in operator.arguments:
        if argument.has_default and (common.random.random() < 0.6 or argument.type in ("bool", "Optional[Generator]")):
            value = argument.default
            if argument.keyword and value is None:
                continue
        else:
            value = common.value(argument, argument.type)
        if argument.keyword:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs
