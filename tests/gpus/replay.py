"""Make recorded calls on a device that computes nothing, so that their kernels are compiled.

Calls with float64 are left out on a GPU without it.

python -m tests.gpus.replay CALLS... [--start N]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

import torch
import torch_dml  # noqa: F401

from .calls import needs_float64, repeat

# Results are dropped at once, but allocations are kept for reuse: a small GPU runs out of memory.
_EMPTY_EVERY = 500


def main() -> int:
    dml = torch.get_device_module("dml")
    parser = argparse.ArgumentParser(prog="python -m tests.gpus.replay", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="CALLS")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="leave out the first N calls")
    options = parser.parse_args()
    calls = [line for path in options.files for line in path.read_text("utf-8").splitlines()]
    errors: Counter[str] = Counter()
    has_float64 = dml.get_device_properties(0).f64
    for number, line in enumerate(calls[options.start :], options.start + 1):
        if not has_float64 and needs_float64(line):
            errors["left out: float64 in software"] += 1
            continue
        print(number, flush=True)  # Where a fault of the driver ends the process, it is known at which call.
        try:
            repeat(line)
        except (
            RuntimeError,
            ValueError,
            LookupError,
            TypeError,
            NotImplementedError,
            MemoryError,
            AttributeError,
        ) as error:
            errors[f"{json.loads(line)[0]}: {(str(error) or repr(error)).splitlines()[0][:200]}"] += 1
        if number % _EMPTY_EVERY == 0:
            dml.synchronize()
            dml.empty_cache()
    dml.synchronize()
    print(json.dumps({"adapter": dml.get_device_name(0), "errors": dict(errors)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
