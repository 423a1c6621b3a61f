"""A call of an operator: its arguments, its result on a device, and its source text."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from ..opinfo.execution import other_seeds, tensors
from ..opinfo.tasks import operators
from .flushing import Flushing
from .outcome import Error, Flat, Outcome, flat
from .values import COMPLEX, FLOATS, flushed

FORWARD, BACKWARD, DOUBLE = "forward", "backward", "double backward"
# Relative size of perturbations for each dtype.
EPSILON = {dtype: torch.finfo(dtype).eps for dtype in (*FLOATS, *COMPLEX)}
# Relative size of perturbations for finding the amplitude of a function near a number.
COARSE = 1 / 16


@dataclass(frozen=True)
class Variant:
    """How a call is run: in float64, in float32, with inputs perturbed by a rounding (or by a
    sixteenth), with another seed, with subnormal inputs replaced by zeros, with such zeros in
    arithmetic, or with contiguous arguments that share no memory.
    """

    wide: bool = False
    narrow: bool = False
    perturbed: int = 0  # number of the perturbation, 0 for none
    reseeded: bool = False
    flushed: bool = False
    flushing: bool = False
    sparing: bool = False  # no flushing in functions that are exact on every adapter
    coarse: bool = False  # a coarse perturbation
    dense: bool = False


@dataclass
class Call:
    """A function, given by an expression, and arguments on the CPU, which are never changed."""

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
        """The float dtype of the computation if results are written to given tensors, which may
        have another dtype.
        """
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
    """The function of an expression in torch, F or opinfo."""
    names = {"torch": torch, "F": torch.nn.functional, "opinfo": opinfo}
    found: Callable[..., Any] = eval(expression, names)
    return found


def opinfo(name: str) -> Any:
    """The operator of OpInfo with this full name."""
    return operators()[name]


class Mover:
    """Copies arguments to a device: views of one storage stay views of one storage, and a tensor
    stays the same object.
    """

    def __init__(self, device: torch.device, variant: Variant) -> None:
        self.device, self.variant = device, variant
        # By address and dtype: the storage on the CPU and its copy.
        self.storages: dict[tuple[int, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = {}
        self.tensors: dict[int, torch.Tensor] = {}
        self.epsilon = 0.0  # that of the coarsest float dtype among the arguments
        self.integral = False  # whether no argument is a float tensor: a function of floats converts them first

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.device):
            return self.device
        if isinstance(value, torch.dtype):
            return self._float(value) if value in EPSILON else value
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
            dense = self.variant.dense
            laid = tensor.detach().clone(memory_format=torch.contiguous_format) if dense else tensor
            key = (laid.untyped_storage().data_ptr(), laid.dtype)
            if key not in self.storages or not key[0]:
                self.storages[key] = self._storage(laid)
            moved = self.storages[key][1].as_strided(laid.shape, laid.stride(), laid.storage_offset())
            moved = moved.conj() if laid.is_conj() else moved
            moved = torch._neg_view(moved) if laid.is_neg() else moved
            self.tensors[id(tensor)] = moved.detach().requires_grad_(tensor.requires_grad)
        return self.tensors[id(tensor)]

    def _storage(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        original = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        converted = self.integral and self.variant.perturbed and not self.variant.narrow
        epsilon = EPSILON.get(torch.float32 if converted else tensor.dtype)
        given = flushed(original) if self.variant.flushed else original
        if epsilon is None or not (self.variant.wide or self.variant.narrow or self.variant.perturbed):
            return original, given.to(self.device, copy=True)
        dtype = self._float(tensor.dtype)
        epsilon = max(epsilon, EPSILON.get(dtype, 0)) if self.variant.narrow else epsilon
        self.epsilon = max(self.epsilon, epsilon)
        wide = given.to(torch.complex128 if given.is_complex() else torch.float64, copy=True)
        return original, self._perturbed(wide, epsilon).to(dtype)

    def _float(self, dtype: torch.dtype) -> torch.dtype:
        """The dtype in place of a float dtype, or of integers that are converted."""
        narrow, wide = (torch.complex64, torch.complex128) if dtype.is_complex else (torch.float32, torch.float64)
        if self.variant.narrow:
            return narrow
        return wide if self.variant.wide or self.variant.perturbed else dtype

    def rounded(self, weights: torch.Tensor) -> torch.Tensor:
        """The perturbed start of a gradient."""
        return self._perturbed(weights, self.epsilon).to(weights.dtype)

    def _perturbed(self, numbers: torch.Tensor, epsilon: float) -> torch.Tensor:
        if not self.variant.perturbed:
            return numbers
        if numbers.is_complex():
            parts = torch.view_as_real(numbers.resolve_conj().resolve_neg())
            return torch.view_as_complex(self._perturbed(parts, epsilon))
        # Each tensor has its own perturbation, so that combined effects are visible. If two tensors
        # are perturbed in the same direction in the third perturbation, they are in opposite
        # directions in the fourth.
        index, tensor = self.variant.perturbed, len(self.storages)
        draw = torch.Generator().manual_seed(min(index, 3) + 1000 * tensor)
        signs = (2 * torch.randint(0, 2, numbers.shape, generator=draw) - 1).double()
        size = COARSE if self.variant.coarse else epsilon
        return numbers * (1 + size * (-signs if index == 4 and tensor % 2 else signs))


def execute(call: Call, device: torch.device, variant: Variant = Variant()) -> Outcome:
    """Run the call on copies of its arguments."""
    move = Mover(device, variant)
    move.integral = not any(tensor.dtype in EPSILON for tensor in tensors(call.args))
    if call.only_first_moves:
        stay = Mover(torch.device("cpu"), variant)
        args, kwargs = [move(call.args[0]), *stay(call.args[1:])], stay(call.kwargs)
    else:
        args, kwargs = move(call.args), move(call.kwargs)
    torch.manual_seed(call.seed + variant.reseeded)
    outcome = Outcome()
    default, placeless = torch.get_default_dtype(), not call.tensors() and "device" not in kwargs
    try:
        if (variant.wide or variant.perturbed) and not variant.narrow:
            torch.set_default_dtype(torch.float64)
        seeds = other_seeds() if variant.reseeded else nullcontext()
        flushing = Flushing(variant.sparing) if variant.flushing else nullcontext()
        with warnings.catch_warnings(), device if placeless else nullcontext(), seeds, flushing:
            warnings.simplefilter("ignore")
            _run(call, args, kwargs, move, outcome)
            synchronize(device)
    except Exception as error:
        outcome.error = Error(type(error).__name__, " ".join(str(error).split())[:300])
        _forget_errors(device)
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


def originals(call: Call) -> list[Flat]:
    """The storages of the arguments before the call, in the order of `Outcome.storages`."""
    move = Mover(torch.device("cpu"), Variant())
    move((call.args, call.kwargs))
    return [flat(original) for original, _ in move.storages.values()]


def synchronize(device: torch.device) -> None:
    """Wait for the device, which then raises pending errors."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize()


def _forget_errors(device: torch.device) -> None:
    """Raise the device's pending errors now, in this thread and in that of gradients, and not in
    another case.
    """

    def wait(gradient: torch.Tensor) -> None:
        synchronize(gradient.device)

    with suppress(Exception):
        synchronize(device)
    with suppress(Exception), torch.enable_grad():
        leaf = torch.zeros((), device=device, requires_grad=True)
        leaf.register_hook(wait)  # type: ignore[no-untyped-call]
        leaf.clone().backward()  # type: ignore[no-untyped-call]


def _run(call: Call, args: list[Any], kwargs: dict[str, Any], move: Mover, outcome: Outcome) -> None:
    with torch.set_grad_enabled(call.stage != FORWARD):
        output = function(call.function)(*args, **kwargs)
    outcome.results = _flats(output)
    if call.stage == FORWARD:
        return
    leaves = [tensor for tensor in tensors((args, kwargs)) if tensor.requires_grad and tensor.is_leaf]
    found = [tensor for tensor in tensors(output) if tensor.layout == torch.strided]
    outputs = [tensor for tensor in found if tensor.requires_grad and tensor.dtype in EPSILON]
    if not leaves or not outputs:
        return
    double = call.stage == DOUBLE
    weights = [move.rounded(_weights(tensor, index)).requires_grad_(double) for index, tensor in enumerate(outputs)]
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
    """Weights none of which is a sum of others, exact in every dtype."""
    count = torch.arange(like.numel()).reshape(like.shape)
    weights = ((count * 5 + index) % 13 - 6) / 4
    if like.is_complex():
        weights = torch.complex(weights, ((count * 7 + index) % 11 - 5) / 4)
    return weights.to(like.dtype).to(like.device)


def _flats(output: Any) -> list[Flat | float | None]:
    if isinstance(output, torch.Tensor):
        return [flat(output)] if output.layout == torch.strided else _parts(output)
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        return [one for item in output for one in _flats(item)]
    if output is None or isinstance(output, (bool, int, float)):
        return [output]
    if isinstance(output, complex):
        return [output.real, output.imag]
    return []


def _parts(sparse: torch.Tensor) -> list[Flat | float | None]:
    """The components of a sparse tensor."""
    if sparse.layout == torch.sparse_coo:
        parts: list[Any] = [sparse._indices(), sparse._values(), sparse.is_coalesced()]
    elif sparse.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [sparse.crow_indices(), sparse.col_indices(), sparse.values()]
    else:
        parts = [sparse.ccol_indices(), sparse.row_indices(), sparse.values()]
    return _flats([*parts, *sparse.shape])
