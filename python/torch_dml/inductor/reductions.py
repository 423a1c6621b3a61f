"""Reductions: what an invocation accumulates, and how a workgroup's invocations combine it, in a
tree whose shape depends on the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from torch_dml.inductor.errors import MissingKernelError
from torch_dml.inductor.types import computed, highest, literal, lowest

# Writes an instruction that gives a value of a type, and returns the value's text.
Write = Callable[[str, str], str]
# Writes a state, from one and from another one or an element.
Step = Callable[[Write, Sequence[str], Sequence[str]], list[str]]


@dataclass(frozen=True)
class Reduction:
    """A reduction, as the state that it keeps: a value for each of its types."""

    kinds: tuple[str, ...]
    # Literals: the state of no elements.
    initial: tuple[str, ...]
    # The state of one more element, or of two states together.
    add: Step
    combine: Step


def _by(instruction: str, kind: str) -> Step:
    return lambda write, state, value: [write(f"{instruction} {state[0]}, {value[0]}", kind)]


def _extreme(dtype: torch.dtype, sign: str) -> Step:
    """The larger or the smaller element with its index: NaN before all others, and of equal ones
    the first.
    """
    kind, is_float = computed(dtype), dtype.is_floating_point

    def choose(write: Write, state: Sequence[str], other: Sequence[str]) -> list[str]:
        if kind == "bool":
            left, right = (write(f"convert {x[0]}", "i32") for x in (state, other))
        else:
            left, right = state[0], other[0]
        better = write(f"{sign} {right}, {left}", "bool")
        same = write(f"eq {right}, {left}", "bool")
        if is_float:
            left_nan, right_nan = write(f"is_nan {left}", "bool"), write(f"is_nan {right}", "bool")
            only = write(f"and {right_nan}, {write(f'not {left_nan}', 'bool')}", "bool")
            better = write(f"or {better}, {only}", "bool")
            same = write(f"or {same}, {write(f'and {left_nan}, {right_nan}', 'bool')}", "bool")
        earlier = write(f"lt {other[1]}, {state[1]}", "bool")
        better = write(f"or {better}, {write(f'and {same}, {earlier}', 'bool')}", "bool")
        return [
            write(f"select {better}, {other[0]}, {state[0]}", kind),
            write(f"select {better}, {other[1]}, {state[1]}", "i64"),
        ]

    return choose


def _welford_combine(kind: str) -> Step:
    """Mean, sum of squared differences from it, and number of two sets together (Chan, Golub and
    LeVeque, 1983).
    """

    def combine(write: Write, state: Sequence[str], other: Sequence[str]) -> list[str]:
        count = write(f"add {state[2]}, {other[2]}", kind)
        none = write(f"eq {count}, 0.0:{kind}", "bool")
        share = write(f"div {other[2]}, {write(f'select {none}, 1.0:{kind}, {count}', kind)}", kind)
        difference = write(f"sub {other[0]}, {state[0]}", kind)
        mean = write(f"add {state[0]}, {write(f'mul {difference}, {share}', kind)}", kind)
        square = write(f"mul {difference}, {difference}", kind)
        weight = write(f"mul {state[2]}, {share}", kind)
        both = write(f"add {state[1]}, {other[1]}", kind)
        return [mean, write(f"add {both}, {write(f'mul {square}, {weight}', kind)}", kind), count]

    return combine


def _welford_add(kind: str) -> Step:
    """One element more (Welford, 1962)."""

    def add(write: Write, state: Sequence[str], value: Sequence[str]) -> list[str]:
        count = write(f"add {state[2]}, 1.0:{kind}", kind)
        before = write(f"sub {value[0]}, {state[0]}", kind)
        step = write(f"mul {before}, {write(f'reciprocal {count}', kind)}", kind)
        mean = write(f"add {state[0]}, {step}", kind)
        after = write(f"sub {value[0]}, {mean}", kind)
        return [mean, write(f"add {state[1]}, {write(f'mul {before}, {after}', kind)}", kind), count]

    return add


def reduction(name: str, dtype: torch.dtype) -> Reduction:
    """Return the reduction that Inductor calls `name`, of elements of a dtype. An element of
    `argmax` and `argmin` is a value with its index, an i64; one of `welford_combine` a mean, a sum
    of squares and a number.

    Raises NotImplementedError if there is none.
    """
    kind = computed(dtype)
    if name in ("sum", "prod", "max", "min", "any", "xor_sum"):
        initial: bool | float = {"prod": 1, "max": lowest(dtype), "min": highest(dtype)}.get(name, 0)
        words = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "or", "xor_sum": "xor"}
        if kind == "bool":
            words = {"sum": "or", "prod": "and", "max": "or", "min": "and", "any": "or", "xor_sum": "xor"}
        elif name == "any":
            raise MissingKernelError(f"any of {dtype}")
        combine = _by(words[name], kind)
        return Reduction((kind,), (literal(initial, dtype),), combine, combine)
    if name in ("argmax", "argmin"):
        worst = lowest(dtype) if name == "argmax" else highest(dtype)
        choose = _extreme(dtype, "gt" if name == "argmax" else "lt")
        last = literal(torch.iinfo(torch.int64).max, torch.int64)
        return Reduction((kind, "i64"), (literal(worst, dtype), last), choose, choose)
    if name in ("welford_reduce", "welford_combine"):
        zero = literal(0.0, dtype)
        combine = _welford_combine(kind)
        add = _welford_add(kind) if name == "welford_reduce" else combine
        return Reduction((kind,) * 3, (zero,) * 3, add, combine)
    raise MissingKernelError(f"the reduction {name}")
