"""Embeddings with a limited norm, and bags of embeddings, compared with the CPU."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.compare import assert_matches_cpu, assert_same, assert_same_error
from tests.support.dtypes import FLOATS, dtypes, leaf

aten = torch.ops.aten
MODES = ["sum", "mean", "max"]


INDICES = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9, 4])
OFFSETS = torch.tensor([0, 4, 4, 6])


@pytest.mark.parametrize("mode", MODES)
@dtypes(FLOATS)
def test_bags(mode, dtype):
    bag = lambda w, i, o, **k: F.embedding_bag(i, w, o, mode=mode, **k)  # noqa: E731
    w = leaf(10, 3, dtype=dtype)
    assert_matches_cpu(bag, w, INDICES, OFFSETS)
    assert_matches_cpu(bag, w, INDICES.int(), OFFSETS.int())
    assert_matches_cpu(bag, w, INDICES, OFFSETS, padding_idx=4)
    assert_matches_cpu(bag, w, INDICES, torch.tensor([0, 3, 9]), include_last_offset=True)
    assert_matches_cpu(lambda w, i: F.embedding_bag(i, w, mode=mode), w, INDICES.view(3, 3))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_by_frequency(mode):
    """Compared with the embedding's: the CPU's bags divide by the frequencies of wrong indices."""
    theirs = leaf(10, 3)
    ours = theirs.detach().to("dml").requires_grad_()
    i, g = INDICES.view(3, 3), torch.randn(3, 3)
    getattr(F.embedding(i, theirs, scale_grad_by_freq=True), mode)(1).backward(g)
    F.embedding_bag(i.to("dml"), ours, mode=mode, scale_grad_by_freq=True).backward(g.to("dml"))
    assert_same(ours.grad, theirs.grad)


@dtypes(FLOATS)
def test_bags_with_weights(dtype):
    bag = lambda w, p, i, o, **k: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p, **k)  # noqa: E731
    w, p = leaf(10, 3, dtype=dtype), torch.rand(9).to(dtype).requires_grad_()
    assert_matches_cpu(bag, w, p, INDICES, OFFSETS)
    assert_matches_cpu(bag, w, p, INDICES, OFFSETS, padding_idx=2)
    assert_matches_cpu(bag, w, p, INDICES, torch.tensor([0, 3, 9]), include_last_offset=True)
    assert_matches_cpu(bag, leaf(10, 700, dtype=dtype), p, INDICES, OFFSETS, terms=8)


@pytest.mark.parametrize("mode", MODES)
def test_bag_shapes(mode):
    bag = lambda w, i, o: F.embedding_bag(i, w, o, mode=mode)  # noqa: E731
    assert_matches_cpu(bag, leaf(10, 3), INDICES[:0], torch.tensor([0, 0, 0]))
    assert_matches_cpu(bag, leaf(10, 3).detach(), INDICES[:0], OFFSETS[:0])
    assert_matches_cpu(bag, leaf(10, 1), INDICES, OFFSETS)
    assert_matches_cpu(lambda w, i, o: bag(w.t(), i, o), leaf(3, 10), INDICES, OFFSETS)
    assert_matches_cpu(lambda w, i, o: bag(w[::2, 1:], i, o), leaf(20, 4), INDICES, OFFSETS)
    many = torch.randint(0, 50, (5000,))
    assert_matches_cpu(bag, leaf(50, 33), many, torch.arange(0, 5000, 100), terms=8)


def test_bag_results():
    def run(mode):
        def bag(w, i, o):
            out, bag_of, size, largest = aten._embedding_bag(w, i, o, False, mode, False, None, False, 4)
            return out, bag_of, size, largest if mode == 2 else size

        return bag

    for mode in (1, 2):
        assert_matches_cpu(run(mode), leaf(10, 3).detach(), INDICES, OFFSETS)
    w = leaf(10, 3).detach()
    w[4, 1] = math.nan
    w[1, 0] = math.nan
    assert_matches_cpu(run(2), w, INDICES, OFFSETS)
    only = lambda w, i, o: aten._embedding_bag_forward_only(w, i, o, False, 1)[0]  # noqa: E731
    assert_matches_cpu(only, leaf(10, 3).detach(), INDICES, OFFSETS)

    def backward(w, i, o, g):
        results = []
        for mode in (0, 1, 2):
            _, bag_of, size, largest = aten._embedding_bag(w, i, o, False, mode, False, None, False, 2)
            results.append(
                aten._embedding_bag_backward(g, i, o, bag_of, size, largest, 10, False, mode, False, None, 2)
            )
            if w.device.type == "dml":  # the CPU leaves out what its own dense backward needs
                dense = aten._embedding_bag_dense_backward(g, i, bag_of, size, largest, 10, False, mode, None, 2)
                assert torch.equal(dense, results[-1])
        return results

    assert_matches_cpu(backward, leaf(10, 3).detach(), INDICES, OFFSETS, torch.randn(4, 3))


def test_bag_errors():
    w, i, o = leaf(10, 3).detach().to("dml"), INDICES.to("dml"), OFFSETS.to("dml")
    bag = aten._embedding_bag
    with pytest.raises(IndexError, match="index 10 is out of bounds for dimension 0 with size 10"):
        bag(w, i + 1, o)[0].cpu()
    with pytest.raises(IndexError, match="index -1 is out of bounds for dimension 0 with size 10"):
        bag(w, i - 2, o)[0].cpu()
    for wrong in ([1, 2, 3], [0, 3, 2], [0, 20], [0, -1]):
        with pytest.raises(IndexError):
            bag(w, i, torch.tensor(wrong, device="dml"))[0].cpu()
    with pytest.raises(RuntimeError, match="per_sample_weights only supported with mode='sum'"):
        bag(w, i, o, False, 1, False, w[:, 0])
    with pytest.raises(RuntimeError, match="scalar types: Long, Int"):
        bag(w, i.float(), o)
    with pytest.raises(RuntimeError, match="weight has to be a 2D Tensor"):
        bag(w[0], i, o)
    assert bag(w, i, o)[0].isfinite().all()


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
@dtypes(FLOATS)
def test_embedding_renorm(p, dtype):
    renorm = lambda w, i: aten.embedding_renorm_(w, i, 1.5, p)  # noqa: E731
    assert_matches_cpu(renorm, leaf(10, 4, dtype=dtype).detach(), INDICES)
    assert_matches_cpu(renorm, leaf(10, 4, dtype=dtype).detach() * 0.1, INDICES.int().view(3, 3))
    assert_matches_cpu(lambda w, i: renorm(w.t(), i), leaf(4, 10, dtype=dtype).detach(), INDICES)
    assert_matches_cpu(renorm, leaf(10, 600, dtype=dtype).detach(), INDICES)
    assert_matches_cpu(renorm, leaf(10, 4, dtype=dtype).detach(), INDICES[:0])


def test_renorm_of_expanded_rows():
    """Elements at one address are not scaled: an error if a row's norm is above the limit, and only
    then.
    """
    rows = lambda w: w.as_strided((5, 3), (1, 0))  # noqa: E731
    assert_same_error(
        lambda w, i: aten.embedding_renorm_(rows(w), i, 1.0, 2.0), torch.arange(5.0), torch.tensor([0, 2])
    )
    assert_matches_cpu(
        lambda w, i: aten.embedding_renorm_(rows(w), i, 2.0, 2.0), torch.arange(5.0), torch.tensor([0, 1])
    )


def test_max_norm():
    def run(w, i):
        layer = nn.Embedding(10, 4, max_norm=1.0, padding_idx=2, _weight=w.detach().clone()).to(i.device)
        layer(i).square().sum().backward()
        bag = nn.EmbeddingBag(10, 4, max_norm=0.8, mode="max", _weight=w.detach().clone()).to(i.device)
        return layer.weight.detach(), layer.weight.grad, bag(i.view(3, 3)).detach(), bag.weight.detach()

    assert_matches_cpu(run, leaf(10, 4).detach(), INDICES)
    assert_matches_cpu(lambda w, i: F.embedding(i, w.clone(), max_norm=0.5), leaf(10, 4).detach(), INDICES)
    many = torch.randint(0, 3000, (4000,))
    assert_matches_cpu(lambda w, i: aten.embedding_renorm_(w, i, 2.0, 2.0), leaf(3000, 8).detach(), many)


def test_renorm_errors():
    w, i = leaf(10, 4).detach().to("dml"), INDICES.to("dml")
    with pytest.raises(RuntimeError, match="Expected 2-dimensional tensor"):
        aten.embedding_renorm_(w[None], i, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="scalar types: Long, Int"):
        aten.embedding_renorm_(w, i.float(), 1.0, 2.0)
    with pytest.raises(IndexError, match="index 11 is out of bounds for dimension 0 with size 10"):
        aten.embedding_renorm_(w, i + 2, 1.0, 2.0).cpu()


@dtypes(FLOATS)
def test_embedding(dtype):
    w = leaf(10, 4, dtype=dtype)
    assert_matches_cpu(lambda w, i: F.embedding(i, w), w, INDICES.view(3, 3))
    assert_matches_cpu(lambda w, i: F.embedding(i, w, padding_idx=4, scale_grad_by_freq=True), w, INDICES)
    assert_same(F.embedding(INDICES[:0].to("dml"), w.to("dml")).detach(), torch.zeros(0, 4, dtype=dtype))
