"""A call of an operator: what it is given, what it does on a device, and its source text."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from ..opinfo.execution import other_seeds, tensors
from ..opinfo.tasks import operators
from .outcome import Error, Flat, Outcome, flat
from .values import FLOATS, flushed

FORWARD, BACKWARD, DOUBLE = "forward", "backward", "double backward"
# What numbers of a dtype may be off by, as perturbations.
EPSILON = {dtype: torch.finfo(dtype).eps for dtype in FLOATS}


@dataclass(frozen=True)
class Variant:
    """How a call is run: in float64, with inputs off by a rounding, with zeros for subnormals, or with another seed."""

    wide: bool = False
    perturbed: int = 0  # 0: not, otherwise which perturbation
    reseeded: bool = False
    flushed: bool = False


@dataclass
class Call:
    """A function, by an expression, and arguments on the CPU, which are never changed."""

    function: str
    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    stage: str = FORWARD
    seed: int = 0
    only_first_moves: bool = False  # the other arguments stay on the CPU

    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        return tensors((self.args, self.kwargs))

    @property
    def precision(self) -> torch.dtype | None:
        """The float dtype that is computed in where results are written to given tensors, perhaps of another."""
        outs = [value for name, value in self.kwargs.items() if isinstance(value, torch.Tensor)]
        inputs = [tensor for tensor in tensors(self.args) if tensor.dtype in EPSILON]
        if not outs:
            return None
        return max((tensor.dtype for tensor in inputs), key=EPSILON.__getitem__, default=torch.float32)

    @property
    def dtype(self) -> str:
        """The first tensor's dtype."""
        found = self.tensors()
        return str(found[0].dtype if found else self.kwargs.get("dtype")).removeprefix("torch.")


@cache
def function(expression: str) -> Callable[..., Any]:
    """The function that an expression of torch, F or opinfo stands for."""
    found: Callable[..., Any] = eval(expression, {"torch": torch, "F": torch.nn.functional, "opinfo": opinfo})
    return found


def opinfo(name: str) -> Any:
    """The operator of OpInfo with this full name."""
    return operators()[name]


class Mover:
    """Copies arguments to a device: views of one storage stay views of one storage, one tensor stays one."""

    def __init__(self, device: torch.device, variant: Variant) -> None:
        self.device, self.variant = device, variant
        # By address and dtype: the storage on the CPU and its copy.
        self.storages: dict[tuple[int, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}
        self.tensors: dict[int, torch.Tensor] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.device):
            return self.device
        if isinstance(value, torch.dtype):
            return torch.float64 if self.variant.wide and value in EPSILON else value
        if isinstance(value, str) and (value == "cpu" or value.startswith("cuda")):
            return str(self.device)
        if isinstance(value, (list, tuple)):
            items = [self(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return value

    def _tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in self.tensors:
            key = (tensor.untyped_storage().data_ptr(), tensor.dtype)
            if key not in self.storages or not key[0]:
                self.storages[key] = self._storage(tensor)
            moved = self.storages[key][1].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            self.tensors[id(tensor)] = moved.detach().requires_grad_(tensor.requires_grad)
        return self.tensors[id(tensor)]

    def _storage(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        original = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        epsilon = EPSILON.get(tensor.dtype)
        given = flushed(original) if self.variant.flushed else original
        if epsilon is None or not (self.variant.wide or self.variant.perturbed):
            return original, given.to(self.device, copy=True)
        storage = given.to(torch.float64, copy=True)
        if self.variant.perturbed:
            draw = torch.Generator().manual_seed(self.variant.perturbed)
            storage *= 1 + epsilon * (2 * torch.randint(0, 2, storage.shape, generator=draw) - 1).double()
        return original, storage


def execute(call: Call, device: torch.device, variant: Variant = Variant()) -> Outcome:
    """Run the call on copies of its arguments."""
    move = Mover(device, variant)
    if call.only_first_moves:
        stay = Mover(torch.device("cpu"), variant)
        args, kwargs = [move(call.args[0]), *stay(call.args[1:])], stay(call.kwargs)
    else:
        args, kwargs = move(call.args), move(call.kwargs)
    torch.manual_seed(call.seed + variant.reseeded)
    outcome = Outcome()
    default, placeless = torch.get_default_dtype(), not call.tensors() and "device" not in kwargs
    try:
        if variant.wide or variant.perturbed:
            torch.set_default_dtype(torch.float64)
        seeds = other_seeds() if variant.reseeded else nullcontext()
        with warnings.catch_warnings(), device if placeless else nullcontext(), seeds:
            warnings.simplefilter("ignore")
            _run(call, args, kwargs, outcome)
            synchronize(device)
    except Exception as error:
        outcome.error = Error(type(error).__name__, " ".join(str(error).split())[:300])
        return outcome
    finally:
        torch.set_default_dtype(default)
    outcome.storages = [_changed(*pair) for pair in move.storages.values()]
    return outcome


def _changed(original: torch.Tensor, storage: torch.Tensor) -> Flat | None:
    now = storage.cpu()
    if now.dtype == original.dtype and torch.equal(now.view(torch.uint8), original.view(torch.uint8)):
        return None
    return flat(now)


def synchronize(device: torch.device) -> None:
    """Wait for the device, which then raises its errors."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()


def _run(call: Call, args: list[Any], kwargs: dict[str, Any], outcome: Outcome) -> None:
    with torch.set_grad_enabled(call.stage != FORWARD):
        output = function(call.function)(*args, **kwargs)
    outcome.results = _flats(output)
    if call.stage == FORWARD:
        return
    leaves = [tensor for tensor in tensors((args, kwargs)) if tensor.requires_grad and tensor.is_leaf]
    outputs = [tensor for tensor in tensors(output) if tensor.requires_grad and tensor.dtype in EPSILON]
    if not leaves or not outputs:
        return
    double = call.stage == DOUBLE
    weights = [_weights(tensor, index).requires_grad_(double) for index, tensor in enumerate(outputs)]
    gradients = torch.autograd.grad(outputs, leaves, weights, create_graph=double, allow_unused=True)
    outcome.gradients = [None if gradient is None else flat(gradient) for gradient in gradients]
    first = [gradient for gradient in gradients if gradient is not None and gradient.requires_grad]
    if not double or not first:
        return
    second = torch.autograd.grad(
        first, [*leaves, *weights], [_weights(tensor, 9 + i) for i, tensor in enumerate(first)], allow_unused=True
    )
    outcome.second = [None if gradient is None else flat(gradient) for gradient in second]


def _weights(like: torch.Tensor, index: int) -> torch.Tensor:
    """Weights that are no sum of each other, exact in every dtype."""
    count = torch.arange(like.numel()).reshape(like.shape)
    return (((count * 5 + index) % 13 - 6) / 4).to(like.dtype).to(like.device)


def _flats(output: Any) -> list[Flat | float | None]:
    if isinstance(output, torch.Tensor):
        return [flat(output)]
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        return [one for item in output for one in _flats(item)]
    if output is None or isinstance(output, (bool, int, float)):
        return [output]
    return []
