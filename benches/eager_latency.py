"""Small work on dml and on CUDA in one process: single operators, chains, read-backs, networks,
optimizers.

    python benches/eager_latency.py
    python benches/eager_latency.py --processes 1 --only MLP

Prints microseconds (medians of rounds that end with a synchronisation, then of processes) and the
ratio of dml to CUDA (the median of the processes' ratios, with the smallest and the largest), since
times on a host vary and single processes differ. In each process CUDA is measured before dml is
registered: PyTorch's autograd uses streams of one accelerator only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from networks import networks
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import nn

Measurement = tuple[Callable[[], object], int]  # the work, and the number of calls before a synchronisation


def measure(work: Callable[[], object], synchronize: Callable[[], None], calls: int) -> float:
    """Return microseconds per call, synchronisation included: the median of rounds."""
    times = []
    warm, rounds = (2, 3) if calls > 1000 else (4, 9)
    for i in range(warm + rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        synchronize()
        if i >= warm:
            times.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(times)


def chain(x: torch.Tensor) -> torch.Tensor:
    """Call 32 pointwise operators."""
    y = x
    for _ in range(8):
        y = y * 1.01
        y = y + x
        y = torch.relu(y)
        y = y - 0.1
    return y


def training_step(
    model: nn.Module, loss: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor, **options: object
) -> Callable[[], None]:
    """Return a training step with Adam."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, **options)

    def step() -> None:
        optimizer.zero_grad()
        loss(model(inputs)).backward()
        optimizer.step()

    return step


def suite(device: str) -> Iterator[tuple[str, Measurement]]:
    """Yield every measurement on a device."""
    torch.manual_seed(0)
    x, y, scalar = torch.randn(16, device=device), torch.randn(16, device=device), torch.randn((), device=device)
    yield "x + y, 16 elements, 20,000 in a row", (lambda: x + y, 20_000)
    for elements, name, calls in ((1 << 20, "1 Mi", 20), (64 << 20, "64 Mi", 4)):
        z = torch.randn(elements, device=device)
        yield f"32 pointwise operators, {name} elements", (lambda z=z: chain(z), calls)
        del z
    yield "(x + y)[0].item()", (lambda: (x + y)[0].item(), 300)
    yield "(scalar + 1).item()", (lambda: (scalar + 1).item(), 300)

    known = networks()
    mlp = known["mlp"]().to(device)
    inputs, targets = torch.randn(64, 8, device=device), torch.randn(64, 4, device=device)
    for name, options in (("Adam", {}), ("fused Adam", {"fused": True})):
        step = training_step(mlp, lambda out: (out - targets).square().mean(), inputs, **options)
        yield f"MLP 8-64-64-4, batch 64, step with {name}", (step, 50)
    observation = torch.randn(1, 8, device=device)

    def infer() -> torch.Tensor:
        with torch.no_grad():
            return mlp(observation).cpu()

    yield "the MLP, one observation, read back", (infer, 100)

    parameters = [torch.randn(64, 64, device=device, requires_grad=True) for _ in range(200)]
    for parameter in parameters:
        parameter.grad = torch.randn(64, 64, device=device)
    adam = torch.optim.Adam(parameters, 1e-3, foreach=True)
    yield "Adam step, 200 tensors of 64x64, foreach", (adam.step, 10)

    images, labels = torch.rand(64, 1, 8, 8, device=device), torch.randint(10, (64,), device=device)
    cnn = known["digits_cnn"]().to(device)
    step = training_step(cnn, lambda out: nn.functional.cross_entropy(out, labels), images)
    yield "digits CNN, batch 64, step with Adam", (step, 50)


def run(device: str, synchronize: Callable[[], None], only: str) -> dict[str, float]:
    """Return a device's times of the measurements whose name contains `only`."""
    return {name: measure(work, synchronize, calls) for name, (work, calls) in suite(device) if only in name}


def both(only: str) -> dict[str, dict[str, float]]:
    """Return the times of CUDA, if available, and of dml in this process."""
    found = {"cuda": run("cuda", torch.cuda.synchronize, only) if torch.cuda.is_available() else {}}
    import torch_dml

    found["dml"] = run("dml", torch.dml.synchronize, only)
    if torch_dml.fallbacks():
        raise RuntimeError(f"these operators ran on the CPU: {torch_dml.fallbacks()}")
    return found


def main() -> None:
    """Measure in several processes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--processes", type=int, default=5, help="measure so often, each time in a new process (%(default)s)"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="what contains this text")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of every process")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        json.dump(both(arguments.only), sys.stdout)
        return
    command = [sys.executable, __file__, "--child", "--only", arguments.only]
    found = []
    for _ in track(range(max(arguments.processes, 1)), "measuring ...", console=Console(stderr=True)):
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        found.append(json.loads(done.stdout))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    table = Table(title=f"small work, µs: medians of {len(found)} processes")
    table.add_column("what")
    for column in ("dml", "cuda", "ratio", "smallest, largest"):
        table.add_column(column, justify="right")
    for name in found[0]["dml"]:
        dml = [each["dml"][name] for each in found]
        cuda = [each["cuda"][name] for each in found if each["cuda"]]
        ratios = sorted(a / b for a, b in zip(dml, cuda, strict=False))
        told = [f"{statistics.median(cuda):.2f}", f"{statistics.median(ratios):.2f}"] if ratios else ["-", "-"]
        spread = f"{ratios[0]:.2f}, {ratios[-1]:.2f}" if ratios else "-"
        table.add_row(name, f"{statistics.median(dml):.2f}", *told, spread)
    console = Console()
    console.width = max(console.width, 100)
    console.print(table)


if __name__ == "__main__":
    main()
