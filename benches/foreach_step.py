"""Optimizer steps on dml and on CUDA in one process: host time, total time and launches of one
step.

    python benches/foreach_step.py
    TORCH_DML_FOREACH=single python benches/foreach_step.py   # for comparison: one launch per tensor

Prints microseconds per step, medians of rounds: host time is until `step` returns, total time
includes a synchronisation. CUDA is measured before dml is registered: PyTorch's autograd uses
streams of one accelerator only.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

HIDDEN = 768
BLOCK = [(3 * HIDDEN, HIDDEN), (3 * HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,)]
BLOCK += [(HIDDEN, 4 * HIDDEN), (HIDDEN,), *[(HIDDEN,)] * 4]

# name: shapes of the parameters, steps per round
MODELS: dict[str, tuple[list[tuple[int, ...]], int]] = {
    "200 of 64x64": ([(64, 64)] * 200, 20),
    "MLP, 6 parameters": ([(64, 8), (64,), (64, 64), (64,), (4, 64), (4,)], 200),
    "12 transformer layers": (BLOCK * 12, 10),
}
OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "Adam": (torch.optim.Adam, {}),
    "AdamW": (torch.optim.AdamW, {}),
    "SGD, momentum": (torch.optim.SGD, {"momentum": 0.9}),
}


def measure(step: Callable[[], object], synchronize: Callable[[], None], steps: int) -> tuple[float, float]:
    """Return microseconds per step: host time, total time."""
    found = []
    for round_ in range(8):
        synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        host = time.perf_counter()
        synchronize()
        if round_ >= 3:
            found.append(((host - begin) / steps * 1e6, (time.perf_counter() - begin) / steps * 1e6))
    return statistics.median(h for h, _ in found), statistics.median(t for _, t in found)


def suite(
    device: str, synchronize: Callable[[], None], commands: Callable[[], int]
) -> dict[tuple[str, str], tuple[float, float, int]]:
    """Return host time, total time and launches of every step on one device."""
    found = {}
    for model, (shapes, steps) in MODELS.items():
        parameters = [torch.randn(shape, device=device, requires_grad=True) for shape in shapes]
        for p in parameters:
            p.grad = torch.randn_like(p)
        for name, (kind, options) in OPTIMIZERS.items():
            for form in ("foreach", "fused"):
                optimizer = kind(parameters, 1e-6, **options, **{form: True})
                host, total = measure(optimizer.step, synchronize, steps)
                before = commands()
                optimizer.step()
                found[model, f"{name}, {form}"] = (host, total, commands() - before)
        norm = lambda p=parameters: torch.nn.utils.clip_grad_norm_(p, 1e9)  # noqa: E731
        host, total = measure(norm, synchronize, steps)
        before = commands()
        norm()
        found[model, "clip_grad_norm_"] = (host, total, commands() - before)
    return found


def main() -> None:
    """Measure, and print a table."""
    cuda = suite("cuda", torch.cuda.synchronize, lambda: 0) if torch.cuda.is_available() else {}
    import torch_dml

    dml = suite("dml", torch.dml.synchronize, lambda: torch_dml.engine.queue_stats()["commands"])
    print(f"torch {torch.__version__}, {torch.dml.get_device_name(0)}")
    print(f"{'':24}{'':22}{'launches':>9}{'dml host':>10}{'total':>9}{'CUDA host':>11}{'total':>9}{'ratio':>7}")
    for (model, name), (host, total, launches) in dml.items():
        line = f"{model:24}{name:22}{launches:9}{host:10.0f}{total:9.0f}"
        if (model, name) in cuda:
            theirs = cuda[model, name]
            line += f"{theirs[0]:11.0f}{theirs[1]:9.0f}{total / theirs[1]:7.2f}"
        print(line)


if __name__ == "__main__":
    main()
