"""Operators that move elements of complex tensors; copies between dtypes and devices; creation of
complex tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu, assert_same_outcome
from tests.support.dtypes import dtypes
from tests.support.environment import TORCH
from tests.support.layouts import lay_out, layouts

COMPLEX = (torch.complex64, torch.complex128)


def _index(z: torch.Tensor) -> torch.Tensor:
    return torch.tensor([2, 0, 1], device=z.device)


def _mask(z: torch.Tensor) -> torch.Tensor:
    return torch.tensor([[True, False, True, False, True, False]], device=z.device).expand(z.shape[-2:])


MOVEMENTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "cat": lambda z: torch.cat([z, z.real, z * 2], 1),
    "stack": lambda z: torch.stack([z, z.conj()]),
    "flip": lambda z: z.flip(0),
    "roll": lambda z: z.roll((1, 2), (0, 1)),
    "repeat": lambda z: z.repeat(2, 3),
    "index": lambda z: z[_index(z)],
    "index of a mask": lambda z: z[_mask(z)],
    "index_select": lambda z: z.index_select(0, _index(z)),
    "gather": lambda z: z.gather(0, _index(z)[:, None].expand(3, 6)),
    "take": lambda z: z.take(_index(z)),
    "masked_select": lambda z: z.masked_select(_mask(z)),
    "masked_fill": lambda z: z.masked_fill(_mask(z), 1 - 2j),
    "masked_fill_": lambda z: z.clone().masked_fill_(_mask(z), z.new_tensor(2j)),
    "masked_scatter": lambda z: z.masked_scatter(_mask(z), z.flip(0)),
    "tril": lambda z: (z.tril(), z.triu(1)),
    "index_put": lambda z: z.index_put((_index(z),), z.flip(0)),
    "index_put of a number": lambda z: z.clone().index_put_((_mask(z),), z.new_tensor(3 + 1j)),
    "index_put accumulating": lambda z: z.index_put((_index(z) // 2,), z, accumulate=True),
    "index_copy": lambda z: z.index_copy(0, _index(z), z.flip(0)),
    "index_add": lambda z: z.index_add(0, _index(z), z.flip(1), alpha=2),
    "index_add of a complex multiple": lambda z: z.index_add(0, _index(z) // 2, z.flip(1), alpha=1 - 2j),
    "index_add_ of a complex multiple": lambda z: z.clone().index_add_(1, _index(z), z[:, :3], alpha=3j),
    "index_fill": lambda z: z.index_fill(0, _index(z)[:2], 3 - 1j),
    "scatter": lambda z: z.scatter(0, _index(z)[:, None].expand(3, 6), z.flip(0)),
    "scatter of a number": lambda z: z.scatter(0, _index(z)[:, None].expand(3, 2), 1j),
    "scatter_add": lambda z: z.scatter_add(0, _index(z)[:, None].expand(3, 6) // 2, z),
    "put": lambda z: z.put(_index(z), z[0, :3] * 2, accumulate=True),
    "pad": lambda z: F.pad(z, (1, 2), value=2.0),
    "pad by reflection": lambda z: F.pad(z[None], (1, 2), mode="reflect"),
    "pad by replication": lambda z: F.pad(z[None], (1, 2), mode="replicate"),
    "diag": lambda z: (z.diag(), z[0].diag(1), z.diagonal()),
    "unfold": lambda z: z.unfold(1, 2, 2).contiguous(),
    "fill": lambda z: (z.clone().fill_(1 - 1j), z.clone().zero_(), z.new_full((2,), 3j), torch.ones_like(z)),
    "fill of a tensor": lambda z: z.clone().fill_(z[0, 0]),
    "pixel_shuffle": lambda z: F.pixel_shuffle(z.reshape(1, 9, 1, 2)[:, :4], 2),
    "repeat_interleave": lambda z: z.repeat_interleave(2, 0),
    "real and imag": lambda z: (z.real.clone(), z.imag.clone(), torch.view_as_real(z).flip(-1)),
    "split": lambda z: [part.contiguous() for part in z.split(2, 1)],
}


@pytest.mark.parametrize("name", MOVEMENTS)
@dtypes(*COMPLEX)
def test_movement(name: str, dtype: torch.dtype) -> None:
    for layout in ("contiguous", "transposed", "sliced"):
        z = lay_out(torch.randn(3, 6, dtype=dtype), layout)
        assert_same_outcome(MOVEMENTS[name], z, widen=False)


@pytest.mark.parametrize("to", [*COMPLEX, torch.complex32, torch.float32, torch.float64, torch.int32, torch.bool])
@pytest.mark.parametrize("source", [*COMPLEX, torch.float16, torch.int64, torch.bool])
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_casts(source: torch.dtype, to: torch.dtype) -> None:
    z = (torch.randn(3, 4, dtype=torch.complex128) * 3).to(source)
    assert_same_outcome(lambda z: z.to(to), z, widen=False)
    assert_same_outcome(lambda z: z.mT.to(to), z, widen=False)


@layouts()
@dtypes(*COMPLEX)
def test_copies(layout: str, dtype: torch.dtype) -> None:
    z = lay_out(torch.randn(3, 4, dtype=dtype), layout)
    assert torch.equal(z.to("dml").cpu(), z)
    for view in (lambda z: z.conj(), lambda z: z.imag, lambda z: z.conj().imag, lambda z: -z):
        assert torch.equal(view(z.to("dml")).cpu(), view(z).resolve_conj().resolve_neg())
        assert torch.equal(view(z).to("dml").cpu(), view(z).resolve_conj().resolve_neg())
    if layout != "expanded":
        target = torch.zeros_like(z).to("dml")
        target.conj().copy_(z)
        assert torch.equal(target.cpu(), z.conj().resolve_conj())


@dtypes(*COMPLEX)
def test_between_devices(dtype: torch.dtype) -> None:
    z = torch.randn(3, 4, dtype=dtype)
    there = z.to("dml:0").conj().to("dml:1")
    assert torch.equal(there.cpu(), z.conj().resolve_conj())


def test_creation() -> None:
    x, y = torch.rand(3, 4), torch.rand(4)
    for function in (
        torch.complex,
        torch.polar,
        lambda x, y: torch.complex(x.double(), y.double()),
        lambda x, y: torch.polar(x[0].double(), y.double()),
        lambda x, y: torch.eye(3, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.zeros(2, dtype=torch.complex128, device=x.device) + 1j,
        lambda x, y: torch.linspace(0, 1 + 2j, 7, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.logspace(0, 1, 5, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.logspace(0, 1 + 2j, 5, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.logspace(1j, 2, 6, base=-2.0, dtype=torch.complex128, device=x.device),
        lambda x, y: torch.logspace(0, 1, 4, base=-2.0, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.logspace(1j, 2, 1, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.logspace(1j, 2, 0, dtype=torch.complex64, device=x.device),
        lambda x, y: torch.arange(5, device=x.device).to(torch.complex64),
    ):
        assert_matches_cpu(function, x, y, rtol=1e-5, atol=1e-5, widen=False)
    assert_same_outcome(lambda x, y: torch.complex(x, y.double()), x, y)


def test_magnitude_and_angle_in_float16() -> None:
    """As in torch from 2.15 on: float32's result, rounded once."""
    x, y = 1000 * torch.rand(3, 4).half(), 6 * torch.rand(4).half()
    if TORCH < (2, 15):
        assert_same_outcome(torch.polar, x, y)
        return
    found = torch.polar(x.to("dml"), y.to("dml"))
    assert found.dtype == torch.complex32
    assert_matches_cpu(lambda x, y: torch.view_as_real(torch.polar(x, y)), x, y, rtol=1e-3, atol=1e-3, widen=False)


def test_cat_into_another_dtype() -> None:
    x, z = torch.rand(3, 4), torch.rand(3, 4, dtype=torch.complex64)

    def into(dtype: torch.dtype, *sizes: int) -> Callable[..., torch.Tensor]:
        return lambda *tensors: torch.cat(tensors, out=torch.empty(sizes, dtype=dtype, device=tensors[0].device))

    for tensors in ((x, x), (x, z), (z, z), (x.double(), x), (x.long(), x)):
        for dtype in (torch.complex32, *COMPLEX):
            assert_matches_cpu(into(dtype, 6, 4), *tensors, widen=False)
            assert_matches_cpu(into(dtype, 0), *tensors, widen=False)


@pytest.mark.allow_fallback
def test_cat_into_reals() -> None:
    z = torch.rand(3, 4, dtype=torch.complex64)
    assert_same_outcome(lambda z: torch.cat((z, z), out=torch.empty(6, 4, device=z.device)), z)


@dtypes(torch.bool, torch.int64, torch.float32, torch.float64)
def test_filling_reals(dtype: torch.dtype) -> None:
    for value in (2 + 0j, 0j, torch.tensor(1 + 2j), 1j):
        x = torch.zeros(3, dtype=dtype)

        def fill(x: torch.Tensor, value: complex | torch.Tensor = value) -> torch.Tensor:
            return x.fill_(value.to(x.device) if isinstance(value, torch.Tensor) else value)

        assert_same_outcome(fill, x)


def test_random_numbers() -> None:
    """Uniform and normal parts; the same seed gives the same numbers."""
    torch.manual_seed(3)
    z = torch.randn(20000, dtype=torch.complex64, device="dml")
    torch.manual_seed(3)
    assert torch.equal(z, torch.randn(20000, dtype=torch.complex64, device="dml"))
    assert abs(z.abs().square().mean().item() - 1) < 0.05
    assert abs(z.mean().item()) < 0.03
    u = torch.rand(20000, dtype=torch.complex128, device="dml")
    for part in (u.real, u.imag):
        assert abs(part.mean().item() - 0.5) < 0.02
        assert 0 <= part.min().item() <= part.max().item() < 1


def test_prints() -> None:
    z = torch.tensor([1 + 2j, -3.5j])
    assert repr(z.to("dml")).replace(", device='dml:0'", "") == repr(z)
    assert z.to("dml").tolist() == z.tolist()


@pytest.mark.allow_fallback
def test_what_has_no_kernel_is_right_all_the_same() -> None:
    z = torch.randn(3, 3, dtype=torch.complex64)
    index = torch.tensor([[0, 1, 2]])
    for function in (
        lambda z, index: z.scatter(0, index, z, reduce="multiply"),
        lambda z, index: torch.linalg.eigvals(z),
    ):
        assert_matches_cpu(function, z, index, rtol=1e-4, atol=1e-5, widen=False)
