"""Arguments of an overload, by their types and names."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from . import tensors, values
from .calls import EPSILON, FORWARD, Call
from .schemas import Argument, Overload

# Possible strings for arguments with these names.
WORDS: dict[str, tuple[str | None, ...]] = {
    "rounding_mode": (None, "trunc", "floor"),
    "approximate": ("none", "tanh"),
    "reduce": ("sum", "prod", "mean", "amax", "amin"),
    "side": (None, "left", "right"),
}

# Maximum number of elements of a result.
MOST = 1 << 26


def dimension(rng: random.Random, rank: int) -> int:
    """A dimension of a tensor; sometimes one out of range."""
    if rng.random() < 0.02:
        return rng.choice((rank, -rank - 1, 100))
    return rng.randrange(-rank, rank) if rank else rng.choice((0, -1))


def dimensions(rng: random.Random, rank: int) -> list[int]:
    """Some dimensions of a tensor, mostly distinct."""
    if rng.random() < 0.02:
        return [dimension(rng, rank), dimension(rng, rank)]
    chosen = rng.sample(range(rank), rng.randint(0 if rng.random() < 0.2 else min(1, rank), rank))
    return [one - rank if rng.random() < 0.3 else one for one in chosen]


def plain(rng: random.Random, argument: Argument, like: torch.Tensor) -> Any:
    """A value for an argument that is not a tensor, for an operator whose first tensor is
    `like`.
    """
    kind, name = argument.type, argument.name
    if argument.default is not None and rng.random() < 0.3:
        return default(argument)
    if kind.endswith("?") and rng.random() < 0.4:
        return None
    kind = kind.removesuffix("?")
    if name in ("dim", "dims") and kind == "int":
        return dimension(rng, like.dim())
    if name in ("dim", "dims"):
        return dimensions(rng, like.dim())
    if name in WORDS:
        return rng.choice(WORDS[name])
    if name == "reduction":
        return rng.choice((0, 1, 2))
    if name == "correction":
        return rng.choice((0, 1, 1, 2, 0.5))
    if kind == "bool":
        if name in ("half_to_float", "sparse"):
            return False
        # Elements are not unique, and isin with assume_unique=True is undefined for these.
        return rng.random() < 0.5 and name != "assume_unique"
    if kind == "ScalarType":
        return values.dtype(rng)
    if kind == "Scalar":
        return values.scalar(rng, like.dtype)
    if kind == "float":
        return rng.choice((0.5, 1.0, 0.25, 2.0, 0.0, rng.uniform(-3, 3)))
    if kind == "int":
        return rng.choice((0, 1, 2, 3, -1, rng.randint(-6, 6)))
    return None


def default(argument: Argument) -> Any:
    """An argument's default, if it is a number, a string, a list or None."""
    text = argument.default or "None"
    known: dict[str, Any] = {"None": None, "True": True, "False": False, "[]": []}
    if text in known:
        return known[text]
    if text.startswith('"'):
        return text.strip('"')
    number = float(text)
    return int(number) if number.is_integer() and "." not in text else number


def split(overload: Overload, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Divide arguments by name into positional ones and keywords."""
    positional = [given[argument.name] for argument in overload.arguments if not argument.keyword]
    keywords = {
        argument.name: given[argument.name]
        for argument in overload.arguments
        if argument.keyword and argument.name in given
    }
    return positional, keywords


def outs(rng: random.Random, overload: Overload, given: dict[str, Any], aliases: bool) -> dict[str, torch.Tensor]:
    """Tensors for the results: correct, empty, of another dtype or shape, in any layout; with
    `aliases` sometimes an input.

    The correct shapes come from the meta device, which computes nothing.
    """
    forms = _forms(overload, given) if overload.outs else []
    found = {}
    for index, argument in enumerate(overload.outs):
        form = forms[index] if index < len(forms) else None
        # If operands broadcast to more than any memory holds, there is no correct tensor.
        sizes = tuple(form.shape) if form is not None and form.numel() <= MOST else (0,)
        kind, kind_of_size = form.dtype if form is not None else values.dtype(rng), rng.random()
        if kind_of_size < 0.25:
            sizes = (0,)
        elif kind_of_size < 0.32:
            sizes = tensors.shape(rng)
        if rng.random() < 0.2:
            kind = values.dtype(rng)
        found[argument.name] = tensors.tensor(rng, sizes, kind, "whole", plain=sizes == (0,))
    shapes = [form.shape for form in forms]
    fitting = [value for value in given.values() if isinstance(value, torch.Tensor) and [value.shape] == shapes]
    if aliases and len(found) == 1 and fitting and rng.random() < 0.1:
        found = {name: rng.choice(fitting) for name in found}
    return found


def _forms(overload: Overload, given: dict[str, Any]) -> list[torch.Tensor]:
    def meta(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return torch.empty(value.shape, dtype=value.dtype, device="meta")
        return [meta(item) for item in value] if isinstance(value, list) else value

    rest = [argument for argument in overload.arguments if argument not in overload.outs]
    try:
        packet: Any = getattr(torch.ops.aten, overload.name.partition(".")[0])
        result = packet(
            *(meta(given[argument.name]) for argument in rest if not argument.keyword),
            **{argument.name: meta(given[argument.name]) for argument in rest if argument.keyword},
        )
    except Exception:
        return []
    return [result] if isinstance(result, torch.Tensor) else [part for part in result if isinstance(part, torch.Tensor)]


def call(
    rng: random.Random,
    overload: Overload,
    given: dict[str, Any],
    stage: Callable[[random.Random], str],
    aliases: bool = False,
) -> Call:
    """The call of an overload with arguments by name; `out` arguments are created here."""
    given = {**given, **outs(rng, overload, given, aliases)}
    positional, keywords = split(overload, given)
    expression = overload.expression
    chosen = FORWARD if overload.outs else stage(rng)
    if chosen != FORWARD:
        if overload.in_place:
            expression = f"lambda x, *args, **kwargs: {expression}(x.clone(), *args, **kwargs)"
        require_gradients(rng, list(given.values()))
    return Call(expression, positional, keywords, chosen, rng.getrandbits(31))


def require_gradients(rng: random.Random, arguments: list[Any]) -> None:
    """Let most of the float tensors require gradients from now on."""
    for value in arguments:
        for tensor in value if isinstance(value, list) else [value]:
            if isinstance(tensor, torch.Tensor) and tensor.dtype in EPSILON and rng.random() < 0.8:
                tensor.requires_grad_()
