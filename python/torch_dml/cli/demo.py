"""`demo`: a convolutional network learns handwritten digits on the device, then on the CPU, with
the same steps.
"""

from __future__ import annotations

import copy
import sys
import time
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import nn
from torch.nn.functional import cross_entropy

import torch_dml
from torch_dml.cli import clock
from torch_dml.cli.models import Digits, digits_cnn, load_digits

BATCH = 64
GOAL = 0.97
# With fewer epochs than this, the accuracy does not have to reach the goal.
EPOCHS_FOR_GOAL = 12


@dataclass
class Result:
    """The result of a training."""

    device: torch.device
    losses: torch.Tensor  # one per step, on the CPU
    accuracy: float
    images_per_s: float
    first_step_s: float  # since the process started


def run(device_name: str, epochs: int, seed: int) -> int:
    """Train and print; return 1 if the accuracy misses the goal or an operator fell back to the
    CPU.
    """
    console = Console(file=sys.stdout)
    on_dml = device_name.partition(":")[0] == "dml"
    if on_dml:
        torch_dml.load()
        torch_dml.reset_fallbacks()
    device = torch.device(device_name)
    console.print(f"Training on [bold]{device}[/] ({_describe(device)}), torch {torch.__version__}")
    digits = load_digits()
    torch.manual_seed(seed)
    model = digits_cnn()
    order = [torch.randperm(len(digits.train_labels)) for _ in range(epochs)]

    results = [train(copy.deepcopy(model), digits, order, device, console)]
    fallbacks = torch_dml.fallbacks() if on_dml else {}
    console.print(f"First training step {results[0].first_step_s:.2f} s after the process started")
    if device.type != "cpu":
        results.append(train(copy.deepcopy(model), digits, order, torch.device("cpu"), console))

    console.print(_table(results))
    if len(results) == 2:
        difference = (results[0].losses - results[1].losses).abs().max().item()
        console.print(f"Largest difference of the loss curves: {difference:.2e}")
    if on_dml:
        named = "".join(f"\n  {name}: {count}" for name, count in fallbacks.items())
        console.print(f"Fallbacks to the CPU: {sum(fallbacks.values())}{named}", highlight=False)
    missed = results[0].accuracy < GOAL and epochs >= EPOCHS_FOR_GOAL
    if missed:
        console.print(f"[red]The test accuracy is below {GOAL:.0%}.[/]")
    return 1 if missed or fallbacks else 0


def train(
    model: nn.Module, digits: Digits, order: list[torch.Tensor], device: torch.device, console: Console
) -> Result:
    """Train a network with Adam on batches in the given order, and test it."""
    model = model.to(device)
    images, labels = digits.train_images.to(device), digits.train_labels.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    losses: list[torch.Tensor] = []
    first_step_s = 0.0
    started, seen = time.perf_counter(), 0
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  loss {task.fields[loss]:.4f}  {task.fields[speed]:,.0f} images/s"),
        TimeRemainingColumn(),
    )
    steps = sum(-(-len(epoch) // BATCH) for epoch in order)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"{device!s:6}", total=steps, loss=float("nan"), speed=0.0)
        for epoch in order:
            for batch in torch.split(epoch.to(device), BATCH):
                optimizer.zero_grad()
                loss = cross_entropy(model(images[batch]), labels[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                losses.append(loss.detach())
                if len(losses) == 1:
                    # The first step compiles kernels: it is reported separately, and not part of
                    # the speed.
                    loss.item()
                    synchronize(device)
                    first_step_s = clock.since_start()
                    started = time.perf_counter()
                else:
                    seen += len(batch)
                if len(losses) % 8 == 0 or len(losses) == steps:
                    value = loss.item()
                    speed = seen / (time.perf_counter() - started)
                    progress.update(task, completed=len(losses), loss=value, speed=speed)
        synchronize(device)
        speed = seen / (time.perf_counter() - started)
    with torch.no_grad():
        guesses = model(digits.test_images.to(device)).argmax(1)
        accuracy = (guesses == digits.test_labels.to(device)).float().mean().item()
    return Result(device, torch.stack(losses).cpu(), accuracy, speed, first_step_s)


def synchronize(device: torch.device) -> None:
    """Wait for a device; not needed for the CPU."""
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def _describe(device: torch.device) -> str:
    if device.type == "cpu":
        return f"{torch.get_num_threads()} threads"
    return str(torch.get_device_module(device).get_device_name(device))


def _table(results: list[Result]) -> Table:
    table = Table()
    for title in ("device", "test accuracy", "last loss", "images/s"):
        table.add_column(title, justify="right")
    for result in results:
        table.add_row(
            str(result.device),
            f"{result.accuracy:.2%}",
            f"{result.losses[-1].item():.5f}",
            f"{result.images_per_s:,.0f}",
        )
    return table
