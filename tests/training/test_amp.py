"""torch.autocast("dml") and torch.amp.GradScaler("dml")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.compare import assert_matches_cpu, assert_same
from tests.support.dtypes import HALVES


def operators(lower: torch.dtype) -> dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    """By name: the precision in which it runs, and a call with a float32 matrix. For others:
    test_amp_lists.py.
    """
    half = lambda x: x.to(lower)  # noqa: E731
    heads = lambda x: x.reshape(1, 1, *x.shape)  # noqa: E731
    return {
        "einsum": ("lower", lambda x: torch.einsum("ij,jk->ik", x, x)),
        "attention": ("lower", lambda x: F.scaled_dot_product_attention(heads(x), heads(x), heads(x))),
        "lstm_cell": ("lower", lambda x: nn.LSTMCell(4, 3).to(x.device)(x)[0]),
        "gru": ("lower", lambda x: nn.GRU(4, 3).to(x.device)(x[None])[0]),
        "cross_entropy": (
            "fp32",
            lambda x: F.cross_entropy(half(x), torch.zeros(4, dtype=torch.long, device=x.device)),
        ),
        "relu": ("same", lambda x: half(x).relu()),
        "add": ("same", lambda x: half(x) + half(x)),
        "max": ("same", lambda x: half(x).max()),
    }


@pytest.mark.parametrize("lower", HALVES)
@pytest.mark.parametrize("name", operators(torch.float16))
def test_dtypes_of_results(name: str, lower: torch.dtype) -> None:
    kind, run = operators(lower)[name]
    expected = {"lower": lower, "fp32": torch.float32, "same": lower}[kind]
    x = torch.randn(4, 4, device="dml")
    with torch.autocast("dml", lower):
        result = run(x)
    assert result.dtype == expected


def test_doubles_and_integers_are_left_alone() -> None:
    x = torch.ones(3, 3, device="dml", dtype=torch.float64)
    with torch.autocast("dml", torch.float16):
        assert (x @ x).dtype == torch.float64
        assert (x.int() + x.int()).dtype == torch.int32
        assert (x.half() @ x.half()).dtype == torch.float16
        with torch.autocast("dml", enabled=False):
            assert (x.float() @ x.float()).dtype == torch.float32


def test_the_default_dtype_and_queries() -> None:
    with torch.autocast("dml"):
        assert torch.is_autocast_enabled("dml")
        assert torch.get_autocast_dtype("dml") in HALVES
    assert not torch.is_autocast_enabled("dml")
    with torch.autocast("dml", torch.float16), torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 2, device="dml") @ torch.ones(2, 2, device="dml")).dtype == torch.float16


def test_unsafe_losses_are_refused() -> None:
    x = torch.rand(3, device="dml")
    with torch.autocast("dml"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(x, x)


@pytest.mark.parametrize("lower", HALVES)
def test_a_step_of_training(lower: torch.dtype) -> None:
    def step(device: str, dtype: torch.dtype | None) -> list[torch.Tensor]:
        torch.manual_seed(1)
        module = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).to(device)
        x, y = torch.randn(3, 2, 6, 6).to(device), torch.tensor([0, 3, 1], device=device)
        with torch.autocast(device, dtype or lower, enabled=dtype is not None):
            loss = F.cross_entropy(module(x), y)
        loss.backward()
        assert all(p.grad.dtype == torch.float32 for p in module.parameters())
        return [loss, *(p.grad for p in module.parameters())]

    tolerance = 16 * torch.finfo(lower).eps
    assert_same(step("dml", lower), step("cpu", None), tolerance, tolerance)


def test_weights_are_cast_once() -> None:
    w, x = torch.randn(4, 4, device="dml", requires_grad=True), torch.randn(4, 4, device="dml")
    with torch.autocast("dml", torch.float16):
        first, second = F.linear(x, w), F.linear(x, w)
    (first + second).sum().backward()
    assert_same(w.grad, 2 * x.cpu().half().float().sum(0).expand(4, 4), 1e-2, 1e-2)


# ---- the loss scale


def test_gradients_are_unscaled_and_searched() -> None:
    tensors = [torch.randn(5, 7), torch.randn(6, dtype=torch.float64), torch.randn(8, 3).t(), torch.randn(())]

    def run(*tensors: torch.Tensor) -> Any:
        tensors = tuple(t.clone() for t in tensors)
        found = torch.zeros((), device=tensors[0].device)
        torch._amp_foreach_non_finite_check_and_unscale_(list(tensors), found, torch.full_like(found, 0.25))
        return [*tensors, found]

    assert_matches_cpu(run, *tensors, widen=False)
    assert_matches_cpu(run, *(t.half() for t in tensors), widen=False)
    for bad in (torch.inf, -torch.inf, torch.nan):
        tensors[2][1, 4] = bad
        assert assert_matches_cpu(run, *tensors, widen=False)[-1] == 1


def test_what_was_found_is_kept() -> None:
    found = torch.ones(1, device="dml")
    torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(3, device="dml")], found, found)
    assert found == 1


@pytest.mark.parametrize("scale", [1024.0, 3e38])
def test_the_scale_grows_and_shrinks(scale: float) -> None:
    def run(found: torch.Tensor) -> Any:
        current, tracker = torch.full_like(found[0], scale), torch.zeros_like(found[0], dtype=torch.int32)
        history = []
        for f in found:
            torch._amp_update_scale_(current, tracker, f, 2.0, 0.5, 2)
            history += [current.clone(), tracker.clone()]
        return history

    assert_matches_cpu(run, torch.tensor([0.0, 0, 0, 1, 0, 1, 1, 0, 0]), widen=False)


def test_wrong_tensors_are_refused() -> None:
    good, x = torch.ones(1, device="dml"), torch.ones(3, device="dml")
    with pytest.raises(RuntimeError, match="found_inf must be a 1-element tensor"):
        torch._amp_foreach_non_finite_check_and_unscale_([x], x, good)
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        torch._amp_update_scale_(good, good.clone(), good, 2.0, 0.5, 2)


@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler_skips_steps_that_overflow(fused: bool) -> None:
    def run(device: str) -> list[Any]:
        torch.manual_seed(0)
        module = nn.Linear(4, 3).to(device)
        optimizer = torch.optim.AdamW(module.parameters(), 0.1, fused=fused)
        scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
        seen: list[Any] = []
        for step in range(6):
            optimizer.zero_grad()
            loss = module(torch.linspace(-1, 1, 8).reshape(2, 4).to(device)).square().mean()
            scaler.scale(loss).backward()
            if step == 2:
                module.weight.grad[1, 2] = torch.inf
            if step == 3:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            before = module.weight.detach().clone()
            scaler.step(optimizer)
            scaler.update()
            seen += [bool((before == module.weight).all()), scaler.get_scale(), module.weight.detach().cpu().clone()]
        assert scaler.state_dict()["scale"] == scaler.get_scale()
        return seen

    ours = run("dml")
    assert ours[::3] == [False, False, True, False, False, False]
    assert_same(ours, run("cpu"), 1e-5, 1e-6)


def test_custom_functions() -> None:
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="dml", cast_inputs=torch.float32)
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            seen.append((x.dtype, torch.is_autocast_enabled("dml")))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="dml")
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            seen.append((grad.dtype, torch.is_autocast_enabled("dml")))
            return grad * 2

    x = torch.ones(3, device="dml", dtype=torch.float16, requires_grad=True)
    with torch.autocast("dml", torch.float16):
        Double.apply(x).sum().backward()
    assert seen == [(torch.float32, False), (torch.float32, False)]
    assert x.grad.dtype == torch.float16 and (x.grad == 2).all()
