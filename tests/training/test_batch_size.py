"""torch_dml.auto_batch_size."""

from __future__ import annotations

import pytest
import torch
import torch_dml

from tests.support.memory import allocated


def test_the_largest_batch_that_fits() -> None:
    sizes = []

    def step(size: int) -> None:
        sizes.append(size)
        if size > 37:
            raise torch.OutOfMemoryError("not that many")

    assert torch_dml.auto_batch_size(step) == 37
    assert sizes[:7] == [1, 2, 4, 8, 16, 32, 64] and len(sizes) <= 13
    assert torch_dml.auto_batch_size(step, maximum=20) == 20
    assert torch_dml.auto_batch_size(step, start=5, maximum=5) == 5
    with pytest.raises(torch.OutOfMemoryError, match="a batch of 40 does not fit"):
        torch_dml.auto_batch_size(step, start=40)
    with pytest.raises(ValueError, match="start=0"):
        torch_dml.auto_batch_size(step, start=0)


def test_memory_decides_and_comes_back() -> None:
    mib = 1 << 20
    before = allocated()
    torch.dml.empty_cache()
    _, total = torch.dml.mem_get_info()
    torch.dml.set_per_process_memory_fraction((torch.dml.memory_reserved() + 256 * mib) / total)

    def step(size: int) -> None:
        torch.empty(size * 16 * mib, dtype=torch.uint8, device="dml").zero_()

    try:
        found = torch_dml.auto_batch_size(step)
    finally:
        torch.dml.set_per_process_memory_fraction(1.0)
    assert 8 <= found <= 16
    assert allocated() == before


def test_errors_of_the_step_are_its_own() -> None:
    def step(size: int) -> None:
        raise KeyError(size)

    with pytest.raises(KeyError):
        torch_dml.auto_batch_size(step)
