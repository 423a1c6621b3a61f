"""Tensors that need 64-bit offsets: the number of their elements, or bytes, exceeds 32 bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

# Kernels use 64-bit indices from this number of elements on.
MANY = 1 << 29


def allocate(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """A large tensor; skips the test if the adapter does not have enough memory (software adapters
    allocate at most 2 GiB).
    """
    torch.dml.empty_cache()
    try:
        return make()
    except torch.OutOfMemoryError as error:
        pytest.skip(str(error).split(". ")[0])


@pytest.fixture(autouse=True)
def give_memory_back():
    yield
    torch.dml.empty_cache()


@pytest.mark.slow
def test_more_elements_than_32_bits_of_offset() -> None:
    n = MANY + 77
    x = allocate(lambda: torch.zeros(n, dtype=torch.uint8, device="dml"))
    x[-1], x[5], x[MANY] = 7, 2, 3
    assert x.sum().item() == 12
    assert x.nonzero().flatten().tolist() == [5, MANY, n - 1]
    x += 1
    assert [x[i].item() for i in (0, 5, MANY - 1, MANY, n - 2, n - 1)] == [1, 3, 1, 4, 1, 8]
    assert x[MANY - 3 :].clone().cpu().tolist()[:5] == [1, 1, 1, 4, 1]
    picked = x.index_select(0, torch.tensor([n - 1, 0, MANY], device="dml"))
    assert picked.tolist() == [8, 1, 4]


@pytest.mark.parametrize("gib", [5, 9, 17])
def test_more_bytes_than_32_bits(gib: int) -> None:
    n = gib << 28  # elements of 4 bytes
    x = allocate(lambda: torch.ones(n, device="dml"))
    places = [0, 1, (1 << 30) - 1, 1 << 30, (1 << 30) + 5, n - 1]
    assert [x[i].item() for i in places] == [1.0] * 6
    y = allocate(lambda: x * 3)
    assert [y[i].item() for i in places] == [3.0] * 6
    y[1 << 30] = 11
    y[-1] = 5
    assert y[(1 << 30) - 1 : (1 << 30) + 2].tolist() == [3.0, 11.0, 3.0]
    x.copy_(y)
    assert [x[i].item() for i in places] == [3.0, 3.0, 3.0, 11.0, 3.0, 5.0]
    del y
    assert x.max().item() == 11
    assert x.argmax().item() == 1 << 30
    rows = x.view(-1, 1 << 26)
    assert rows.amax(1)[16].item() == 11
    assert rows[:, -1].tolist() == [3.0] * (rows.shape[0] - 1) + [5.0]
    assert (rows[-1] @ torch.ones(1 << 26, device="dml")).item() == pytest.approx(3 * (1 << 26) + 2, rel=1e-5)
