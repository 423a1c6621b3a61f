"""Suite `graph`: inference and training of a small perceptron, operator by operator and as a
replayed graph.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from torch_dml.cli.bench.measure import Bench, Row
from torch_dml.cli.models import mlp

_Work = Callable[[], Any]
_NET = "8-64-64-4 tanh MLP"


def run(bench: Bench) -> list[Row]:
    """Measure eager execution and graph replay on every device; the CPU has no graphs."""
    return [*_inference(bench), *_training(bench)]


def _inference(bench: Bench) -> list[Row]:
    times = 200 if bench.quick else 2_000
    rows = [
        Row(f"{_NET}, inference of one observation, read back: {how}", "µs", more_is_better=False)
        for how in ("eager", "replay")
    ]
    rows += [
        Row(f"{_NET}, inference, {times:,} in a row, {how}", "µs", more_is_better=False)
        for how in ("eager: host", "eager: total", "replay: host", "replay: total")
    ]
    observation = torch.randn(1, 8)
    for device in bench.devices:
        bench.tell(f"inference on {device}")
        model, x = mlp().to(device), observation.to(device)

        def eager(model: nn.Module = model, x: torch.Tensor = x) -> torch.Tensor:
            with torch.no_grad():
                return model(x)  # type: ignore[no-any-return]

        replay, output = _captured(device, eager)
        for row, work in zip(rows, (eager, replay), strict=False):

            def answer(work: _Work | None = work, x: torch.Tensor = x, output: Any = output) -> None:
                x.copy_(observation)
                made = work() if work is not None else None
                (output if made is None else made).cpu()

            seconds = None if work is None else bench.seconds(device, answer, times // 4)
            if seconds is not None:
                bench.put(row, device, seconds * 1e6)
        _host_and_total(bench, device, eager, rows[2:4], times)
        _host_and_total(bench, device, replay, rows[4:6], times)
    return rows


def _training(bench: Bench) -> list[Row]:
    times = 50 if bench.quick else 500
    rows = [
        Row(f"{_NET}, batch 64, step, {times} in a row, {how}: {what}", "µs", more_is_better=False)
        for how in ("Adam, eager", "fused Adam, eager", "fused Adam, replay")
        for what in ("host", "total")
    ]
    inputs, wanted = torch.randn(64, 8), torch.randn(64, 4)
    for device in bench.devices:
        bench.tell(f"training on {device}")
        x, t = inputs.to(device), wanted.to(device)
        _host_and_total(bench, device, _step(device, x, t, fused=False), rows[:2], times)
        _host_and_total(bench, device, _step(device, x, t, fused=True), rows[2:4], times)
        replay, _ = _captured(device, _step(device, x, t, fused=True))
        _host_and_total(bench, device, replay, rows[4:], times)
    return rows


def _step(device: torch.device, x: torch.Tensor, t: torch.Tensor, *, fused: bool) -> _Work:
    model = mlp().to(device)
    # Capturable: steps are counted on the device. The CPU does not support it.
    optimizer = torch.optim.Adam(model.parameters(), fused=fused, capturable=fused and device.type != "cpu")

    def step() -> None:
        optimizer.zero_grad()
        mse_loss(model(x), t).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def _captured(device: torch.device, work: _Work) -> tuple[_Work | None, Any]:
    """Return a function that replays `work`, and the result of `work` when it was captured."""
    if device.type == "cpu":
        return None, None
    module = torch.get_device_module(device)
    aside: Any = nullcontext()
    if device.type == "cuda":  # requires gradients that were allocated on another stream than the default one
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        aside = torch.cuda.stream(stream)
    with aside:
        for _ in range(3):
            work()
    module.synchronize(device)
    graph = torch.cuda.CUDAGraph() if device.type == "cuda" else module.Graph()
    with module.device(device), module.graph(graph):
        made = work()
    return graph.replay, made


def _host_and_total(bench: Bench, device: torch.device, work: _Work | None, rows: list[Row], times: int) -> None:
    taken = bench.host_and_total(device, work, times) if work is not None else None
    for row, seconds in zip(rows, taken or (), strict=False):
        bench.put(row, device, seconds * 1e6)
