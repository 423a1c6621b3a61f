"""Names the recorded calls whose kernels spill registers on a device that computes nothing.

scripts/other-gpus.sh tgl .venv/bin/python -m tests.gpus.spilling_calls
target/gpus/calls/calls.jsonl topk
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import torch

from .calls import needs_float64, repeat


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpus.spilling_calls", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, metavar="CALLS")
    parser.add_argument("pattern", type=re.compile, help="a regular expression for the calls to make")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        statistics, new = (Path(folder) / name for name in ("statistics.jsonl", "new.jsonl"))
        # Read by the engine when it opens the device.
        os.environ["TORCH_DML_PIPELINE_STATISTICS"] = str(statistics)
        import torch_dml  # noqa: F401
        from torch_dml.cli import kernels

        dml = torch.get_device_module("dml")
        has_float64 = dml.get_device_properties(0).f64
        known = 0
        for line in options.file.read_text("utf-8").splitlines():
            if not options.pattern.search(line) or (not has_float64 and needs_float64(line)):
                continue
            try:
                repeat(line)
                dml.synchronize()
            except (RuntimeError, ValueError, LookupError, TypeError, MemoryError, AttributeError) as error:
                print(f"{line[:120]}: {error}".splitlines()[0], file=sys.stderr)
                continue
            if not statistics.exists() or statistics.stat().st_size == known:
                continue
            with statistics.open("rb") as file:
                file.seek(known)
                new.write_bytes(file.read())
                known = file.tell()
            for program in kernels.read(new):
                if program.spills:
                    print(f"{program.spills} in {program.kernel}, of {line[:300]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
