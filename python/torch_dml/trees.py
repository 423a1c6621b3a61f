"""Tensors in nested containers, moved to a device."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from torch_dml.backend import DEVICE

T = TypeVar("T")


def to_device(tree: T, device: torch.device | str | int | None = None, *, non_blocking: bool = False) -> T:
    """Return `tree` with every tensor on `device`, the current one of torch-dml's by default.

    Lists, tuples, named tuples, sets, dictionaries and dataclasses are traversed to any depth and
    copied, with their own types; objects with a method `to`, such as a module or a batch of a
    tokenizer, are moved by it; anything else is not changed. An object that occurs several times is
    moved once, and the result occurs in the same places. `non_blocking` is as in `Tensor.to`.
    """
    target = torch.device(DEVICE if device is None else device)
    return _move(tree, target, non_blocking, {})  # type: ignore[no-any-return]


def _move(value: Any, device: torch.device, non_blocking: bool, moved: dict[int, tuple[Any, Any]]) -> Any:
    # The original is stored with the result, so that its id is not reused meanwhile.
    known = moved.get(id(value))
    if known is None:
        known = value, _moved(value, device, non_blocking, moved)
        moved[id(value)] = known
    return known[1]


def _moved(value: Any, device: torch.device, non_blocking: bool, moved: dict[int, tuple[Any, Any]]) -> Any:
    def move(inner: Any) -> Any:
        return _move(inner, device, non_blocking, moved)

    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=non_blocking)
    if isinstance(value, type) or value is None or isinstance(value, (str, bytes, int, float, complex)):
        return value
    if callable(getattr(value, "to", None)):
        return value.to(device)
    if isinstance(value, Mapping):
        if type(value) is dict:
            return {key: move(inner) for key, inner in value.items()}
        # A copy preserves what a subclass has besides its items, such as the factory of a
        # defaultdict.
        fresh: Any = copy.copy(value)
        for key, inner in value.items():
            fresh[key] = move(inner)
        return fresh
    if isinstance(value, tuple):
        items = [move(inner) for inner in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, (list, set, frozenset)):
        return type(value)(move(inner) for inner in value)
    if dataclasses.is_dataclass(value):
        fresh = copy.copy(value)
        for field in dataclasses.fields(value):
            # Also for frozen dataclasses: nothing else references the copy yet.
            object.__setattr__(fresh, field.name, move(getattr(value, field.name)))
        return fresh
    return value
