"""Strides of results are the CPU's where they are not those of the input; for other operators:
test_operator_dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.support.compare import assert_same_outcome, to_device
from tests.support.dtypes import sample
from tests.support.layouts import lay_out, layouts

aten = torch.ops.aten

OPERATORS: dict[str, Callable[[torch.Tensor], Any]] = {
    "nonzero": torch.nonzero,
    "nonzero of nothing": lambda x: torch.nonzero(x * 0),
    "nonzero out": lambda x: torch.nonzero(x, out=x.new_empty(0, dtype=torch.int64)),
    "argwhere": torch.argwhere,
    **{f"unique {d}": (lambda x, d=d: torch.unique(x, dim=d)) for d in (0, 1, 2)},
    **{f"unique_consecutive {d}": (lambda x, d=d: torch.unique_consecutive(x, dim=d)) for d in (0, 1, 2)},
    "msort": torch.msort,
    "sort": lambda x: tuple(x.sort(1, stable=True)),
    "sort out": lambda x: torch.sort(x, stable=True, out=(x.new_empty(0), x.new_empty(0, dtype=torch.int64))),
    "roll": lambda x: x.roll((1, 2), (0, 1)),
    "roll of a row": lambda x: x.roll(3),
    "flip": lambda x: x.flip(0),
    "addr": lambda x: torch.addr(x[0], x[0, :, 0], x[0, 0]),
    "addr without itself": lambda x: torch.addr(x[0], x[0, :, 0], x[0, 0], beta=0),
    "masked_fill": lambda x: x.masked_fill(x > 1, 2),
    "masked_fill of a mask": lambda x: x[0].masked_fill(x > 1, 2),
    "index": lambda x: x[:, [1, 0]],
    "index by two": lambda x: x[[0, 1], :, [1, 0]],
    "index by matrices": lambda x: x[:, torch.tensor([[0, 1], [1, 2]]).to(x.device)],
    "index by a mask": lambda x: x[x[:, :, 0] > 0],
    "pow of a number": lambda x: torch.pow(2.0, x),
    "ldexp": lambda x: torch.ldexp(x, x),
    "hardtanh": torch.nn.functional.hardtanh,
    "nan_to_num": torch.nan_to_num,
    "mvlgamma": lambda x: torch.mvlgamma(x + 3, 2),
    "exp out": lambda x: torch.exp(x, out=x.new_empty(0)),
    "add out": lambda x: torch.add(x, x, out=x.new_empty(0)),
    "sum out": lambda x: torch.sum(x, 1, out=x.new_empty(0)),
    "cat out": lambda x: torch.cat([x, x], out=x.new_empty(0)),
}

# Functions of two tensors, which may have different strides.
PAIRS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "add": torch.add,
    "rsub": torch.rsub,
    "where": lambda x, y: torch.where(x > 0, x, y),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, 2),
    "masked_scatter": lambda x, y: x.masked_scatter(y > 0, x),
    "prelu": aten._prelu_kernel,
    "gelu_backward": aten.gelu_backward,
    "sigmoid_backward": aten.sigmoid_backward,
    "log_sigmoid_backward": lambda x, y: aten.log_sigmoid_backward(x, y, aten.log_sigmoid_forward(y)[1]),
    "threshold_backward": lambda x, y: aten.threshold_backward(x, y, 0.5),
    "leaky_relu_backward": lambda x, y: aten.leaky_relu_backward(x, y, 0.5, False),
    "elu_backward": lambda x, y: aten.elu_backward(x, 1, 1, 1, False, y),
    "hardtanh_backward": lambda x, y: aten.hardtanh_backward(x, y, 0, 1),
    "mse_loss": lambda x, y: aten.mse_loss(x, y, 0),
    "mse_loss_backward": lambda x, y: aten.mse_loss_backward(x, x, y, 0),
    "smooth_l1_loss": lambda x, y: aten.smooth_l1_loss(x, y, 0),
    "smooth_l1_loss_backward": lambda x, y: aten.smooth_l1_loss_backward(x, x, y, 0, 1),
    "huber_loss": lambda x, y: aten.huber_loss(x, y, 0),
    "huber_loss_backward": lambda x, y: aten.huber_loss_backward(x, x, y, 0, 1),
    "binary_cross_entropy": lambda x, y: aten.binary_cross_entropy(x * 0 + 0.5, y.clamp(0, 1), None, 0),
    "softmax_backward": lambda x, y: aten._softmax_backward_data(x, y, 1, x.dtype),
    "dropout_backward": lambda x, y: aten.native_dropout_backward(x, y > 0, 2),
}

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "rotated": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
    "sliced": lambda x: x.repeat(1, 1, 2)[..., ::2],
    "sliced and rotated": lambda x: x.repeat(2, 1, 1)[::2].movedim(0, -1).contiguous().movedim(-1, 0),
    "expanded": lambda x: x[:1].expand(x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", OPERATORS)
def test_strides(name: str, view: str) -> None:
    x = torch.randint(0, 3, (2, 3, 4)).float()
    assert_same_outcome(OPERATORS[name], VIEWS[view](x))


@pytest.mark.parametrize("name", PAIRS)
def test_strides_of_two(name: str) -> None:
    x, y = (torch.randint(0, 3, (2, 3, 4)).float() for _ in range(2))
    for view in VIEWS.values():
        for other in VIEWS.values():
            assert_same_outcome(PAIRS[name], view(x), other(y))


# The functions' arguments after the sizes.
RESAMPLINGS: dict[str, tuple[bool, ...]] = {
    "upsample_nearest2d": (),
    "_upsample_nearest_exact2d": (),
    "upsample_nearest3d": (),
    "_upsample_nearest_exact3d": (),
    "upsample_bilinear2d": (True,),
    "upsample_bicubic2d": (True,),
    "upsample_trilinear3d": (True,),
    "_upsample_bilinear2d_aa": (True,),
    "_upsample_bicubic2d_aa": (True,),
}


@layouts("zero_dim", "empty")
@pytest.mark.parametrize("name", RESAMPLINGS)
def test_strides_of_resampled_images(name: str, layout: str) -> None:
    rank, more = 3 if "3d" in name else 2, RESAMPLINGS[name]
    forward, backward = getattr(aten, name), getattr(aten, name + "_backward")
    x = lay_out(sample(2, 3, *[4] * rank), layout)
    assert_same_outcome(lambda x: forward(x, [6] * rank, *more), x)
    assert_same_outcome(lambda x: backward(x, [4] * rank, [2, 3, *[2] * rank], *more), x)


@layouts("zero_dim", "empty")
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflection", "replication"])
def test_strides_of_padded_images(mode: str, rank: int, layout: str) -> None:
    forward, backward = (getattr(aten, f"{mode}_pad{rank}d{suffix}") for suffix in ("", "_backward"))
    for lead in ([2], [2, 3]):
        x, padded = (lay_out(sample(*lead, *[n] * rank), layout) for n in (4, 6))
        assert_same_outcome(lambda x: forward(x, [1] * 2 * rank), x)
        assert_same_outcome(lambda x, g: backward(g, x, [1] * 2 * rank), x, padded)


DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "normal of means": lambda x: torch.normal(x, 1.0),
    "normal of deviations": lambda x: torch.normal(1.0, x),
    "normal": lambda x: torch.normal(x, x),
    "normal of a row": lambda x: torch.normal(x[0, 0], x),
    "normal out": lambda x: torch.normal(x, x, out=x.new_empty(0)),
    "bernoulli": torch.bernoulli,
    "poisson": torch.poisson,
    "binomial": lambda x: torch.binomial(x.round(), x),
    "gamma": torch._standard_gamma,
    "dirichlet": torch._sample_dirichlet,
    "rrelu": lambda x: torch.rrelu(x, training=True),
    "rrelu without noise": torch.rrelu,
    "dropout": lambda x: aten.native_dropout(x, 0.5, True)[0],
    "rand_like": torch.rand_like,
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", DRAWS)
def test_strides_of_draws(name: str, view: str) -> None:
    x = VIEWS[view](torch.rand(2, 3, 4))
    assert DRAWS[name](to_device(x, "dml")).stride() == DRAWS[name](x).stride()
