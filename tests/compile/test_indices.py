"""Indices that are read from tensors."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.compile.compiled import compiled, same_bits


def test_gathers() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[i] * 2, x.gather(1, i[:, None].abs()), x.index_select(0, i.abs()) + 1, F.embedding(i.abs(), x).sin()

    x, i = torch.randn(6, 8, device="dml"), torch.tensor([1, -2, 0, 5, -4, 3], device="dml")
    assert same_bits(compiled(function)(x, i), function(x, i))


def test_scatters() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.clone()
        y[i] = 3.0
        return y * 2, x.index_add(0, i, x[:3]), x.scatter_add(0, i[:, None].expand(3, 8), x)

    x, i = torch.randn(6, 8, device="dml"), torch.tensor([1, 1, 4], device="dml")
    assert same_bits(compiled(function)(x, i), function(x, i))


@pytest.mark.parametrize("include_self", [False, True])
def test_reductions_by_index(include_self: bool) -> None:
    def function(x: torch.Tensor, i: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(x.index_reduce(0, i, y, name, include_self=include_self) for name in ("mean", "amax", "prod"))

    for x, i, y in (
        (torch.randn(6, 8), torch.tensor([1, 1, 4]), torch.randn(3, 8)),
        (torch.tensor(2.5), torch.tensor(0), torch.tensor(4.0)),
    ):
        x, i, y = x.to("dml"), i.to("dml"), y.to("dml")
        assert same_bits(compiled(function)(x, i, y), function(x, i, y))


def test_an_index_that_is_an_expression() -> None:
    def rolled(x: torch.Tensor) -> torch.Tensor:
        return x.roll(1, -1) + x[torch.arange(2, device=x.device) % x.shape[0], :1]

    x = torch.randn(2, 5, device="dml")
    assert same_bits(compiled(rolled, dynamic=True)(x), rolled(x))

    def beyond(x: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(4, device=x.device) + 1]

    run = compiled(beyond, dynamic=True)
    assert same_bits(run(torch.arange(5.0, device="dml")), torch.arange(1.0, 5))
    with pytest.raises((IndexError, RuntimeError), match="index 4 is out of bounds"):
        run(torch.arange(4.0, device="dml"))
        torch.accelerator.synchronize()


@pytest.mark.parametrize("index", [6, -7])
def test_an_index_out_of_range_is_an_error(index: int) -> None:
    run = compiled(lambda x, i: x[i] + 1)
    x = torch.randn(6, 8, device="dml")
    assert run(x, torch.tensor([5, -6], device="dml")).shape == (2, 8)
    with pytest.raises(IndexError, match=r"a compiled graph: index .* is out of bounds for dimension 0 with size 6"):
        run(x, torch.tensor([0, index], device="dml"))
        torch.accelerator.synchronize()
    assert run(x, torch.tensor([5, -6], device="dml")).shape == (2, 8)


def test_pooling_and_resizing_with_gradients() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(F.max_pool2d(x, 3, 2, 1), scale_factor=2).square()

    x = torch.randn(2, 3, 16, 16, device="dml", requires_grad=True)
    results = []
    for run in (function, compiled(function)):
        y = run(x)
        results.append((y, *torch.autograd.grad(y.sum(), x)))
    assert same_bits(results[0], results[1])


def test_copies_to_the_host_are_complete() -> None:
    x = torch.randn(300, 300, device="dml")
    for _ in range(5):
        found = compiled(lambda x: (x * 2).to("cpu", non_blocking=True))(x)
        assert torch.equal(found, (x * 2).cpu())
