"""The model that a script chooses for the comparison."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Model = TypeVar("Model", bound=nn.Module)
# Chosen in the current run, in order.
named: list[nn.Module] = []


def watch(model: Model) -> Model:
    """Choose the model that `python -m torch_dml compare` compares, and return it. Has no effect
    otherwise.
    """
    named[:] = [model]
    return model
