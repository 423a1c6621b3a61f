"""One sample of an operator on one device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from unittest import mock

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .tasks import HALVES

# Operators whose arguments, including the tensor of indices, stay on the CPU.
ARGUMENTS_ON_CPU = {"tensor_split"}
GRADIENT_SEED = 7


class Operator(Protocol):
    """An operator, or what stands for it."""

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""


@dataclass(frozen=True)
class Outcome:
    """The results of an operator, and the gradients of its inputs if there are any."""

    output: Any
    gradients: list[torch.Tensor | None] | None = None


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in nested lists, tuples and dictionaries, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def moved(value: Any, device: torch.device) -> Any:
    """A copy of `value` in which every tensor is a leaf on `device`, and every device is
    `device`.
    """
    if isinstance(value, torch.Tensor):
        return value.detach().to(device, copy=True).requires_grad_(value.requires_grad)
    if isinstance(value, torch.device):
        return device
    if isinstance(value, str) and (value == "cpu" or value.startswith("cuda")):
        return str(device)
    if isinstance(value, (list, tuple)):
        items = [moved(item, device) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    return value


def widened(value: Any) -> Any:
    """`value` with float32 in place of float16 and bfloat16."""
    if isinstance(value, torch.Tensor):
        return value.detach().float() if value.dtype in HALVES else value.detach()
    if isinstance(value, torch.dtype):
        return torch.float32 if value in HALVES else value
    if isinstance(value, (list, tuple)):
        return type(value)(widened(item) for item in value)
    if isinstance(value, dict):
        return {key: widened(item) for key, item in value.items()}
    return value


def execute(op: Operator, sample: SampleInput, device: torch.device, seed: int, backward: bool) -> Outcome:
    """Run a copy of the sample on `device`; with `backward` also compute gradients, from a random
    output gradient.
    """
    torch.manual_seed(seed)
    inputs = (sample.input, sample.args, sample.kwargs)
    # Factories that have neither a tensor nor a device argument.
    placeless = not tensors(inputs) and "device" not in sample.kwargs
    with device if placeless else contextlib.nullcontext(), torch.set_grad_enabled(backward):
        argument_device = torch.device("cpu") if op.name in ARGUMENTS_ON_CPU else device
        first = moved(sample.input, device)
        args, kwargs = moved(sample.args, argument_device), moved(sample.kwargs, argument_device)
        output = op(first, *args, **kwargs)
        if not backward:
            return Outcome(output)
        outputs = [tensor for tensor in tensors(sample.output_process_fn_grad(output)) if tensor.requires_grad]
        leaves = [tensor for tensor in tensors((first, args, kwargs)) if tensor.requires_grad]
        if not outputs or not leaves:
            return Outcome(output)
        torch.manual_seed(GRADIENT_SEED)
        weights = [torch.randn(tensor.shape, dtype=tensor.dtype).to(device) for tensor in outputs]
        return Outcome(output, list(torch.autograd.grad(outputs, leaves, weights, allow_unused=True)))


def execute_in_float32(op: OpInfo, sample: SampleInput) -> Any:
    """The result of a half-precision sample in float32 on the CPU."""
    with torch.no_grad():
        return op(widened(sample.input), *widened(sample.args), **widened(sample.kwargs))


@contextlib.contextmanager
def other_seeds() -> Iterator[None]:
    """Samples that set a fixed seed get another one."""
    manual_seed: Callable[[int], torch.Generator] = torch.manual_seed
    with mock.patch.object(torch, "manual_seed", lambda seed: manual_seed(seed + 1)):
        yield
