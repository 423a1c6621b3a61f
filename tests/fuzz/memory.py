"""The memory of a call's arguments: what is written, and by which elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from .calls import Call, originals
from .outcome import Flat, Outcome

# Offset, shape and strides.
View = tuple[int, tuple[int, ...], tuple[int, ...]]


def with_same_storages(call: Call, want: Outcome, got: Outcome) -> tuple[Outcome, Outcome]:
    """The outcomes, in which a storage that only one of them changed is in the other one too, with
    its original contents.
    """
    pairs = list(zip(want.storages, got.storages, strict=False))
    if len(want.storages) != len(got.storages) or all((one is None) == (other is None) for one, other in pairs):
        return want, got
    given = originals(call)

    def filled(one: Outcome, other: Outcome) -> Outcome:
        three = zip(one.storages, other.storages, given, strict=True)
        return replace(one, storages=[was if mine is None and its is not None else mine for mine, its, was in three])

    return filled(want, got), filled(got, want)


def writes_shared(call: Call, *outcomes: Outcome) -> bool:
    """Whether written elements share memory with other elements, so that the order of writes is
    visible.
    """
    changed = zip(*(outcome.storages for outcome in outcomes), strict=False)
    return any(any(pair) and _share(set(views)) for views, pair in zip(_views(call), changed, strict=False))


def stray(call: Call, outcome: Outcome) -> bool:
    """Whether a call wrote to an argument's memory outside of its elements."""
    for views, given, now in zip(_views(call), originals(call), outcome.storages, strict=False):
        if now is not None:
            outside = torch.ones(given.values.numel(), dtype=torch.bool)
            outside[torch.cat(list(_places(views)))] = False
            was, there = (_bits(flat)[: len(outside)][outside] for flat in (given, now))
            if not torch.equal(was, there):
                return True
    return False


def changes_other(call: Call, dense: Outcome, got: Outcome) -> bool:
    """Whether a storage was changed that is not changed if each tensor has its own memory."""
    # All tensors without elements of one dtype share an entry.
    each = {id(tensor) if tensor.numel() else tensor.dtype: tensor for tensor in call.tensors()}
    written: dict[tuple[int, torch.dtype], bool] = {}
    for tensor, now in zip(each.values(), dense.storages, strict=False):
        key = (tensor.untyped_storage().data_ptr(), tensor.dtype)
        written[key] = written.get(key, False) or now is not None
    return any(now is not None and not may for now, may in zip(got.storages, written.values(), strict=False))


def _bits(flat: Flat) -> torch.Tensor:
    return flat.values.view(torch.uint8).reshape(-1, flat.dtype.itemsize)


def _views(call: Call) -> list[list[View]]:
    """The views of each storage, in the order of `Outcome.storages`."""
    views: dict[tuple[int, torch.dtype], list[View]] = {}
    for tensor in call.tensors():
        view = (int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride())
        views.setdefault((tensor.untyped_storage().data_ptr(), tensor.dtype), []).append(view)
    return list(views.values())


def _places(views: list[View]) -> Iterator[torch.Tensor]:
    """The offsets in the storage of the elements of each view."""
    for offset, shape, strides in views:
        places = torch.tensor([offset])
        for size, step in zip(shape, strides, strict=True):
            places = (places[:, None] + torch.arange(size) * step).reshape(-1)
        yield places


def _share(views: set[View]) -> bool:
    """Whether two elements of views of one storage share memory."""
    places = torch.cat(list(_places(list(views))))
    return len(set(places.tolist())) < places.numel()
