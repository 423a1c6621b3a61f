"""Suite `compile`: functions, training steps and inference, eager and with `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from torch_dml.cli.bench import models
from torch_dml.cli.bench.measure import Bench, Row
from torch_dml.cli.models import GPT

_Work = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """What is measured, in both ways."""

    name: str
    # Returns one call of it on a device, with the functions in it transformed by the second
    # argument, which is `torch.compile` or the identity.
    make: Callable[[torch.device, Callable[[Any], Any]], _Work]
    mode: str = "default"
    moved: int = 0  # bytes that have to be read and written at least; 0 if that is not the bound


def run(bench: Bench) -> list[Row]:
    """Measure each case on each device, eager and compiled, one after the other, so that no other
    network occupies memory.
    """
    rows: list[Row] = []
    for case in cases(bench.quick):
        found = {
            way: Row(f"{case.name}: {way}", "GB/s", more_is_better=True, bound="memory")
            if case.moved
            else Row(f"{case.name}: {way}", "ms", more_is_better=False, group=f"{way}, {case.mode}")
            for way in ("eager", "compiled")
        }
        for device in bench.devices:
            for way, row in found.items():
                if way == "compiled" and device.type == "cpu":
                    continue  # needs a C++ compiler, and minutes
                bench.tell(f"{row.name} on {device}")
                torch._dynamo.reset()
                seconds = bench.seconds(device, work(case, device, compiled=way == "compiled"))
                if seconds is not None:
                    bench.put(row, device, case.moved / 1e9 / seconds if case.moved else seconds * 1e3)
        rows += found.values()
    return rows


def work(case: Case, device: torch.device, *, compiled: bool) -> _Work:
    """Return one call of a case, compiled and captured already."""
    torch.manual_seed(0)
    mode = None if case.mode == "default" else case.mode
    made = case.make(device, partial(torch.compile, mode=mode) if compiled else lambda function: function)
    # The second and third call capture what the first has compiled.
    for _ in range(4 if compiled else 0):
        made()
    return made


def cases(quick: bool) -> list[Case]:
    """Return all cases, small ones if `quick`."""
    return [*_functions(quick), *_trainings(quick), *_inferences(quick)]


def _functions(quick: bool) -> Iterator[Case]:
    """Functions whose operators are bound by memory, so that a fused kernel reads and writes
    once.
    """
    height, width = (64, 512) if quick else (16_384, 4_096)
    shape, size = f"{height:,}x{width:,}", height * width

    def on(function: Callable[..., Any], dtype: torch.dtype, count: int) -> Callable[..., _Work]:
        def make(device: torch.device, transform: Callable[[Any], Any]) -> _Work:
            inputs = [torch.randn(height, width, dtype=dtype).to(device) for _ in range(count)]
            return partial(transform(function), *inputs)

        return make

    yield Case(f"32 operators that branch, {shape}", on(_branches, torch.float32, 1), moved=2 * 4 * size)
    yield Case(f"sin and tanh four times, {shape}", on(_waves, torch.float32, 1), moved=2 * 4 * size)
    yield Case(
        f"softmax of masked scores and dropout, float16, {shape}",
        on(_masked_softmax, torch.float16, 2),
        moved=3 * 2 * size,
    )
    yield Case(
        f"residual, rms_norm and cast to bfloat16, {shape}",
        on(_residual_norm, torch.float32, 2),
        moved=(3 * 4 + 2) * size,
    )


def _branches(x: torch.Tensor) -> torch.Tensor:
    a, b = x, x * 0.5
    for _ in range(6):
        c = a * 0.9 + b
        a, b = torch.relu(c) - b, torch.maximum(c, a)
    return a + b


def _waves(x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.tanh(x) * torch.sin(x)
    return x


def _masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return functional.dropout(torch.softmax(scores * 0.125 + mask, -1), 0.1)


def _residual_norm(x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    summed = x + residual
    return summed, functional.rms_norm(summed, summed.shape[-1:]).bfloat16()


@dataclass(frozen=True)
class _Network:
    name: str
    make: Callable[[], nn.Module]
    # Returns inputs and targets of a number of samples.
    data: Callable[[int], tuple[torch.Tensor, torch.Tensor]]
    batch: int


def _trainings(quick: bool) -> Iterator[Case]:
    for network in _networks(quick):
        for dtype in (None, torch.bfloat16):
            yield Case(
                f"{network.name}, {models.kind_of(dtype)}: step of batch {network.batch}",
                partial(_step, network, dtype),
            )


def _inferences(quick: bool) -> Iterator[Case]:
    for network in _networks(quick):
        for dtype in (None, torch.bfloat16):
            make = partial(_inference, network, dtype)
            yield Case(f"{network.name}, {models.kind_of(dtype)}: inference of one sample", make, "reduce-overhead")


def _step(network: _Network, dtype: torch.dtype | None, device: torch.device, transform: Callable[[Any], Any]) -> _Work:
    case = models.Case(network.name, network.make, partial(network.data, network.batch))
    return models.training_step(case, dtype, device, transform, fused=True)


def _inference(
    network: _Network, dtype: torch.dtype | None, device: torch.device, transform: Callable[[Any], Any]
) -> _Work:
    model = network.make().to(device).eval()
    inputs = network.data(1)[0].to(device)
    compiled = transform(model)

    def infer() -> object:
        with torch.inference_mode(), models.precision(device, dtype):
            return compiled(inputs)

    return infer


class _Logits(nn.Module):
    """A network of transformers, whose result is its logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(tokens).logits
        return logits


def _networks(quick: bool) -> Iterator[_Network]:
    length, words = (64, 256) if quick else (1024, 50_257)

    def text(count: int, length: int = length, words: int = words) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = torch.randint(words, (count, length + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        size = 32 if quick else 224
        return torch.rand(count, 3, size, size), torch.randint(1000, (count,))

    if quick:
        yield _Network("GPT of 2 layers", lambda: GPT(2, 64, 2, length, words), text, 2)
        return
    try:
        from torchvision import models as vision
    except ImportError:
        pass
    else:
        yield _Network("ResNet-50", vision.resnet50, pictures, 32)
        yield _Network("ViT-B/16", vision.vit_b_16, pictures, 32)
        yield _Network("ConvNeXt-T", vision.convnext_tiny, pictures, 16)
    yield _Network("GPT of 124M", GPT, text, 8)
    try:
        from transformers import BertConfig, BertForMaskedLM
    except ImportError:
        return
    sentences = partial(text, length=512, words=30_522)
    yield _Network("BERT-base", lambda: _Logits(BertForMaskedLM(BertConfig())), sentences, 16)
