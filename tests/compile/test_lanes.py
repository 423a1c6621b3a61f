"""Kernels whose invocations have several elements have the bits of those that have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code
from torch_dml.inductor import lanes

from tests.compile.compiled import compiled, same_bits
from tests.compile.random_graphs import make, run

DTYPES = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
]
CASES: dict[str, Callable[..., Any]] = {
    "rows and columns": lambda x, y, r, c: (x * y + r) * c,
    "several dtypes": lambda x, y, r, c: (x > y, (x + r).float(), x.to(torch.bfloat16) * c, x.to(torch.int8)),
    "positions": lambda x, y, r, c: x + torch.arange(32, device=x.device).to(x.dtype),
    "at odd places": lambda x, y, r, c: (x[:, 1:].contiguous() + 1, F.pad(y, (1, 7)) * 1),
    "pieces": lambda x, y, r, c: torch.cat([x, y], 1) * 1,
    "in reverse": lambda x, y, r, c: x.flip(1) * r,
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "FEWEST_ELEMENTS", 8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_elementwise(name: str, dtype: torch.dtype) -> None:
    shapes = [(24, 32), (24, 32), (32,), (24, 1)]
    inputs = [(torch.randn(shape) * 9).to(dtype).to("dml") for shape in shapes]
    found, codes = run_and_get_code(compiled(CASES[name]), *inputs)
    assert "wide=(" in codes[0] and same_bits(found, CASES[name](*inputs))


def test_tensors_at_odd_addresses() -> None:
    memory = torch.randn(1 + 1024, device="dml")
    double = compiled(lambda x: x * 2)
    for x in (memory[:-1], memory[1:], memory[:-1]):
        assert same_bits(double(x), x * 2)
    in_place = compiled(lambda x: x.mul_(3))
    x, y = memory.clone(), memory.clone()
    assert same_bits(in_place(x[1:]), y[1:].mul_(3)) and same_bits(x, y)


@pytest.mark.parametrize("number", [1, 4, 5, 9, 12, 15])
def test_random_graphs(number: int) -> None:
    case = make(number, "dml")
    difference = run(case)
    assert difference is None, f"{difference}\n{case.text()}"


def test_distances_of_neighbours() -> None:
    x, y, s = sympy.symbols("x0 x1 s0", integer=True)
    entries = {x: (sympy.S.One, sympy.Integer(64)), y: (sympy.Integer(64), sympy.Integer(10))}
    for index, expected in (
        (x + 64 * y, 1),
        (x + 64 * y + 8, 1),
        (x + 64 * y + 1, None),
        (x + 63 * y, None),
        (x + s * y, None),
        (2 * x, None),
        (3 * y + 1, 0),
        (s, 0),
    ):
        assert lanes.distance(index, entries) == expected, index
    entries[x] = (sympy.S.One, sympy.Integer(63))
    assert lanes.distance(x + 64 * y, entries) is None
