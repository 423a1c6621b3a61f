"""One call of an operator as seen by the dispatcher: its input and output tensors, and its source
text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

# Operators that write arguments without declaring it in their schemas.
_WRITES_UNDECLARED = {
    "native_batch_norm": ("running_mean", "running_var"),
    "cudnn_batch_norm": ("running_mean", "running_var"),
    "miopen_batch_norm": ("running_mean", "running_var"),
}
# These return uninitialised memory.
UNWRITTEN = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_"}


def base_name(func: Any) -> str:
    """The name without namespace and overload: "add" of aten.add.Tensor."""
    return str(func._schema.name).partition("::")[2]


def tensors(tree: Any) -> list[torch.Tensor]:
    """Every tensor in nested arguments, in order."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def mapped(change: Callable[[Any], Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Arguments with every leaf replaced by the result of `change`."""
    changed: tuple[Any, Any] = pytree.tree_map(change, (args, kwargs))
    return changed


def arguments(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """The arguments that were given, each with its declaration in the schema."""
    for index, argument in enumerate(func._schema.arguments):
        if index < len(args) and not argument.kwarg_only:
            yield argument, args[index]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The tensors among the arguments that the operator writes."""
    undeclared = _WRITES_UNDECLARED.get(base_name(func), ())
    found: list[torch.Tensor] = []
    for argument, value in arguments(func, args, kwargs):
        alias = argument.alias_info
        if (alias is not None and alias.is_write) or argument.name in undeclared:
            found += tensors(value)
    return found


def results(func: Any, args: Any, kwargs: Any, out: Any) -> list[torch.Tensor | None]:
    """The results of a call: the arguments that it wrote, then the other return values; None for an
    undefined one.
    """
    changed = written(func, args, kwargs)
    returned = [leaf for leaf in pytree.tree_leaves(out) if leaf is None or isinstance(leaf, torch.Tensor)]
    return [*changed, *(leaf for leaf in returned if not any(leaf is one for one in changed))]


def is_pointwise(func: Any) -> bool:
    """Whether each element of the result depends on one element of each argument."""
    name = base_name(func)
    return torch.Tag.pointwise in func.tags or (name.startswith("_foreach_") and "norm" not in name)


def shapes(args: Any, kwargs: Any) -> str:
    """A summary of the tensors' dtypes and shapes: "f32[2, 3], f32[3]"."""
    found = tensors((args, kwargs))
    text = ", ".join(f"{_short(tensor.dtype)}{list(tensor.shape)}" for tensor in found[:6])
    return text + (f" and {len(found) - 6} more" if len(found) > 6 else "")


def _short(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    return (
        name.replace("bfloat", "bf")
        .replace("float", "f")
        .replace("complex", "c")
        .replace("uint", "u")
        .replace("int", "i")
    )


def source(func: Any, args: Any, kwargs: Any) -> tuple[str, list[torch.Tensor]]:
    """The call as Python text, in which `tensor(0)` is the first of the tensors that are returned
    with it.

    A device argument is `device` in the text.
    """
    found: list[torch.Tensor] = []

    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            found.append(value)
            return f"tensor({len(found) - 1})"
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(text, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
        if isinstance(value, torch.device):
            return "device"
        if isinstance(value, float) and not math.isfinite(value):
            return f"float({str(value)!r})"
        return repr(value)

    given = [*map(text, args), *(f"{name}={text(value)}" for name, value in kwargs.items())]
    namespace, _, name = str(func._schema.name).partition("::")
    return f"torch.ops.{namespace}.{name}.{func._overloadname}({', '.join(given)})", found
