"""The calls whose main loops are read: products, attention and convolutions of usual sizes.

Prints a line of JSON for each call, with the kernels that are new in the file of
TORCH_DML_PIPELINE_STATISTICS, and one with the adapter's name.

python -m tests.gpus.programs
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch_dml  # noqa: F401

_SIZES = ((2048, 2048, 2048), (1001, 777, 513))
_DTYPES = (torch.float32, torch.float16)


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """Names of calls, and the calls."""
    for dtype, (m, n, k), layout in itertools.product(_DTYPES, _SIZES, ("nn", "nt", "tn")):
        yield f"product {_short(dtype)} {m}x{n}x{k} {layout}", _product(dtype, m, n, k, layout)
    yield "attention f16 forward", _attention(backward=False)
    yield "attention f16 backward", _attention(backward=True)
    for dtype in _DTYPES:
        yield f"convolution {_short(dtype)}", _convolution(dtype)


def _short(dtype: torch.dtype) -> str:
    return {torch.float32: "f32", torch.float16: "f16"}[dtype]


def _empty(*shape: int, dtype: torch.dtype, grad: bool = False) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="dml", requires_grad=grad)


def _product(dtype: torch.dtype, m: int, n: int, k: int, layout: str) -> Callable[[], object]:
    def call() -> object:
        left = _empty(m, k, dtype=dtype) if layout[0] == "n" else _empty(k, m, dtype=dtype).t()
        right = _empty(k, n, dtype=dtype) if layout[1] == "n" else _empty(n, k, dtype=dtype).t()
        return left @ right

    return call


def _attention(*, backward: bool) -> Callable[[], object]:
    def call() -> object:
        q, k, v = (_empty(4, 8, 1024, 64, dtype=torch.float16, grad=backward) for _ in range(3))
        result = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        if backward:
            result.backward(torch.empty_like(result))
        return result

    return call


def _convolution(dtype: torch.dtype) -> Callable[[], object]:
    def call() -> object:
        image = _empty(16, 128, 56, 56, dtype=dtype, grad=True)
        result = torch.nn.functional.conv2d(image, _empty(128, 128, 3, 3, dtype=dtype, grad=True), padding=1)
        result.backward(torch.empty_like(result))
        return result

    return call


def main() -> int:
    dml = torch.get_device_module("dml")
    file = Path(os.environ["TORCH_DML_PIPELINE_STATISTICS"])
    torch.empty(1, device="dml").fill_(1)  # What every process compiles first belongs to no call.
    dml.synchronize()
    before = len(_lines(file))
    for name, call in calls():
        try:
            call()
            dml.synchronize()
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
        lines = _lines(file)
        print(json.dumps({"call": name, "kernels": [json.loads(line)["id"] for line in lines[before:]]}), flush=True)
        before = len(lines)
    print(json.dumps({"adapter": dml.get_device_name(0)}))
    return 0


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines() if file.exists() else []


if __name__ == "__main__":
    sys.exit(main())
