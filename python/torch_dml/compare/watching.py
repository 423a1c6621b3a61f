"""The model that a script names itself."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Model = TypeVar("Model", bound=nn.Module)
# Of the run in progress, in the order in which they were named.
named: list[nn.Module] = []


def watch(model: Model) -> Model:
    """Name the model that `python -m torch_dml compare` compares, and return it. Elsewhere this
    does nothing else.
    """
    named[:] = [model]
    return model
