"""Pointwise results have the same bits on every adapter: they are compared with recorded hashes.

`python -m tests.pointwise.test_bits` records them. Subnormal results count as zeros, since adapters
may flush them, and all NaN as equal.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_dml
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

RECORDED = Path(__file__).with_name("recorded_bits.json")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64)
COUNT = 4096
# Bits of a number and of its significand, the exponent's bias, and the largest exponent that is
# used.
FORMATS = {
    torch.float32: (32, 23, 127, 16),
    torch.float16: (16, 10, 15, 14),
    torch.bfloat16: (16, 7, 127, 16),
    torch.float64: (64, 52, 1023, 128),
}
# Excluded: random functions, one with its own weight, a CUDA-only function, and functions with
# subnormal intermediate results for ordinary numbers.
WITHOUT = ("dropout", "rrelu", "prelu", "jiterator", "ldexp", "logsigmoid", "mish")


def numbers(dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Return numbers, a third of them between -10 and 10, and some infinities and NaN; without a
    random generator.

    No exponent is so large or small that intermediate results would be subnormal, which adapters
    may flush.
    """
    step = torch.arange(COUNT, dtype=torch.int64) + seed * COUNT
    mixed = (step * 6364136223846793005 + 1442695040888963407) * 2685821657736338717
    mixed = (mixed ^ (mixed >> 29)) & (2**63 - 1)
    small = (mixed >> 20) % 20_001 - 10_000
    if not dtype.is_floating_point:
        found = torch.where(step % 3 == 0, mixed % 19 - 9, mixed)
        return torch.where(found == 0, 1, found)  # it may be a divisor
    width, fraction, bias, largest = FORMATS[dtype]
    exponent = bias + (mixed >> 13) % (2 * largest + 1) - largest
    exponent = torch.where(step % 64 == 1, 2 * bias + 1, exponent)
    mantissa = torch.where(step % 128 == 1, 0, (mixed >> 5) % (1 << fraction))
    bits = (mixed & 1) << (width - 1) | exponent << fraction | mantissa
    found = bits.to({64: torch.int64, 32: torch.int32, 16: torch.int16}[width]).view(dtype)
    return torch.where(step % 3 == 0, (small.to(torch.float64) / 1000).to(dtype), found)


def digest(results: Any) -> str:
    """Return a hash of the tensors, which are on the device."""
    found = hashlib.sha256()
    for result in results if isinstance(results, tuple | list) else (results,):
        values = result.cpu().contiguous()
        if values.dtype.is_floating_point:
            values = torch.where(values.abs() < torch.finfo(values.dtype).tiny, values * 0, values)
            values = torch.where(values.isnan(), torch.full_like(values, torch.nan), values)
        found.update(str(values.dtype).encode() + values.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:16]


def cases() -> Iterator[tuple[str, Any, torch.dtype]]:
    """Return the name, operator and dtype of each case."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if isinstance(op, UnaryUfuncInfo | BinaryUfuncInfo) and not any(part in op.name for part in WITHOUT):
            for dtype in DTYPES:
                if dtype in op.supported_dtypes("cpu"):
                    yield f"{op.full_name} {str(dtype).removeprefix('torch.')}", op, dtype


def bits(op: Any, dtype: torch.dtype) -> str | None:
    """Return the hash of the device's results; None if the operator falls back to the CPU."""
    torch_dml.reset_fallbacks()
    count = 2 if isinstance(op, BinaryUfuncInfo) else 1
    inputs = [numbers(dtype, seed).to("dml") for seed in range(count)]
    keywords = op.sample_kwargs("cpu", dtype, inputs[0])[0] if count == 1 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = digest(op(*inputs, **keywords))
    return None if torch_dml.fallbacks() else found


RECORD: dict[str, str] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


@pytest.mark.allow_fallback
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_pointwise_results_have_the_recorded_bits(dtype: torch.dtype) -> None:
    known = [(name, op) for name, op, of in cases() if of == dtype and name in RECORD]
    assert len(known) > 70
    wrong = [name for name, op in known if bits(op, dtype) != RECORD[name]]
    assert not wrong


if __name__ == "__main__":
    made = {}
    for name, op, dtype in cases():
        try:
            found = bits(op, dtype)
        except RuntimeError as error:  # integers to negative powers, divisions by zero
            print(f"{name}: {error}")
            continue
        if found is not None:
            made[name] = found
    RECORDED.write_text(json.dumps(made, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(made)} recorded")
