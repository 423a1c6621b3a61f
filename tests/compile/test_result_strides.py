"""Results of called operators have the strides that a compiled graph expects of them."""

from __future__ import annotations

import pytest
import torch

from tests.compile.compiled import compiled, same_bits


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (1, 0), (2, 1), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_fourier_transforms(dims: tuple[int, ...], layout: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        half, all_of_it = torch.fft.rfftn(x, dim=dims), torch.fft.fftn(x, dim=dims)
        return half, all_of_it, torch.fft.irfftn(half, dim=dims), torch.fft.ifftn(all_of_it, dim=dims)

    x = torch.randn(4, 6, 5, device="dml")
    if layout == "columns":
        x = x.mT.contiguous().mT
    found, expected = compiled(function)(x), function(x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
    if layout == "rows":
        assert [y.stride() for y in found] == [y.stride() for y in expected]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
def test_solutions(left: bool, adjoint: bool) -> None:
    a, b = torch.randn(2, 4, 4) + 4 * torch.eye(4), torch.randn(2, 4, 3)
    on_cpu = [*torch.linalg.lu_factor(a), b if left else b.mT]

    def function(*of: torch.Tensor) -> torch.Tensor:
        return torch.linalg.lu_solve(*of, left=left, adjoint=adjoint)

    factors = [x.to("dml") for x in on_cpu]
    result = compiled(function)(*factors)
    assert same_bits(result, function(*factors)) and result.stride() == function(*on_cpu).stride()
    solve = compiled(lambda a, b: torch.linalg.solve(a, b, left=left))
    assert solve(a.to("dml"), on_cpu[2].to("dml")).stride() == torch.linalg.solve(a, on_cpu[2], left=left).stride()
