"""Identical random numbers in all runs: numbers that an operator would draw on the device are drawn
on the CPU and copied.

Every draw has its own seed, its number, so that runs agree although one has drawn a different
amount before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torch_dml.compare import attention, calls

_aten = torch.ops.aten
# For these dtypes the CPU draws in float32.
_DRAWN_AS_FLOAT32 = {torch.float16, torch.bfloat16, torch.float64}


class AlikeRandom(TorchDispatchMode):
    """Runs the device's operators with random numbers that the CPU has drawn; `seed` is the seed of
    the first draw.
    """

    def __init__(self, device: torch.device, seed: int) -> None:
        """Start without any draws."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device
        self.seed = seed
        self.drawn = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Draw random numbers, or run the operator."""
        kwargs = kwargs or {}
        if not self.concerns(args, kwargs):
            return func(*args, **kwargs)
        if attention.drops(func, args, kwargs):
            if func is attention.FORWARD:
                return attention.forward(self.run, self._mask, *args, **kwargs)
            return attention.backward(self.run, *args, **kwargs)
        random = torch.Tag.nondeterministic_seeded in func.tags
        if random and not calls.base_name(func).startswith("_scaled_dot_product"):
            return self._draw(func, args, kwargs)
        return self.run(func, args, kwargs)

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator that draws no random numbers."""
        return func(*args, **kwargs)

    def concerns(self, args: Any, kwargs: Any) -> bool:
        """Whether a call involves the device."""
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == self.device.type:
            return True
        return any(tensor.device.type == self.device.type for tensor in calls.tensors((args, kwargs)))

    def _draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is _aten.native_dropout.default:
            return self._dropout(*args, **kwargs)
        given = calls.tensors((args, kwargs))
        device = next((one.device for one in given if one.device.type == self.device.type), kwargs.get("device"))
        cpu_args, cpu_kwargs = calls.mapped(_for_cpu, args, kwargs)
        made = self._seeded(lambda: calls.results(func, cpu_args, cpu_kwargs, func(*cpu_args, **cpu_kwargs)))
        changed = calls.written(func, args, kwargs)
        for target, value in zip(changed, made, strict=False):
            self.run(_aten.copy_.default, (target, value), {})
        if changed:
            return changed[0]
        dtype = kwargs.get("dtype") or (given[0].dtype if given and given[0].is_floating_point() else None)
        handed = [
            self.run(
                _aten._to_copy.default,
                (value,),
                {"device": device, "dtype": dtype if dtype and value.is_floating_point() else value.dtype},
            )
            for value in made
        ]
        return handed[0] if len(handed) == 1 else tuple(handed)

    def _dropout(self, tensor: torch.Tensor, probability: float, train: bool | None) -> Any:
        if train is False:
            return self.run(_aten.native_dropout.default, (tensor, probability, train), {})
        mask = self._mask(tensor.shape, probability, tensor.device)
        scale = 0.0 if probability == 1 else 1 / (1 - probability)
        # The product is the same as the gradient's.
        return self.run(_aten.native_dropout_backward.default, (tensor, mask, scale), {}), mask

    def _mask(self, shape: torch.Size, probability: float, device: torch.device) -> torch.Tensor:
        mask = self._seeded(lambda: torch.empty(shape).bernoulli_(1 - probability).bool())
        return self.run(_aten._to_copy.default, (mask,), {"device": device})  # type: ignore[no-any-return]

    def _seeded(self, draw: Callable[[], Any]) -> Any:
        generator = torch.default_generator
        before = generator.get_state()
        generator.manual_seed(self.seed * 1_000_003 + self.drawn)
        self.drawn += 1
        try:
            return draw()
        finally:
            generator.set_state(before)


def _for_cpu(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().to(
            device="cpu", dtype=torch.float32 if leaf.dtype in _DRAWN_AS_FLOAT32 else leaf.dtype, copy=True
        )
    if isinstance(leaf, torch.dtype):
        return torch.float32 if leaf in _DRAWN_AS_FLOAT32 else leaf
    if isinstance(leaf, torch.Generator):
        return None
    return torch.device("cpu") if isinstance(leaf, torch.device) else leaf
