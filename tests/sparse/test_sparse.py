"""Indices of sparse tensors, compared with the CPU."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from tests.support.compare import assert_same_error, assert_same_outcome
from tests.support.dtypes import INTEGERS, dtypes
from tests.support.layouts import lay_out, layouts

INDICES = [torch.int64, torch.int32]


def csr_to_coo(crow: torch.Tensor, col: torch.Tensor, **options: Any) -> torch.Tensor:
    return torch._convert_indices_from_csr_to_coo(crow, col, **options)


def compressed(*batch: int, rows: int, nnz: int, dtype: torch.dtype = torch.int64) -> tuple[torch.Tensor, torch.Tensor]:
    """The beginnings of rows of random elements, and their columns. Some rows are empty."""
    ends = torch.randint(0, nnz + 1, (*batch, rows - 1)).sort(-1).values
    first = ends.new_zeros(*batch, 1)
    return torch.cat([first, ends, first + nnz], -1).to(dtype), torch.randint(0, 9, (*batch, nnz)).to(dtype)


@pytest.mark.smoke
@dtypes(INDICES)
@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 3), (2, 1, 3)])
def test_csr_to_coo(batch: tuple[int, ...], dtype: torch.dtype) -> None:
    for rows, nnz in [(1, 1), (1, 5), (7, 20), (50, 3)]:
        crow, col = compressed(*batch, rows=rows, nnz=nnz, dtype=dtype)
        for int32 in (False, True):
            for transpose in (False, True):
                assert_same_outcome(
                    lambda x, y, a=int32, b=transpose: csr_to_coo(x, y, out_int32=a, transpose=b), crow, col
                )


def test_csr_to_coo_of_many_elements() -> None:
    assert_same_outcome(csr_to_coo, *compressed(3, rows=1000, nnz=70_001))


@dtypes(INTEGERS)
def test_csr_to_coo_of_other_integers(dtype: torch.dtype) -> None:
    crow, col = compressed(2, rows=5, nnz=12, dtype=dtype)
    assert_same_outcome(csr_to_coo, crow, col)
    assert_same_outcome(csr_to_coo, crow, col.long())
    assert_same_outcome(csr_to_coo, crow.long(), col)
    assert_same_outcome(csr_to_coo, crow, col.float())
    assert_same_outcome(csr_to_coo, crow, col > 4)


@layouts("zero_dim", "channels_last")
def test_csr_to_coo_of_layouts(layout: str) -> None:
    crow, col = compressed(3, rows=6, nnz=11)
    assert_same_outcome(csr_to_coo, lay_out(crow, layout), lay_out(col, layout))


def test_csr_to_coo_of_nothing() -> None:
    for crow, col in [((4,), (0,)), ((1,), (0,)), ((1,), (3,)), ((2, 4), (2, 0)), ((0, 4), (0, 3))]:
        assert_same_outcome(csr_to_coo, torch.zeros(crow).long(), torch.zeros(col).long())


def test_csr_to_coo_into_a_tensor() -> None:
    crow, col = compressed(2, rows=6, nnz=11)

    def into(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, **options: Any) -> torch.Tensor:
        result = csr_to_coo(x, y, out=out, **options)
        assert result is out
        return result

    assert_same_outcome(into, crow, col, torch.empty(0).long())
    assert_same_outcome(lambda x, y, out: into(x, y, out, out_int32=True), crow, col, torch.empty(3, 22).int())
    with pytest.warns(UserWarning, match="resized"):
        assert_same_outcome(into, crow, col, torch.empty(5).long())
    # The CPU supports contiguous results only.
    strided = torch.empty(22, 3, dtype=torch.int64, device="dml").t()
    expected = csr_to_coo(crow, col)
    assert torch.equal(into(crow.to("dml"), col.to("dml"), strided).cpu(), expected)
    assert strided.stride() == (1, 3)
    # Results in the memory of the columns.
    shared = torch.zeros(3, 22, dtype=torch.int64, device="dml")
    shared[0] = col.reshape(-1).to("dml")
    assert torch.equal(into(crow.to("dml"), shared[0].view(2, 11), shared).cpu(), expected)


def test_errors_of_csr_to_coo() -> None:
    crow, col = compressed(2, rows=6, nnz=11)
    assert_same_error(csr_to_coo, crow, col[:1])
    assert_same_error(csr_to_coo, crow[:1], col)
    assert_same_error(csr_to_coo, crow.float(), col)
    assert_same_error(csr_to_coo, crow > 3, col)
    assert_same_error(csr_to_coo, torch.tensor(0), torch.tensor(0))
    assert_same_error(lambda x, y: csr_to_coo(x, y, out=x.new_empty(0).int()), crow, col)
    # The CPU's message has the first tensor's dimensions twice.
    assert_same_error(csr_to_coo, crow, col[0], words=False)
    with pytest.raises(RuntimeError, match="got 2 and 1 dimensional"):
        csr_to_coo(crow.to("dml"), col[0].to("dml"))
    with pytest.raises(RuntimeError, match="same device"):
        csr_to_coo(crow.to("dml"), col)


def coo_to_csr(rows: torch.Tensor, size: int, **options: Any) -> torch.Tensor:
    return torch._convert_indices_from_coo_to_csr(rows, size, **options)


@pytest.mark.smoke
@dtypes([*INDICES, torch.uint8, torch.int16])
def test_coo_to_csr(dtype: torch.dtype) -> None:
    for size, nnz in [(1, 1), (1, 5), (7, 20), (50, 3), (20, 0), (0, 0)]:
        rows = torch.randint(0, max(size, 1), (nnz,)).sort().values.to(dtype)
        for int32 in (False, True):
            assert_same_outcome(lambda x, n=size, a=int32: coo_to_csr(x, n, out_int32=a), rows)
    # The CPU reads memory as if it were contiguous.
    assert coo_to_csr(torch.arange(9).to(dtype).to("dml")[::3], 9).tolist() == [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert_same_outcome(lambda x: coo_to_csr(x, 3), torch.tensor(2).to(dtype))


def test_coo_to_csr_of_many_elements() -> None:
    assert_same_outcome(lambda x: coo_to_csr(x, 70_001), torch.randint(0, 70_001, (100_003,)).sort().values)


def test_coo_to_csr_into_a_tensor() -> None:
    rows = torch.tensor([0, 0, 2, 5])
    for out in (torch.empty(0).long(), torch.empty(7).long()):
        assert_same_outcome(lambda x, y: coo_to_csr(x, 6, out=y), rows, out)
    # The input itself is the result.
    device = rows.to("dml")
    assert coo_to_csr(device, 3, out=device).tolist() == [0, 2, 2, 3]


def test_coo_to_csr_of_wrong_arguments() -> None:
    assert_same_error(lambda x: coo_to_csr(x, 3), torch.tensor([1.0]))
    assert_same_error(lambda x: coo_to_csr(x, 3), torch.tensor([[0, 1]]))
    # The CPU writes out of bounds; here elements of rows that do not exist are not counted.
    assert coo_to_csr(torch.tensor([0, 7], device="dml"), 3).tolist() == [0, 1, 1, 1]
    with pytest.raises(RuntimeError, match="negative dimension"):
        coo_to_csr(torch.tensor([0], device="dml"), -5)


def test_sspaddmm_of_strided_tensors() -> None:
    x = torch.ones(3, 3)
    assert_same_error(torch.sspaddmm, x, x, x)
    assert_same_error(lambda x: torch.sspaddmm(x, x, x, out=x.clone()), x)


def are_valid(offsets: torch.Tensor, indices: torch.Tensor, rows: int, size: int, nnz: int) -> bool:
    """The check raises an error if they are not."""
    results = [torch._validate_compressed_sparse_indices(c, offsets, indices, rows, size, nnz) for c in (True, False)]
    return results == [None, None]


@dtypes(INDICES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_indices_that_are_valid(batch: tuple[int, ...], dtype: torch.dtype) -> None:
    for rows, size, density in [(1, 1, 1.0), (7, 50, 0.3), (300, 40, 0.5), (5, 3000, 0.9)]:
        # Rows of one pattern, reversed: batches have as many entries.
        pattern = torch.rand(rows, size) < density
        tensors = [pattern if i % 2 == 0 else pattern.flip(0) for i in range(torch.Size(batch).numel())]
        compressed = [t.float().to_sparse_csr() for t in tensors]
        offsets = torch.stack([t.crow_indices() for t in compressed]).to(dtype).reshape(*batch, rows + 1)
        indices = torch.stack([t.col_indices() for t in compressed]).to(dtype).reshape(*batch, -1)
        assert are_valid(offsets, indices, rows, size, indices.size(-1))
        assert are_valid(offsets.to("dml"), indices.to("dml"), rows, size, indices.size(-1))
        laid_out = [lay_out(t.to("dml"), "transposed") if t.dim() > 1 else t.to("dml") for t in (offsets, indices)]
        assert are_valid(*laid_out, rows, size, indices.size(-1))


@dtypes(INDICES)
@pytest.mark.parametrize(
    ("offsets", "indices", "rows", "size"),
    [
        ([1, 1, 2, 4], [0, 1, 0, 1], 3, 2),
        ([0, 1, 2, 3], [0, 1, 0, 1], 3, 2),
        ([0, 3, 2, 4], [0, 1, 0, 1], 3, 2),
        ([0, 3, 4, 4], [0, 1, 2, 0], 3, 2),
        ([0, 1, 2, 4], [0, 1, 0, 2], 3, 2),
        ([0, 1, 2, 4], [0, -1, 0, 1], 3, 2),
        ([0, 1, 2, 4], [0, 1, 1, 0], 3, 2),
        ([0, 1, 2, 4], [0, 1, 1, 1], 3, 2),
        ([0, -5, 90, 4], [0, 1, 0, 1], 3, 2),
        ([0], [0], 0, 0),
        ([[0, 2], [0, 2]], [[0, 1], [1, 0]], 1, 2),
        ([[0, 2], [0, 1]], [[0, 1], [0, 1]], 1, 2),
        ([0, 1, 2], [0, 1], 3, 2),
    ],
)
def test_indices_that_are_not(offsets: list[Any], indices: list[Any], rows: int, size: int, dtype: torch.dtype) -> None:
    given = torch.tensor(offsets, dtype=dtype), torch.tensor(indices, dtype=dtype)
    nnz = given[1].size(-1)
    for is_crow in (True, False):
        check = partial(torch._validate_compressed_sparse_indices, is_crow, cdim=rows, dim=size)
        for count, other in [(nnz, dtype), (nnz + 1, dtype), (nnz, torch.float32), (nnz, torch.int16)]:
            assert_same_error(partial(check, nnz=count), given[0], given[1].to(other))


def test_indices_of_no_entries() -> None:
    for device in ("cpu", "dml"):
        assert are_valid(
            torch.zeros(1, dtype=torch.int64, device=device), torch.empty(0, dtype=torch.int64, device=device), 0, 0, 0
        )
        assert are_valid(
            torch.zeros(6, dtype=torch.int64, device=device), torch.empty(0, dtype=torch.int64, device=device), 5, 0, 0
        )
        assert are_valid(*torch.zeros(2, 0, 3, dtype=torch.int64, device=device), 2, 9, 3)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_invariants_of_new_tensors(layout: str) -> None:
    blocks = {"blocksize": (2, 3)} if layout.startswith("b") else {}
    sparse = torch.arange(24.0).reshape(4, 6).fmod(3.0).to_sparse(layout=getattr(torch, f"sparse_{layout}"), **blocks)
    rows = layout.endswith("sr")
    offsets = (sparse.crow_indices() if rows else sparse.ccol_indices()).to("dml")
    indices = (sparse.col_indices() if rows else sparse.row_indices()).to("dml")
    values = sparse.values().to("dml")

    def make(offsets: torch.Tensor) -> torch.Tensor:
        return torch.sparse_compressed_tensor(
            offsets, indices, values, sparse.shape, layout=sparse.layout, check_invariants=True
        )

    assert torch.equal(make(offsets).cpu().to_dense(), sparse.to_dense())
    with pytest.raises(RuntimeError, match="is not satisfied"):
        make(offsets + 1)
