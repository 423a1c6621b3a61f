"""Operators whose kernels loop over something long in one invocation, with more than the 65,535
iterations of all loops after which Mesa's software adapter before version 23 silently ends them:
such work is split, or runs on the CPU.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.support.compare import assert_matches_cpu

pytestmark = [
    pytest.mark.allow_fallback,
    pytest.mark.filterwarnings("ignore:The operator .* has no dml kernel"),
]
LONG = 80_000
# Each key takes several iterations.
KEYS = 40_000


def leaf(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes).requires_grad_()


def test_attention_of_many_keys() -> None:
    """The results of ranges of keys are combined, also for rows that attend to nothing in some
    ranges, or in all.
    """
    mask = torch.zeros(3, KEYS)
    mask[0, : KEYS // 2], mask[1, KEYS // 9 :], mask[2] = -torch.inf, -torch.inf, -torch.inf
    attend = lambda q, k, m: F.scaled_dot_product_attention(q, k, k * 0.5, attn_mask=m)  # noqa: E731
    assert_matches_cpu(attend, leaf(1, 1, 3, 32), leaf(1, 1, KEYS, 32), mask, terms=KEYS)


def test_attention_of_many_queries() -> None:
    attend = lambda q, k: F.scaled_dot_product_attention(q, k, k * 0.5, is_causal=True)  # noqa: E731
    assert_matches_cpu(attend, leaf(1, 1, KEYS, 32), leaf(1, 1, 3, 32), terms=KEYS)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_long_bag(mode: str) -> None:
    indices = (torch.arange(2 * LONG) * 7 % 5)[None]
    # Only the last row has the largest index.
    indices[0, -1] = 5
    table = torch.tensor([[1.0, -1], [2, 0.5], [-3, 2], [0.5, -3], [0, 1], [9, 8]]).requires_grad_()
    assert_matches_cpu(lambda w, i: F.embedding_bag(i, w, mode=mode), table, indices, terms=LONG)


def test_slices_that_differ_late() -> None:
    x = torch.zeros(4, LONG, dtype=torch.int64)
    x[1, -1] = x[3, -1] = 1
    for function in (torch.unique, torch.unique_consecutive):
        assert_matches_cpu(lambda x, f=function: f(x, dim=0, return_inverse=True, return_counts=True), x)


def test_grids_of_many_channels_and_points() -> None:
    sample = lambda x, t: F.grid_sample(x, t, align_corners=False)  # noqa: E731
    assert_matches_cpu(sample, leaf(1, LONG, 2, 2), leaf(1, 1, 2, 2), terms=LONG)
    assert_matches_cpu(sample, leaf(2, 1, 1, 1), torch.zeros(2, 1, LONG, 2), terms=LONG)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_one_pixel_enlarged(mode: str) -> None:
    assert_matches_cpu(lambda x: F.interpolate(x, (1, LONG), mode=mode), leaf(1, 1, 1, 2), terms=LONG)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_many_pixels_as_one(mode: str) -> None:
    assert_matches_cpu(lambda x: F.interpolate(x, (1, 2), mode=mode, antialias=True), leaf(1, 1, 1, LONG), terms=LONG)


def test_padding_of_one_element() -> None:
    assert_matches_cpu(lambda x: F.pad(x, (5, LONG), mode="replicate"), leaf(1, 1, 3), terms=LONG)


def test_pools_of_one_element() -> None:
    for pool in (F.adaptive_avg_pool1d, F.adaptive_max_pool1d):
        assert_matches_cpu(lambda x, pool=pool: pool(x, LONG), leaf(1, 1, 2), terms=LONG)
        assert_matches_cpu(lambda x, pool=pool: pool(x, 1), leaf(1, 1, LONG), terms=LONG)


def test_windows_as_large_as_the_image() -> None:
    assert_matches_cpu(lambda x: F.fold(x, (260, 260), (259, 259)), torch.randn(1, 259 * 259, 4))


def test_classes_of_margins() -> None:
    targets = torch.cat((torch.tensor([3, LONG - 1]), torch.full((LONG - 2,), -1)))[None]
    assert_matches_cpu(F.multilabel_margin_loss, leaf(1, LONG), targets, terms=LONG)


def test_ctc_of_many_frames() -> None:
    """One launch for all frames; one for each frame if the loops would be too long."""
    frames, labels = 7_400, 1_000
    scores = torch.randn(frames, 1, 4).requires_grad_()
    targets = torch.arange(labels)[None] % 3 + 1
    loss = lambda x: F.ctc_loss(x.log_softmax(2), targets, [frames], [labels], reduction="sum")  # noqa: E731
    assert_matches_cpu(loss, scores, terms=frames)
