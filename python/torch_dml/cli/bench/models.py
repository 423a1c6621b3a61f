"""Suite `models`: one training step of whole networks, in float32 and in mixed precision, and the
memory it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from torch_dml.cli.bench.measure import Bench, Row, synchronize
from torch_dml.cli.models import GPT, Tagger

_MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """A network and its data."""

    name: str
    make: Callable[[], nn.Module]
    # Inputs and targets. Without targets, the network's output is the loss.
    data: Callable[[], tuple[Any, Any]]
    mixed: torch.dtype | None = None


def run(bench: Bench) -> list[Row]:
    """Measure each network on each device, one at a time, so that no other network occupies
    memory.
    """
    rows = []
    for case in _cases(bench.quick):
        for mixed in (None, case.mixed) if case.mixed else (None,):
            kind = kind_of(mixed)
            step = Row(f"{case.name}, {kind}: one step", "ms", more_is_better=False)
            memory = Row(f"{case.name}, {kind}: peak memory", "MiB", more_is_better=False)
            for device in bench.devices:
                bench.tell(f"{case.name}, {kind} on {device}")
                _measure(bench, case, mixed, device, step, memory)
            rows += [step, memory]
    return rows


def _measure(bench: Bench, case: Case, mixed: torch.dtype | None, device: torch.device, step: Row, memory: Row) -> None:
    module = None if device.type == "cpu" else torch.get_device_module(device)
    if module is not None:
        module.empty_cache()
        module.reset_peak_memory_stats(device)
    torch.manual_seed(0)
    work = training_step(case, mixed, device)
    seconds = bench.seconds(device, work, 1 if bench.quick else 5)
    if seconds is not None:
        bench.put(step, device, seconds * 1e3)
        if module is not None:
            synchronize(device)
            bench.put(memory, device, module.max_memory_allocated(device) / _MIB)


def kind_of(mixed: torch.dtype | None) -> str:
    """Return how a precision is called in the names of rows."""
    return "float32" if mixed is None else f"mixed with {str(mixed).removeprefix('torch.')}"


def precision(device: torch.device, mixed: torch.dtype | None) -> AbstractContextManager[object]:
    """Return the context of a precision."""
    return nullcontext() if mixed is None else torch.autocast(device.type, mixed)


def training_step(
    case: Case,
    mixed: torch.dtype | None,
    device: torch.device,
    transform: Callable[[nn.Module], Any] = lambda model: model,
    **options: Any,
) -> Callable[[], None]:
    """Return a step of training a network that a function has transformed. `options` are those of
    its optimizer.
    """
    model = case.make().to(device).train()
    inputs, targets = (_moved(part, device) for part in case.data())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, **options)
    scaler = torch.amp.grad_scaler.GradScaler(device.type, enabled=mixed == torch.float16)
    run = transform(model)

    def step() -> None:
        optimizer.zero_grad()
        with precision(device, mixed):
            if isinstance(inputs, list):  # a detector returns its losses
                loss = sum(run(inputs, targets).values())
            else:
                loss = cross_entropy(run(inputs).flatten(0, -2), targets.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, list):
        return [_moved(item, device) for item in value]
    if isinstance(value, dict):
        return {key: _moved(item, device) for key, item in value.items()}
    return value.to(device)


def _cases(quick: bool) -> list[Case]:
    batch, length = (2, 64) if quick else (8, 1024)
    words = 256 if quick else 50_257
    text = torch.randint(words, (batch, length + 1))

    def gpt() -> nn.Module:
        return GPT(2, 64, 2, length, words) if quick else GPT()

    def sequences() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(64, 16 if quick else 128, 64), torch.randint(10, (64, 16 if quick else 128))

    name = "GPT of 2 layers" if quick else "GPT of 124M"
    return [
        *_vision(quick),
        Case(f"{name}, {batch}x{length}", gpt, lambda: (text[:, :-1], text[:, 1:]), torch.bfloat16),
        Case("LSTM of 128, 64 sequences", Tagger, sequences),
    ]


def _vision(quick: bool) -> list[Case]:
    """Return torchvision's networks; none if it is not installed."""
    try:
        from torchvision import models
    except ImportError:
        return []

    def pictures(batch: int, size: int) -> Callable[[], tuple[Any, Any]]:
        return lambda: (torch.rand(batch, 3, size, size), torch.randint(1000, (batch,)))

    def boxes() -> tuple[Any, Any]:
        target = {"boxes": torch.tensor([[20.0, 20.0, 120.0, 160.0]]), "labels": torch.tensor([1])}
        return [torch.rand(3, 320, 320) for _ in range(8)], [target] * 8

    if quick:
        return [Case("ResNet-18, 2x32x32", models.resnet18, pictures(2, 32), torch.float16)]

    def detector() -> nn.Module:
        made: nn.Module = models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
        return made

    return [
        Case("ResNet-18, batch 32", models.resnet18, pictures(32, 224), torch.float16),
        Case("ResNet-50, batch 32", models.resnet50, pictures(32, 224), torch.float16),
        Case("MobileNet-v3-large, batch 32", models.mobilenet_v3_large, pictures(32, 224), torch.float16),
        Case("ConvNeXt-T, batch 16", models.convnext_tiny, pictures(16, 224), torch.bfloat16),
        Case("ViT-B/16, batch 32", models.vit_b_16, pictures(32, 224), torch.bfloat16),
        Case("SSDlite detector, 8 pictures of 320", detector, boxes, torch.float16),
    ]
