"""Reductions of segments and their gradients, compared with the CPU."""

from __future__ import annotations

import pytest
import torch

from tests.support.compare import assert_matches_cpu, assert_same_error, assert_same_outcome
from tests.support.dtypes import FLOATS, dtypes

KINDS = ["max", "mean", "min", "sum", "prod"]


def offsets_of(lengths: torch.Tensor) -> torch.Tensor:
    return torch.cat([lengths.new_zeros(*lengths.shape[:-1], 1), lengths.cumsum(-1)], -1)


@pytest.mark.smoke
@dtypes(FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_segments(kind: str, dtype: torch.dtype) -> None:
    data = torch.randn(10, 3, 2).to(dtype)
    lengths = torch.tensor([3, 0, 5, 1, 1])
    for given in (lengths, lengths.int()):
        for initial in (None, 2.0):
            assert_same_outcome(
                lambda x, n, i=initial: torch.segment_reduce(x, kind, lengths=n, axis=0, initial=i), data, given
            )
        assert_same_outcome(lambda x, n: torch.segment_reduce(x, kind, offsets=offsets_of(n)), data, given)


@pytest.mark.parametrize("kind", KINDS)
def test_segments_of_later_dimensions(kind: str) -> None:
    data, lengths = torch.randn(2, 7, 3), torch.tensor([[3, 4, 0], [1, 1, 5]])
    assert_same_outcome(lambda x, n: torch.segment_reduce(x, kind, lengths=n, axis=1), data, lengths)
    assert_same_outcome(lambda x, n: torch.segment_reduce(x, kind, offsets=offsets_of(n), axis=1), data, lengths)
    swapped = data.transpose(0, 2).contiguous().transpose(0, 2)
    assert_same_outcome(lambda x, n: torch.segment_reduce(x, kind, lengths=n, axis=1), swapped, lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: str) -> None:
    data = torch.randn(2, 7, 3)
    data[0, 1], data[1, 3] = data[0, 0], 0.0
    lengths = torch.tensor([[3, 4, 0], [1, 1, 5]])
    for initial in (None, 1.5):
        assert_matches_cpu(
            lambda x, n, i=initial: torch.segment_reduce(x, kind, lengths=n, axis=1, initial=i),
            data.clone().requires_grad_(),
            lengths,
        )
        assert_matches_cpu(
            lambda x, n, i=initial: torch.segment_reduce(x, kind, offsets=offsets_of(n), axis=1, initial=i),
            data.clone().requires_grad_(),
            lengths,
        )


@pytest.mark.parametrize("kind", KINDS)
def test_special_values(kind: str) -> None:
    data = torch.tensor([1.0, float("nan"), 2.0, float("inf"), -1.0, 0.0, 3.0, 3.0]).requires_grad_()
    lengths = torch.tensor([3, 2, 3])
    assert_same_outcome(lambda x, n: torch.segment_reduce(x, kind, lengths=n), data.detach(), lengths)
    assert_matches_cpu(lambda x, n: torch.segment_reduce(x, kind, lengths=n), data, lengths)


def test_of_nothing() -> None:
    for kind in KINDS:
        for data, lengths in ((torch.zeros(0, 3), torch.tensor([0, 0])), (torch.zeros(4, 0), torch.tensor([1, 3]))):
            assert_same_outcome(lambda x, n, k=kind: torch.segment_reduce(x, k, lengths=n), data, lengths)


def test_errors() -> None:
    data, lengths = torch.randn(6, 2), torch.tensor([2, 4])
    function = torch.segment_reduce
    assert_same_error(lambda x, n: function(x, "median", lengths=n), data, lengths)
    assert_same_error(lambda x, n: function(x, "sum", lengths=n - 3), data, lengths)
    assert_same_error(lambda x, n: function(x, "sum", lengths=n + 1), data, lengths)
    assert_same_error(lambda x, n: function(x, "sum", lengths=n, axis=1), data, lengths)
    assert_same_error(lambda x, n: function(x, "sum", indices=n), data, lengths)
    assert_same_error(lambda x, n: function(x, "sum"), data, lengths)
    assert_same_error(lambda x, n: function(x, "sum", lengths=n.float(), unsafe=True), data, lengths)
    assert_same_error(lambda x, n: function(x.long(), "sum", lengths=n), data, lengths)


def test_untrusted_bounds_read_nothing_outside() -> None:
    data = torch.ones(4, device="dml")
    lengths = torch.tensor([2, 100], device="dml")
    assert torch.segment_reduce(data, "sum", lengths=lengths, unsafe=True).tolist() == [2.0, 2.0]
    offsets = torch.tensor([-5, 3, 50], device="dml")
    assert torch.segment_reduce(data, "sum", offsets=offsets).tolist() == [3.0, 1.0]
