"""Optimizers: the parameters after some steps equal the CPU's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import assert_same

STEPS = 5


def train(kind: type[torch.optim.Optimizer], device: str, options: dict[str, Any]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    parameters = [
        torch.randn(s, generator=generator).to(device).requires_grad_() for s in ((4, 7), (33,), (), (2, 3, 5))
    ]
    optimizer = kind(parameters, **options)
    for _ in range(STEPS):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator).to(device)
        optimizer.step()
    states = [
        value
        for p in parameters
        for value in optimizer.state[p].values()
        if isinstance(value, torch.Tensor) and value.dim() == p.dim()
    ]
    return [t.detach().cpu() for t in (*parameters, *states)]


def same_as_cpu(
    kind: type[torch.optim.Optimizer], options: dict[str, Any], reference: dict[str, Any], rtol: float = 1e-6
) -> None:
    for ours, theirs in zip(train(kind, "dml", options), train(kind, "cpu", reference), strict=True):
        # A sum's rounding errors are relative to its largest terms, not to what is left where they cancel.
        assert_same(ours, theirs, rtol, rtol / 10 * max(1.0, float(theirs.abs().max())))


CASES = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (torch.optim.Adam, {"lr": 0.01}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    (torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.95), "maximize": True, "amsgrad": True}),
]


@pytest.mark.smoke
@pytest.mark.parametrize("form", ["foreach", "single", "fused"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_common_optimizers(kind: type[torch.optim.Optimizer], options: dict[str, Any], form: str) -> None:
    flags = {"foreach": form == "foreach"} if form != "fused" else {"fused": True}
    same_as_cpu(kind, {**options, **flags}, {**options, "foreach": False})


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.9, "centered": True}),
        (torch.optim.Adagrad, {"lr": 0.1}),
        (torch.optim.Adamax, {"lr": 0.01}),
        (torch.optim.NAdam, {"lr": 0.01}),
        (torch.optim.RAdam, {"lr": 0.01}),
        (torch.optim.Adadelta, {"lr": 1.0}),
    ],
)
def test_other_optimizers(kind: type[torch.optim.Optimizer], options: dict[str, Any], foreach: bool) -> None:
    options = {**options, "foreach": foreach}
    same_as_cpu(kind, options, {**options, "foreach": False}, 5e-6)


def test_a_fused_step_is_skipped_where_gradients_overflow() -> None:
    p = torch.ones(5, device="dml", requires_grad=True)
    for optimizer in (torch.optim.SGD([p], 0.1, momentum=0.9, fused=True), torch.optim.AdamW([p], 0.1, fused=True)):
        optimizer.grad_scale = torch.tensor(4.0, device="dml")
        p.grad = torch.full_like(p, 8.0)
        optimizer.found_inf = torch.tensor(1.0, device="dml")
        before = p.detach().clone()
        optimizer.step()
        assert p.detach().equal(before)
        assert (p.grad == 2).all()
        optimizer.found_inf = torch.tensor(0.0, device="dml")
        optimizer.step()
        assert not p.detach().equal(before)
