"""Record the calls of operators that `bench` makes on a device that computes nothing.

scripts/other-gpus.sh navi31 .venv/bin/python -m tests.gpus.bench_calls FILE
"""

from __future__ import annotations

import argparse
import sys

from torch_dml.cli import bench

from .calls import Calls, Recording

_SUITES = ("ops", "matmul", "graph", "conv", "attention", "rows", "fft", "sparse", "linear", "linalg")
# Seconds for a figure: times mean nothing there.
_LIMIT_S = 0.001


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpus.bench_calls", description=__doc__.splitlines()[0])
    parser.add_argument("file", metavar="FILE")
    options = parser.parse_args()
    with open(options.file, "w", encoding="utf-8") as file, Recording(Calls(file)):
        return bench.run(list(_SUITES), ["dml"], quick=True, limit=_LIMIT_S, target=None)


if __name__ == "__main__":
    sys.exit(main())
