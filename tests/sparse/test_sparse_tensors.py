"""Sparse tensors of every layout on the device, compared with the CPU."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_dml
import torchgen

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error, to_device
from tests.support.dtypes import ALL, FLOATS, HALVES, INTEGERS, NUMBERS, dtypes, leaf, sample
from tests.support.environment import ROOT

COMPLEX = [torch.complex64]
LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout).removeprefix("torch.sparse_"))


def coo(
    *sizes: int, entries: int, dense: tuple[int, ...] = (), dtype: torch.dtype = torch.float32, coalesced: bool = False
) -> torch.Tensor:
    """Random entries, some of them with equal indices."""
    indices = torch.stack([torch.randint(0, size, (entries,)) for size in sizes])
    values = _values(entries, *dense, dtype=dtype)
    made = torch.sparse_coo_tensor(indices, values, (*sizes, *dense))
    return made.coalesce() if coalesced else made


def _values(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_complex:
        return torch.complex(sample(*sizes), sample(*sizes)).to(dtype)
    return sample(*sizes, dtype=dtype)


def laid_out(x: torch.Tensor, layout: torch.layout, block: tuple[int, int] = (2, 3)) -> torch.Tensor:
    blocked = layout in (torch.sparse_bsr, torch.sparse_bsc)
    return x.to_sparse(layout=layout, blocksize=block if blocked else None)


def matrix(rows: int = 12, columns: int = 9, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A dense matrix, mostly zeros, with some empty rows and columns."""
    x = _values(rows, columns, dtype=dtype) * (torch.rand(rows, columns) < 0.3)
    x[rows // 2] = 0
    x[:, columns // 2] = 0
    return x.to(dtype)


def parts(x: torch.Tensor) -> list[torch.Tensor]:
    """The components of a tensor."""
    if x.layout == torch.strided:
        return [x]
    if x.layout == torch.sparse_coo:
        return [x._indices(), x._values()]
    rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
    return [*((x.crow_indices(), x.col_indices()) if rows else (x.ccol_indices(), x.row_indices())), x.values()]


def assert_same_parts(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """The same entries in the same order."""
    assert (actual.layout, actual.shape, actual.dtype) == (expected.layout, expected.shape, expected.dtype)
    if expected.layout == torch.sparse_coo:
        assert actual.is_coalesced() == expected.is_coalesced()
        assert (actual.sparse_dim(), actual.dense_dim()) == (expected.sparse_dim(), expected.dense_dim())
    for one, other in zip(parts(actual), parts(expected), strict=True):
        assert_same(one, other)


def check(function: Callable[..., Any], *args: Any) -> None:
    """Run on both, and compare the entries."""
    expected, actual = function(*to_device(args, "cpu")), function(*to_device(args, "dml"))
    if not isinstance(expected, (list, tuple)):
        expected, actual = [expected], [actual]
    for one, other in zip(actual, expected, strict=True):
        assert one.device.type == "dml"
        assert_same_parts(one, other)


# --- creation


@pytest.mark.smoke
def test_a_coo_tensor_is_made_of_indices_and_values() -> None:
    indices, values = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]]), torch.tensor([3.0, 4.0, 5.0, 6.0])
    check(lambda i, v: torch.sparse_coo_tensor(i, v, (2, 4)), indices, values)
    check(torch.sparse_coo_tensor, indices, values)
    check(lambda i, v: torch.sparse_coo_tensor(i, v, (2, 4)).coalesce(), indices, values)
    x = torch.sparse_coo_tensor(indices, values, (2, 4), device="dml")
    assert x.is_sparse and x.device == torch.device("dml:0") and x._nnz() == 4 and not x.is_coalesced()
    assert (x.layout, x.shape, x.sparse_dim(), x.dense_dim()) == (torch.sparse_coo, (2, 4), 2, 0)
    assert "layout=torch.sparse_coo" in repr(x) and "device='dml:0'" in repr(x) and "nnz=4" in repr(x)
    empty = torch.sparse_coo_tensor((3, 4), device="dml")
    assert empty._nnz() == 0 and torch.equal(empty.to_dense().cpu(), torch.zeros(3, 4))
    assert torch.equal(torch.zeros(3, 4, layout=torch.sparse_coo, device="dml").to_dense().cpu(), torch.zeros(3, 4))


@pytest.mark.parametrize("sizes", [(7,), (3, 1, 4), (1, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_coordinates(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    """The engine's operators on indices."""
    engine = torch.ops.torch_dml
    some, others = (torch.stack([torch.randint(0, size, (30,)) for size in sizes]).to(dtype) for _ in range(2))
    numbers, other_numbers = (engine.coo_flatten(t.to("dml"), sizes).cpu() for t in (some, others))
    assert numbers.dtype == dtype
    assert torch.equal(torch.stack(torch.unravel_index(numbers, sizes)), some)
    wanted, inverse = numbers.unique(return_inverse=True)
    values = torch.randn(30, 2, dtype=torch.float64)
    distinct, sums = engine.coo_coalesce(some.to("dml"), values.to("dml"), sizes)
    assert torch.equal(distinct.cpu(), torch.stack(torch.unravel_index(wanted, sizes)))
    assert_same(sums, torch.zeros(len(wanted), 2, dtype=torch.float64).index_add_(0, inverse, values))
    there = torch.isin(other_numbers, numbers)[:, None]
    found = engine.coo_at(distinct, sums, others.to("dml"), sizes).cpu()
    place = torch.searchsorted(wanted, other_numbers).clamp(max=len(wanted) - 1)
    assert torch.equal(found, torch.where(there, sums.cpu()[place], 0.0))
    counts = (other_numbers[:, None] == numbers).sum(1)[:, None]
    for accumulate, factors in ((False, there), (True, counts)):
        kept = engine.coo_project(others.to("dml"), values.to("dml"), some.to("dml"), sizes, accumulate)
        assert torch.equal(kept.cpu(), torch.where(there, values * factors, 0.0))


def test_accessors_of_a_coalesced_tensor() -> None:
    x = coo(5, 7, entries=20, dense=(3,))
    check(lambda x: (x.coalesce().indices(), x.coalesce().values()), x)
    for name in ("indices", "values"):
        assert_same_error(lambda x, name=name: getattr(x, name)(), x)


@dtypes(ALL, COMPLEX)
def test_coalesce(dtype: torch.dtype) -> None:
    for entries in (0, 1, 2, 50):
        check(torch.Tensor.coalesce, coo(4, 5, entries=entries, dtype=dtype))
    check(torch.Tensor.coalesce, coo(6, entries=30, dtype=dtype))
    check(torch.Tensor.coalesce, coo(3, 4, 2, entries=40, dtype=dtype, dense=(2, 3)))


@pytest.mark.parametrize("dense", [(), (3,)])
def test_coalesce_of_many_entries(dense: tuple[int, ...]) -> None:
    check(torch.Tensor.coalesce, coo(300, 70, entries=20_000, dense=dense, dtype=torch.int64))
    one_place = coo(1, 1, entries=70_000, dense=dense)
    assert_same(one_place.to("dml").coalesce().values(), one_place.double().coalesce().values().float(), 1e-4, 1e-3)


@layouts
@dtypes(FLOATS, torch.int32, torch.bool, COMPLEX)
def test_tensors_go_to_the_device_and_back(layout: torch.layout, dtype: torch.dtype) -> None:
    x = laid_out(matrix(dtype=dtype), layout)
    there = x.to("dml")
    assert there.device.type == "dml" and there.layout == layout
    assert_same_parts(there.cpu(), x)
    assert_same_parts(there.to("dml:1"), x)
    wide = torch.complex64 if dtype.is_complex else torch.float32
    assert_same_parts(there.to("cpu", wide), x.to(wide))
    assert_same_parts(there.clone(), x)
    assert_same_parts(copy.deepcopy(there), x)
    assert_same(there.to_dense(), x.to_dense())


def test_the_coalesced_flag_is_kept() -> None:
    for coalesced in (False, True):
        x = coo(4, 5, entries=9, coalesced=coalesced)
        assert x.to("dml").is_coalesced() == x.to("dml").cpu().is_coalesced() == coalesced
        assert torch.zeros_like(x, device="dml").copy_(x).is_coalesced() == coalesced


@layouts
def test_tensors_are_saved_and_loaded(layout: torch.layout) -> None:
    x = laid_out(matrix(), layout)
    file = io.BytesIO()
    torch.save(x.to("dml"), file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded.device.type == "dml"
    assert_same_parts(loaded, x)
    file.seek(0)
    assert_same_parts(torch.load(file, map_location="cpu"), x)
    assert_same_parts(pickle.loads(pickle.dumps(x.to("dml"))), x)


@pytest.mark.smoke
@layouts
@dtypes(NUMBERS)
def test_dense_tensors_become_sparse(layout: torch.layout, dtype: torch.dtype) -> None:
    check(lambda x: laid_out(x, layout), matrix(dtype=dtype))
    check(lambda x: laid_out(x, layout), torch.zeros(4, 6, dtype=dtype))


def test_dense_tensors_become_hybrid() -> None:
    x = matrix(8, 6).reshape(4, 2, 6)
    for dims in (1, 2, 3):
        check(lambda x, dims=dims: x.to_sparse(dims), x)
    check(lambda x: x.to_sparse_csr(1), x)


@layouts
@pytest.mark.parametrize("to", LAYOUTS, ids=lambda layout: "to_" + str(layout).removeprefix("torch.sparse_"))
def test_layouts_become_others(layout: torch.layout, to: torch.layout) -> None:
    x = laid_out(matrix(12, 9), layout)

    def convert(x: torch.Tensor) -> torch.Tensor:
        return laid_out(x, to)

    try:
        convert(x)
    except Exception:
        assert_same_error(convert, x)
    else:
        check(convert, x)


@pytest.mark.parametrize("index", [torch.int64, torch.int32])
def test_a_csr_tensor_is_made_of_its_parts(index: torch.dtype) -> None:
    crow, col, values = torch.tensor([0, 1, 1, 3]).to(index), torch.tensor([2, 0, 2]).to(index), sample(3)
    check(lambda *parts: torch.sparse_csr_tensor(*parts, (3, 4)), crow, col, values)
    check(torch.sparse_csr_tensor, crow, col, values)
    check(lambda *parts: torch.sparse_csc_tensor(*parts, (4, 3)), crow, col, values)
    check(lambda *parts: torch.sparse_bsr_tensor(*parts, (6, 9)), crow, col, sample(3, 2, 3))
    x = torch.sparse_csr_tensor(crow, col, values, (3, 4), device="dml")
    assert x._nnz() == 3 and x.layout == torch.sparse_csr and "sparse_csr" in repr(x)
    check(lambda x: [x.crow_indices(), x.col_indices(), x.values()], x.cpu())


def test_indices_are_checked_where_that_is_asked_for() -> None:
    indices, values = torch.tensor([[0, 1, 1], [2, 0, 2]]), sample(3)

    def make(i: torch.Tensor, v: torch.Tensor, size: tuple[int, ...] = (2, 3)) -> torch.Tensor:
        return torch.sparse_coo_tensor(i, v, size, check_invariants=True)

    check(make, indices, values)
    assert_same_error(lambda i, v: make(i, v, (2, 2)), indices, values)
    assert_same_error(make, -indices, values)
    assert_same_error(make, indices, values[:2])
    assert_same_error(lambda i, v: make(i, v, (2, 3, 4)), indices, values)
    assert_same_error(lambda i, v: make(i, v, (2, -3)), indices, values)


def test_compressed_indices_are_checked_where_that_is_asked_for() -> None:
    crow, col, values = torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2]), sample(3)
    make = lambda *parts: torch.sparse_csr_tensor(*parts, (2, 3), check_invariants=True)  # noqa: E731
    check(make, crow, col, values)
    for wrong in ((crow, col + 1, values), (crow - 1, col, values), (crow, col, values[:2]), (crow[:2], col, values)):
        assert_same_error(make, *wrong)


# --- products


@pytest.mark.smoke
@pytest.mark.parametrize("layout", LAYOUTS[:4], ids=["coo", "csr", "csc", "bsr"])
@dtypes(FLOATS)
def test_product_with_a_dense_matrix(layout: torch.layout, dtype: torch.dtype) -> None:
    x = matrix(dtype=dtype)
    for width in (1, 4, 7, 64):
        dense = sample(9, width, dtype=dtype)
        for other in (dense, sample(width, 9, dtype=dtype).t(), sample(9, 2 * width, dtype=dtype)[:, ::2]):
            product = torch.sparse.mm(laid_out(x, layout).to("dml"), other.to("dml"))
            assert_same(product, (x.double() @ other.double()).to(dtype), exact=x.double() @ other.double(), terms=8)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_bsr])
@dtypes(INTEGERS, COMPLEX)
def test_product_of_integers_and_complex_numbers(layout: torch.layout, dtype: torch.dtype) -> None:
    x, dense = matrix(dtype=dtype), _values(9, 6, dtype=dtype)
    assert_same(torch.sparse.mm(laid_out(x, layout).to("dml"), dense.to("dml")), x @ dense, terms=8)
    assert_same(torch.sparse.mm(laid_out(x, layout).to("dml"), dense.to("dml").conj()), x @ dense.conj(), terms=8)
    t, alpha, beta = _values(12, 6, dtype=dtype), 2 - 1j if dtype.is_complex else 2, 1j if dtype.is_complex else 3
    product = torch.addmm(t.to("dml"), laid_out(x, layout).to("dml"), dense.to("dml"), alpha=alpha, beta=beta)
    assert_same(product, beta * t + alpha * (x @ dense), terms=8)


def test_product_of_entries_at_one_place_and_of_none() -> None:
    x = coo(7, 9, entries=100)
    check(lambda x, y: torch.sparse.mm(x, y).round(decimals=3), x, sample(9, 5))
    check(torch.sparse.mm, torch.sparse_coo_tensor((7, 9)), sample(9, 5))
    check(torch.sparse.mm, torch.sparse_coo_tensor((7, 9)).to_sparse_csr(), sample(9, 5))
    check(torch.sparse.mm, torch.sparse_coo_tensor((0, 9)), sample(9, 5))
    check(torch.sparse.mm, x, sample(9, 0))


def test_product_of_a_long_row() -> None:
    """Longer than loops can be on Mesa's software adapter before version 23."""
    n = 70_001
    x = torch.sparse_csr_tensor(torch.tensor([0, n, n]), torch.arange(n), torch.ones(n), (2, n))
    dense, addend = (torch.arange(2 * n).reshape(n, 2) % 5).float(), sample(2, 2)
    product = torch.addmm(addend.to("dml"), x.to("dml"), dense.to("dml"), beta=0.5, alpha=2)
    assert_same(product, 0.5 * addend + 2 * torch.stack([dense.sum(0), torch.zeros(2)]), 1e-6)
    largest = torch.sparse.mm(x.to("dml"), dense.to("dml"), "amax")
    assert largest.tolist() == [[4, 4], [0, 0]]


@pytest.mark.parametrize("layout", LAYOUTS[:3], ids=["coo", "csr", "csc"])
def test_addmm(layout: torch.layout) -> None:
    x, dense = laid_out(matrix(), layout), sample(9, 8)

    def out(t: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.addmm(t, x, y, out=torch.empty(0, device=t.device))

    for addend in (sample(12, 8), sample(8, 12).t(), sample(8), sample(12, 1), sample(1)):
        for beta, alpha in ((1, 1), (0.5, -2), (0, 3)):
            assert_matches_cpu(lambda t, x, y, a=alpha, b=beta: torch.addmm(t, x, y, alpha=a, beta=b), addend, x, dense)
            assert_matches_cpu(out, addend, x, dense)
    # A tensor that is multiplied by zero is ignored.
    nothing = torch.full((12, 8), torch.nan)
    assert_matches_cpu(lambda t, x, y: torch.addmm(t, x, y, beta=0), nothing, x, dense)
    if layout == torch.sparse_coo:
        assert_matches_cpu(lambda t, x, y: t.addmm_(x, y, beta=2), sample(12, 8), x, dense)


@pytest.mark.parametrize("layout", LAYOUTS[:3], ids=["coo", "csr", "csc"])
def test_product_with_a_vector_and_of_a_dense_matrix(layout: torch.layout) -> None:
    x = laid_out(matrix(), layout)
    assert_matches_cpu(torch.mv, x, sample(9))
    assert_matches_cpu(torch.matmul, x, sample(9))
    assert_matches_cpu(torch.mm, sample(5, 12), x)
    if layout != torch.sparse_coo:
        assert_matches_cpu(lambda t, x, y: torch.addmv(t, x, y, beta=2, alpha=3), sample(12), x, sample(9))


def test_products_of_a_batch() -> None:
    x = coo(3, 5, 4, entries=30)
    assert_matches_cpu(torch.bmm, x, sample(3, 4, 6))
    assert_matches_cpu(torch.bmm, coo(3, 5, 4, entries=0), sample(3, 4, 6))
    assert_same_error(torch.bmm, x, sample(3, 5, 6))
    assert_same_error(torch.bmm, x, sample(2, 4, 6))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_gradients_of_products(layout: torch.layout) -> None:
    pattern = laid_out(matrix(), layout)
    weights = sample(12, 6)
    grads = []
    for device in ("cpu", "dml"):
        x = pattern.detach().to(device).requires_grad_()
        y = to_device(leaf(9, 6).detach().fill_(0.5), device) + to_device(weights[:9], device)
        y.requires_grad_()
        (torch.sparse.mm(x, y) * weights.to(device)).sum().backward()
        grads.append((x.grad, y.grad))
    assert_same_parts(grads[1][0].cpu(), grads[0][0])
    assert_same(grads[1][1], grads[0][1])


@dtypes(FLOATS)
def test_sampled_addmm(dtype: torch.dtype) -> None:
    x = matrix(dtype=torch.float64 if dtype in HALVES else dtype).to_sparse_csr()
    for k in (1, 8, 13, 64):
        a, b = sample(12, k, dtype=dtype), sample(k, 9, dtype=dtype)
        for beta, alpha in ((1, 1), (0, 2), (0.5, -1)):
            ours = torch.sparse.sampled_addmm(x.to("dml", dtype), a.to("dml"), b.to("dml"), beta=beta, alpha=alpha)
            theirs = torch.sparse.sampled_addmm(x.double(), a.double(), b.double(), beta=beta, alpha=alpha)
            if dtype in HALVES:
                torch.testing.assert_close(ours.values().cpu().double(), theirs.values(), rtol=0.02, atol=0.1)
            else:
                assert_same(ours.values(), theirs.values().to(dtype), exact=theirs.values(), terms=8)


@dtypes(torch.complex64, torch.complex128)
def test_sampled_addmm_of_complex_numbers(dtype: torch.dtype) -> None:
    x = matrix(dtype=dtype).to_sparse_csr()
    for k in (1, 13):
        a, b = torch.randn(12, k, dtype=dtype), torch.randn(k, 9, dtype=dtype)
        for first, second in ((a, b), (a.conj(), b), (a, b.mH.contiguous().mH), (a[:, :0], b[:0])):
            ours, theirs = (
                torch.sparse.sampled_addmm(*(t.to(device) for t in (x, first, second)), beta=1j, alpha=2 - 1j)
                for device in ("dml", "cpu")
            )
            assert_same(ours.values(), theirs.values())


def test_errors_of_sampled_addmm() -> None:
    x = matrix().to_sparse_csr()
    for a, b in [((12, 4), (4, 8)), ((12, 4), (5, 9)), ((11, 4), (4, 9)), ((4,), (4, 9))]:
        assert_same_error(torch.sparse.sampled_addmm, x, sample(*a), sample(*b))
    assert_same_error(torch.sparse.sampled_addmm, x, sample(12, 4).double(), sample(4, 9))
    assert_same_error(torch.sparse.sampled_addmm, x.int(), sample(12, 4).int(), sample(4, 9).int())
    assert_same_error(lambda x, a, b: torch.sparse.sampled_addmm(x, a, b, alpha=1j), x, sample(12, 4), sample(4, 9))


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@dtypes(torch.float32, HALVES)
def test_reductions_of_products(reduce: str, dtype: torch.dtype) -> None:
    x, dense = matrix(dtype=dtype), sample(9, 5, dtype=dtype)
    for index in (torch.int64, torch.int32):
        csr = x.to_sparse_csr()
        csr = torch.sparse_csr_tensor(
            csr.crow_indices().to(index), csr.col_indices().to(index), csr.values(), csr.shape
        )
        grads = []
        for device in ("cpu", "dml"):
            a, b = csr.detach().to(device).requires_grad_(), dense.detach().to(device).requires_grad_()
            out = torch.sparse.mm(a, b, reduce)
            out.sum().backward()
            grads.append((out, a.grad.values(), b.grad))
        for ours, theirs in zip(grads[1], grads[0], strict=True):
            if dtype == torch.float32:
                assert_same(ours, theirs)
            else:
                torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), rtol=0.05, atol=0.1)


def test_places_of_extrema_and_errors_of_reductions() -> None:
    x = torch.sparse_csr_tensor(torch.tensor([0, 3, 3, 4]), torch.tensor([0, 1, 2, 1]), torch.ones(4), (3, 3))
    dense = torch.tensor([[1.0, torch.nan], [1.0, 2.0], [0.0, torch.nan]])
    for reduce in ("amax", "amin"):
        a = x.clone().requires_grad_()
        expected = torch.ops.aten._sparse_mm_reduce_impl(a, dense, reduce)
        b = x.to("dml").requires_grad_()
        assert_same(torch.ops.aten._sparse_mm_reduce_impl(b, dense.to("dml"), reduce), expected)
    for wrong in ("prod", "median"):
        assert_same_error(lambda x, y, wrong=wrong: torch.sparse.mm(x, y, wrong), x, sample(3, 2))
    assert_same_error(lambda x, y: torch.sparse.mm(x, y, "sum"), x, sample(2, 2))
    assert_same_error(lambda x, y: torch.sparse.mm(x, y, "sum"), x, sample(3, 2).double())


def test_errors_of_products() -> None:
    x = coo(2, 3, entries=4)
    for wrong in (sample(2, 3), sample(3), sample(3, 2).double(), sample(3, 2, 1)):
        assert_same_error(torch.sparse.mm, x, wrong)
    assert_same_error(torch.sparse.mm, x.bool(), sample(3, 2).bool())
    for t in (sample(5, 5), sample(2, 2).double(), x):
        assert_same_error(torch.addmm, t, x, sample(3, 2))
    assert_same_error(lambda t, x, y: t.addmm_(x, y), sample(2), x, sample(3, 2))
    assert_same_error(torch.addmm, sample(2, 2), x, x.t())
    csr = x.to_sparse_csr()
    assert_same_error(torch.sparse.mm, csr, sample(2, 3), words=False)  # torch 2.15 names the operator first
    assert_same_error(torch.sparse.mm, csr, sample(3, 2).double())
    assert_same_error(torch.addmm, sample(5, 5), csr, sample(3, 2))
    assert_same_error(lambda t, x, y: torch.addmm(t, x, y, alpha=1j), sample(2, 2), csr, sample(3, 2))
    with pytest.raises(RuntimeError, match="same device"):
        torch.sparse.mm(x.to("dml"), sample(3, 2))


# --- sums, products and functions of elements


@dtypes(torch.float32, torch.float64, INTEGERS, COMPLEX)
def test_sums_of_coo_tensors(dtype: torch.dtype) -> None:
    for dense in ((), (2,)):
        a = coo(4, 5, entries=12, dense=dense, dtype=dtype, coalesced=True)
        b = coo(4, 5, entries=9, dense=dense, dtype=dtype, coalesced=True)
        check(torch.add, a, b)
        check(lambda a, b: torch.sub(a, b, alpha=2), a, b)
        check(lambda a, b: a.clone().add_(b), a, b)
        check(lambda a, b: (a + b.neg() + b).coalesce(), a, coo(4, 5, entries=30, dense=dense, dtype=dtype))
        check(torch.add, a, torch.zeros_like(a))
        check(torch.add, torch.zeros_like(a), a)


@dtypes(ALL, COMPLEX)
def test_sums_with_dense_tensors(dtype: torch.dtype) -> None:
    for dense in ((), (2,)):
        x = coo(4, 5, entries=30, dense=dense, dtype=dtype)
        t = _values(4, 5, *dense, dtype=dtype)
        check(torch.add, t, x)
        check(lambda t, x: t.add_(x), t, x)
        check(lambda t, x: t.transpose(0, 1).contiguous().transpose(0, 1).add_(x), t, x)
    check(lambda t, x: torch.add(t, x, alpha=3), _values(4, 5, dtype=torch.float32), coo(4, 5, entries=3).int())


def test_errors_of_sums() -> None:
    x = coo(2, 3, entries=4)
    assert_same_error(torch.add, x, sample(2, 3))
    assert_same_error(torch.add, sample(3), x)
    assert_same_error(torch.add, x, x.t())
    assert_same_error(torch.add, x, sample(2, 3).to_sparse(1))
    assert_same_error(lambda x, y: x.add_(y), x.int(), x)
    assert_same_error(lambda x, y: x.add_(y), torch.ones(2, 3).int(), x)
    assert_same_error(lambda x: torch.add(x, x, alpha=1.5), x.int())
    assert_same_error(torch.add, x.coalesce().bool(), x.coalesce().bool())
    eighth = torch.sparse_coo_tensor(x._indices(), x._values().to(torch.float8_e5m2), x.shape)
    assert_same_error(torch.Tensor.coalesce, eighth)
    assert_same_error(torch.add, torch.ones(2, 3, dtype=torch.float8_e5m2), eighth)


@dtypes(NUMBERS, COMPLEX)
def test_products_of_elements(dtype: torch.dtype) -> None:
    a = coo(4, 5, entries=12, dtype=dtype, coalesced=True)
    b = coo(4, 5, entries=9, dtype=dtype, coalesced=True)
    check(lambda a, b: (a * b).coalesce(), a, b)
    check(lambda a, b: (a * b).coalesce(), a, torch.zeros_like(b))
    check(lambda a: a * 3, a)
    check(lambda a: a.mul_(2).coalesce(), a)
    check(torch.mul, a, _values(4, 5, dtype=dtype))
    check(torch.mul, _values(4, 5, dtype=dtype), a)
    check(torch.mul, a, _values(5, dtype=dtype))
    check(torch.mul, a, _values(4, 1, dtype=dtype))
    check(torch.mul, coo(4, 5, entries=30, dtype=dtype), _values(4, 5, dtype=dtype))
    hybrid = coo(4, 5, entries=12, dense=(3,), dtype=dtype, coalesced=True)
    check(lambda a: (a * a).coalesce(), hybrid)
    check(torch.mul, hybrid, _values(4, 5, 3, dtype=dtype))
    check(torch.mul, a, torch.tensor(2).to(dtype).to_sparse())
    check(lambda a, t: torch.mul(a, t).coalesce(), a, _values(2, 4, 5, dtype=dtype))
    if dtype.is_floating_point:
        check(torch.div, a, torch.tensor(3.0, dtype=dtype))


def test_errors_of_products_of_elements() -> None:
    x = coo(2, 3, entries=4)
    assert_same_error(torch.mul, x, x.t())
    assert_same_error(torch.mul, x, sample(4))
    assert_same_error(lambda x, y: x.mul_(y), x.int(), x)


@layouts
@pytest.mark.parametrize("name", ["abs", "neg", "sqrt", "sin", "tanh", "relu", "floor", "sign", "expm1", "isnan"])
def test_functions_of_elements(layout: torch.layout, name: str) -> None:
    check(getattr(torch, name), laid_out(matrix().abs() + 0.0 * matrix(), layout))


def test_functions_of_uncoalesced_tensors_and_in_place() -> None:
    x = coo(4, 5, entries=30)
    for function in (torch.neg, torch.abs, torch.sin, torch.isnan, torch.tanh):
        check(lambda x, f=function: f(x).coalesce(), x)
    for name in ("neg_", "zero_", "floor_"):
        check(lambda x, name=name: getattr(x.clone(), name)(), x.coalesce())
    check(lambda x: x.to(torch.float16), x)
    check(lambda x: x.norm(), x)
    check(lambda x: x.sum(), x)
    check(lambda x: torch.sparse.sum(x, 0), x)
    check(lambda x: torch.sparse.sum(x, [0, 1]), x)


def test_movement() -> None:
    x, y = coo(4, 5, entries=12, coalesced=True), coo(4, 5, entries=7, dense=(3,))
    check(torch.t, x)
    check(lambda x: x.transpose(0, 1), y)
    check(lambda x: x.permute(1, 0, 2), y)
    check(lambda a, b: torch.cat([a, b], 1), x, coo(4, 2, entries=5))
    check(lambda x: x.unsqueeze(1), x)
    check(lambda x: x[1], x)
    check(lambda x: x.narrow_copy(1, 1, 3), x)
    check(lambda x, y: torch.zeros_like(x).copy_(y), x, coo(4, 5, entries=3))
    check(lambda x: x.sparse_resize_(torch.Size([6, 7]), 2, 0), x)
    check(lambda x: x.resize_as_sparse_(torch.zeros(6, 7, device=x.device).to_sparse()).zero_(), x)
    assert_same_error(lambda x, t: t.copy_(x), x, sample(4, 5), words=False)


def test_selection_by_index() -> None:
    x, hybrid = coo(4, 5, entries=12, coalesced=True), coo(4, 5, entries=12, dense=(3,))
    for index in ([1, 3, 1, 0], [2], [-1, -4], [], [0, 0, 0, 0, 0, 0]):
        wanted = torch.tensor(index, dtype=torch.int64)
        for dim in (0, 1, -1):
            for y in (x, coo(4, 5, entries=0)):
                check(lambda x, i, d=dim: x.index_select(d, i).coalesce(), y, wanted)
        for dim in (0, 2) if len(index) != 2 else (0,):
            check(lambda x, i, d=dim: x.index_select(d, i % 3).coalesce(), hybrid, wanted)
    for wrong in (
        torch.tensor([4]),
        torch.tensor([0, -5]),
        torch.tensor([[0]]),
        torch.tensor([0.0]),
        torch.tensor([0]).int(),
    ):
        assert_same_error(lambda x, i: x.index_select(0, i), x, wrong)
    assert_same_error(lambda x, i: x.index_select(2, i), x, torch.tensor([0]))


@pytest.mark.parametrize("dims", [[0], [1], [0, 1], [2], [0, 2], [0, 1, 2], [-1, 1]])
def test_gradients_of_sums(dims: list[int]) -> None:
    grads = []
    for device in ("cpu", "dml"):
        torch.manual_seed(0)
        x = coo(4, 5, entries=15, dense=(3,), coalesced=True).to(device).requires_grad_()
        y = torch.sparse.sum(x, dims)
        y = y.to_dense() if y.is_sparse else y
        (y * torch.arange(float(y.numel()), device=device).reshape(y.shape)).sum().backward()
        grads.append(x.grad)
    assert_same_parts(grads[1].cpu(), grads[0])


def test_masks() -> None:
    mask = coo(4, 5, entries=9, coalesced=True)
    check(torch.Tensor.sparse_mask, sample(4, 5), mask)
    check(torch.Tensor.sparse_mask, coo(4, 5, entries=12, coalesced=True), mask)
    check(torch.Tensor.sparse_mask, sample(4, 5, 3), coo(4, 5, entries=9, dense=(3,), coalesced=True))
    check(torch.Tensor.sparse_mask, coo(4, 5, entries=0, coalesced=True), mask)
    check(torch.Tensor.sparse_mask, coo(4, 5, entries=12, coalesced=True), coo(4, 5, entries=30))
    for accumulate in (False, True):
        for other in (mask, coo(4, 5, entries=30), coo(4, 5, entries=0)):
            for entries in (0, 12):
                x = coo(4, 5, entries=entries, coalesced=True)
                check(lambda x, y, a=accumulate: x._sparse_mask_projection(y, a), x, other)
    assert_same_error(torch.Tensor.sparse_mask, sample(5, 4), mask)


@dtypes(torch.float32, torch.float64)
def test_compressed_tensors_are_added_and_multiplied(dtype: torch.dtype) -> None:
    a, b = matrix(dtype=dtype).to_sparse_csr(), matrix(dtype=dtype).to_sparse_csr()
    check(lambda x: x * 3, a)
    check(torch.add, matrix(dtype=dtype), a)
    check(torch.add, a, matrix(dtype=dtype))
    check(lambda a, b: torch.add(a, b, alpha=2).to_dense(), a, b)
    check(lambda a: a.sum(), a)
    check(lambda a: a.transpose(0, 1), a)
    assert_same_error(torch.add, a, a.to_dense().t().contiguous().to_sparse_csr())


@pytest.mark.allow_fallback
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.sparse.mm(x, x.t()),
        lambda x: torch.sparse.softmax(x, 1),
        lambda x: torch.sparse.log_softmax(x, 0),
        lambda x: torch.sspaddmm(torch.eye(5, device=x.device).to_sparse(), x.t(), x.to_dense()),
        lambda x: torch.sparse.mm(x.to_sparse_csr(), x.t().coalesce().to_sparse_csr()),
        lambda x: torch.sum(x.to_sparse_csr(), 1, keepdim=True),
        lambda x: torch.hspmm(x, torch.ones(5, 2, device=x.device)),
        lambda x: torch.zeros_like(x).to_sparse_csr().add_(x.to_sparse_csr().to_sparse_csr()),
    ],
)
def test_the_rest_runs_on_the_cpu(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = coo(4, 5, entries=12, coalesced=True)
    expected, actual = function(x), function(x.to("dml"))
    assert actual.device.type == "dml"
    assert actual.layout == expected.layout
    assert_same(actual.to_dense(), expected.to_dense(), 1e-5)


@pytest.mark.allow_fallback
def test_fallbacks_are_counted_and_can_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    x = coo(4, 4, entries=9, coalesced=True).to("dml")
    torch.sparse.softmax(x, 1)
    assert torch_dml.fallbacks() == {"aten::_sparse_softmax": 1}
    monkeypatch.setenv("TORCH_DML_FALLBACK", "error")
    with pytest.raises(NotImplementedError, match="_sparse_softmax"):
        torch.sparse.softmax(x, 1)


# --- training


def graph(nodes: int, edges: int) -> torch.Tensor:
    """The normalised adjacency of a random graph."""
    ends = torch.randint(0, nodes, (2, edges))
    ones = torch.sparse_coo_tensor(torch.cat([ends, ends.flip(0)], 1), torch.ones(2 * edges), (nodes, nodes))
    adjacency = (ones + torch.eye(nodes).to_sparse()).coalesce()
    scale = torch.sparse.sum(adjacency, 1).to_dense().rsqrt()
    row, column = adjacency.indices()
    return torch.sparse_coo_tensor(
        adjacency.indices(), adjacency.values() * scale[row] * scale[column], adjacency.shape
    )


class Convolution(torch.nn.Module):
    """A layer of a graph convolutional network."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, adjacency: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.sparse.mm(adjacency, self.linear(x))


@pytest.mark.smoke
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_graph_network_trains_as_on_the_cpu(layout: torch.layout) -> None:
    adjacency, x, labels = laid_out(graph(60, 150).coalesce(), layout), sample(60, 16), torch.randint(0, 4, (60,))
    layers = [Convolution(16, 32), Convolution(32, 4)]
    losses: list[list[float]] = []
    for device in ("cpu", "dml"):
        first, second = to_modules(layers, device)
        optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
        a, features, targets = adjacency.to(device), x.to(device), labels.to(device)
        losses.append([])
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(second(a, first(a, features).relu()), targets)
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[1][-1] < losses[1][0]


def to_modules(modules: list[Any], device: str) -> list[Any]:
    return [copy.deepcopy(module).to(device) for module in modules]


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SparseAdam(p, lr=0.05),
        lambda p: torch.optim.SGD(p, lr=0.5),
        lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
    ],
    ids=["sparse_adam", "sgd", "momentum", "adagrad"],
)
@pytest.mark.parametrize("padding", [None, 3])
def test_a_sparse_embedding_trains_as_on_the_cpu(optimizer: Callable[[Any], Any], padding: int | None) -> None:
    table = torch.nn.Embedding(50, 8, sparse=True, padding_idx=padding)
    tokens, targets = torch.randint(0, 50, (5, 4, 6)), sample(4, 6, 8)
    found = []
    for device in ("cpu", "dml"):
        (embedding,) = to_modules([table], device)
        steps = optimizer(embedding.parameters())
        for batch in tokens:
            steps.zero_grad()
            ((embedding(batch.to(device)) - targets.to(device)) ** 2).sum().backward()
            assert embedding.weight.grad.layout == torch.sparse_coo
            steps.step()
        found.append((embedding.weight, embedding.weight.grad.coalesce().to_dense()))
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert_same(ours, theirs, 1e-4, 1e-5)


@pytest.mark.allow_fallback
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_a_bag_of_embeddings_has_sparse_gradients(mode: str) -> None:
    table, tokens = torch.nn.EmbeddingBag(20, 4, mode=mode, sparse=True), torch.randint(0, 20, (5, 6))
    gradients = []
    for device in ("cpu", "dml"):
        (bag,) = to_modules([table], device)
        bag(tokens.to(device)).square().sum().backward()
        gradients.append(bag.weight.grad)
    assert gradients[1].is_sparse and gradients[1].device.type == "dml"
    assert_same(gradients[1].to_dense(), gradients[0].to_dense())


def test_gradients_of_sparse_tensors_are_accumulated() -> None:
    table = sample(20, 3)
    found = []
    for device in ("cpu", "dml"):
        weight = table.detach().clone().to(device).requires_grad_()
        for seed in (0, 1):
            torch.manual_seed(seed)
            tokens = torch.randint(0, 20, (9,)).to(device)
            torch.nn.functional.embedding(tokens, weight, sparse=True).sum().backward()
        found.append(weight.grad)
    assert_same(found[1].to_dense(), found[0].to_dense())


def test_gradients_go_through_conversions() -> None:
    mask = matrix()
    for layout in LAYOUTS[:2]:
        assert_matches_cpu(lambda x, layout=layout: laid_out(x, layout).to_dense() * 2, mask.clone().requires_grad_())
    values, indices = leaf(6), torch.randint(0, 4, (2, 6))
    assert_matches_cpu(lambda v, i: torch.sparse_coo_tensor(i, v, (4, 4)).to_dense(), values, indices)
    assert_matches_cpu(lambda v, i: torch.sparse_coo_tensor(i, v, (4, 4)).coalesce().values(), values, indices)
    assert_matches_cpu(
        lambda v, i, y: torch.sparse.mm(torch.sparse_coo_tensor(i, v, (4, 4)), y), values, indices, leaf(4, 3)
    )


# --- kernels from PyTorch


def test_kernels_of_the_cpu_alone_are_not_run_on_the_device() -> None:
    """PyTorch's kernels for SparseCPU are used if SparseCUDA has the same ones: the others read
    memory.

    The list of those is in the plugin, and in a file of every torch.
    """
    source = (ROOT / "plugin" / "sparse" / "sparse.cpp").read_text(encoding="utf-8")
    yaml = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text(encoding="utf-8")
    for name, kind in (("kCooApart", "Sparse"), ("kCompressedApart", "SparseCsr")):
        listed = re.search(rf"const Names {name} = \{{(.*?)\}};", source, re.DOTALL)
        assert listed is not None
        apart = set(re.findall(r'"aten::([\w.]+)"', listed.group(1)))
        own = set()
        for entry in yaml.split("- func: ")[1:]:
            kernels = {}
            for keys, kernel in re.findall(r"^    (\w+(?:, *\w+)*): (\w+)", entry, re.MULTILINE):
                kernels.update(dict.fromkeys(re.split(", *", keys), kernel))
            if f"{kind}CPU" in kernels and kernels[f"{kind}CPU"] != kernels.get(f"{kind}CUDA"):
                own.add(entry.split("(")[0])
        assert own and own <= apart, own - apart
