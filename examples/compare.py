"""Shared by the examples: train on the CPU and on a device with the same seed, and compare."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from devices import choose, no_fallbacks

Train = Callable[[torch.device], "Training"]


@dataclass
class Training:
    """The loss of every step and the final weights."""

    losses: list[torch.Tensor]
    weights: dict[str, torch.Tensor]


def compare(title: str, train: Train) -> int:
    """Run `train` on the CPU and on --device, print both, and return 1 when they disagree or an
    operator fell back.
    """
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--device", type=choose, default="dml", help="device to compare with the CPU (default: dml)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=1e-5, help="largest relative difference (default: 1e-5)")
    options = parser.parse_args()
    device = options.device

    print(f"{title}: cpu and {device}, seed {options.seed}, torch {torch.__version__}")
    results = []
    for place in (torch.device("cpu"), device):
        torch.manual_seed(options.seed)
        results.append(_on_cpu(train(place)))
    cpu, other = results

    steps = len(cpu.losses)
    print(f"{'step':>8} {'loss on cpu':>16} {f'loss on {device}':>16}")
    for step in sorted({0, steps // 4, steps // 2, 3 * steps // 4, steps - 1}):
        print(f"{step:8} {cpu.losses[step].item():16.9g} {other.losses[step].item():16.9g}")
    for name, weight in cpu.weights.items():
        if weight.numel() <= 4:
            print(f"{name}: cpu {weight.flatten().tolist()}, {device} {other.weights[name].flatten().tolist()}")

    loss_difference = _each(torch.stack(cpu.losses), torch.stack(other.losses))
    weight_difference = max(_largest(weight, other.weights[name]) for name, weight in cpu.weights.items())
    print(f"largest relative difference of the loss curves: {loss_difference:.2e}")
    print(f"largest relative difference of the final weights: {weight_difference:.2e}")
    # This form is false for NaN.
    agrees = loss_difference <= options.tolerance and weight_difference <= options.tolerance
    if not agrees:
        print(f"they differ by more than {options.tolerance:g}", file=sys.stderr)
    native = no_fallbacks(device)
    return 0 if agrees and native else 1


def _on_cpu(training: Training) -> Training:
    losses = [loss.detach().cpu() for loss in training.losses]
    return Training(losses, {name: weight.detach().cpu() for name, weight in training.weights.items()})


def _each(expected: torch.Tensor, actual: torch.Tensor) -> float:
    """Return the largest relative difference of an element."""
    return ((actual - expected).abs() / expected.abs()).max().item()


def _largest(expected: torch.Tensor, actual: torch.Tensor) -> float:
    """Return the largest difference relative to the tensor's largest element."""
    return ((actual - expected).abs().max() / expected.abs().max()).item()
