"""A script that repeats one call of an operator in isolation, with its inputs in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from torch_dml.compare import calls

_SCRIPT = '''"""{title}

Written by torch_dml.compare. Prints each result's error against float64, and exits with status 1 where the device's is
more than 16 times the CPU's.
"""

import math
import sys
from pathlib import Path

import torch
import torch_dml
from torch_dml.compare.equivalents import on_cpu

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "{device}"
WIDE = {{torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64}}
inputs = torch.load(Path(__file__).with_suffix(".pt"), weights_only=True)


def call(device, exact):
    def tensor(number):
        value = inputs[number].to(device, copy=True)
        value = value.to(WIDE.get(value.dtype, value.dtype)) if exact else value
        taken.append(value)
        return value

    def operator(function):
        return on_cpu(function) if device == "cpu" else function

    taken = []
    results = {call}
    results = results if isinstance(results, (list, tuple)) else [results]
    # Operators that write an argument may return nothing.
    return [one.cpu() for one in [*results, *taken] if isinstance(one, torch.Tensor)]


def error(exact, got):
    if not got.is_floating_point() or exact.shape != got.shape:
        return 0.0
    distance, size = (got.double() - exact).abs(), exact.abs().nan_to_num(0, 0, 0)
    distance = torch.where((got.double() == exact) | (got.isnan() & exact.isnan()), 0.0, distance)
    # Near zero, relative to a thousandth of the largest element.
    return float((distance / size.clamp_min(1e-3 * float(size.max()) + 1e-38)).max()) if got.numel() else 0.0


exact, cpu, device = call("cpu", True), call("cpu", False), call(DEVICE, False)
again = call(DEVICE, False)
failed = False
for number, (want, narrow, got, more) in enumerate(zip(exact, cpu, device, again)):
    of_cpu, of_device = error(want, narrow), error(want, got)
    same = torch.equal(*(one.contiguous().flatten().view(torch.uint8) for one in (got, more)))
    failed |= not of_device <= 16 * max(of_cpu, 2.0**-23) or not same
    print(f"result {{number}}: largest relative error {{of_cpu:.3g}} on cpu, {{of_device:.3g}} on {{DEVICE}}")
    print(f"result {{number}}: the same bits again: {{same}}")
sys.exit(failed)
'''


def write(folder: Path, func: Any, args: Any, kwargs: Any, device: str, title: str) -> str:
    """Write the script, and the inputs as a file for `torch.load(weights_only=True)`; return the
    script's path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text, tensors = calls.source(func, args, kwargs)
    function, _, given = text.partition("(")
    name = calls.base_name(func).strip("_")
    script = folder / f"reproduce_{name}.py"
    torch.save([one.detach().cpu() for one in tensors], script.with_suffix(".pt"))
    script.write_text(
        _SCRIPT.format(title=title, device=device, call=f"operator({function})({given}"), encoding="utf-8"
    )
    return str(script)
