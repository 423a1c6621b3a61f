"""Calls of OpInfo's operators: its samples, with other numbers, layouts and forms."""

from __future__ import annotations

import random
import re
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

import numpy
import torch

from ..opinfo import tasks
from ..opinfo.execution import ARGUMENTS_ON_CPU
from ..opinfo.page import NATIVE, read_marks
from ..support.environment import ROOT
from . import tensors, values
from .calls import BACKWARD, DOUBLE, EPSILON, FORWARD, Call, function, opinfo

PAGE = ROOT / "docs" / "reference" / "operators.md"
# Operators that write each element of a source to an index: if several have one index, any may win.
WRITES_ANY = re.compile(r"(scatter|index_copy|index_put|put)")
# Samples with larger tensors are skipped.
MAX_ELEMENTS = 300_000


class NoSamples(Exception):
    """OpInfo has no samples for an operator and a dtype."""


@cache
def operators() -> tuple[str, ...]:
    """Names of OpInfo's operators for which the device has a kernel in some dtype; the running
    torch may lack some.
    """
    marks = read_marks(PAGE)
    native = {task.operator for task, mark in marks.items() if mark == NATIVE}
    return tuple(sorted(native & set(tasks.operators())))


def is_pointwise(name: str) -> bool:
    """Whether each element of a result depends on one element of each argument."""
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

    return isinstance(opinfo(name), (BinaryUfuncInfo, UnaryUfuncInfo))


@lru_cache(maxsize=6)
def samples(name: str, dtype: torch.dtype) -> tuple[Any, ...]:
    """OpInfo's samples of an operator that consist of dense CPU tensors with the ten dtypes."""
    for seed in (torch.manual_seed, numpy.random.seed, random.seed):
        seed(0)
    try:
        # The same samples on every machine, so none that depend on another device.
        with patch("torch.cuda.is_available", return_value=False):
            found = list(opinfo(name).sample_inputs("cpu", dtype, requires_grad=False))
    except Exception:  # Some operators have no samples in some dtypes.
        return ()
    are = dtype.is_complex
    return tuple(sample for sample in found if _usable((sample.input, sample.args, sample.kwargs), are))


def _usable(value: Any, complex_too: bool) -> bool:
    if isinstance(value, torch.Tensor):
        known = value.dtype in values.DTYPES or (complex_too and value.dtype in values.COMPLEX)
        dense = value.layout == torch.strided and not value.is_nested and known
        return dense and value.numel() <= MAX_ELEMENTS
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return all(_usable(item, complex_too) for item in value)
    return complex_too or not isinstance(value, complex)


def make(rng: random.Random, name: str) -> Call:
    """A call of an operator with one of its samples, modified."""
    op = opinfo(name)
    usual = [dtype for dtype in values.DTYPES if dtype in op.dtypes]
    weights = [weight for dtype, weight in zip(values.DTYPES, values.WEIGHTS, strict=True) if dtype in usual]
    dtype = rng.choices(usual, weights)[0] if usual and rng.random() < 0.93 else values.dtype(rng)
    if values.are_complex():
        dtype = rng.choice([one for one in (torch.complex64, *values.COMPLEX) if one in op.dtypes])
    found = samples(name, dtype) or samples(name, torch.float32)
    if not found:
        raise NoSamples(f"{name} has no samples of {dtype}")
    sample = rng.choice(found)
    change = _Changer(rng, dtype, name)
    args = [change(sample.input), *(change(argument) for argument in sample.args)]
    kwargs = {key: change(argument) for key, argument in sample.kwargs.items()}
    stage = rng.choices((FORWARD, BACKWARD, DOUBLE), (5, 4, 2))[0] if op.supports_autograd else FORWARD
    stays = op.name in ARGUMENTS_ON_CPU
    call = Call(_expression(rng, name, stage), args, kwargs, stage, rng.getrandbits(31), only_first_moves=stays)
    if stage != FORWARD:
        for tensor in call.tensors():
            if tensor.dtype in EPSILON and rng.random() < 0.8:
                tensor.requires_grad_()
    return call


class _Changer:
    """Replaces tensors' numbers and layouts."""

    def __init__(self, rng: random.Random, dtype: torch.dtype, name: str) -> None:
        pointwise = is_pointwise(name)
        self.rng, self.dtype = rng, dtype
        # Integers are often indices or sizes, and are not changed.
        self.numbers = (dtype in EPSILON or pointwise) and rng.random() < 0.4
        # Whether an infinite weight is multiplied with the zeros of the padding depends on the
        # implementation.
        borders = name.startswith(("nn.functional.conv", "nn.functional.interpolate", "nn.functional.grid_sample"))
        self.palette = "normal" if borders else values.palette(rng, bounded=not pointwise)
        self.layouts = rng.random() < 0.6
        self.writes_any = WRITES_ANY.fullmatch(name) is not None

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value.detach())
        if isinstance(value, (list, tuple)):
            items = [self(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return value

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.numbers and tensor.dtype == self.dtype:
            tensor = values.numbers(self.rng, tensor.numel(), tensor.dtype, self.palette).reshape(tensor.shape)
        distinct = self.writes_any and tensor.dtype not in EPSILON
        if not self.layouts:
            return tensor.clone()
        return tensors.marked(self.rng, tensors.placed(self.rng, tensor, distinct))


def _expression(rng: random.Random, name: str, stage: str) -> str:
    op, kind = opinfo(name), rng.random()
    if stage == FORWARD and kind < 0.2 and op.inplace_variant is not None and op.inplace_variant is not op.op:
        return f"opinfo({name!r}).inplace_variant"
    for expression in (f"torch.{name}", f"F.{name.rpartition('.')[2]}"):
        try:
            if function(expression) is op.op:
                return expression
        except AttributeError:
            pass
    return f"opinfo({name!r}).op"
