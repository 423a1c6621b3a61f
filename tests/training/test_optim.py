"""Optimizers: the parameters after some steps equal the CPU's."""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any

import pytest
import torch
import torch_dml
from torch import nn
from torch.optim import lr_scheduler, swa_utils

from tests.support.compare import assert_same, assert_same_error, assert_same_outcome

STEPS = 5
SHAPES = ((4, 7), (33,), (), (2, 3, 5))


def train(
    kind: type[torch.optim.Optimizer],
    device: str,
    options: dict[str, Any],
    shapes: tuple[tuple[int, ...], ...] = SHAPES,
    dtype: torch.dtype = torch.float32,
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    parameters = [torch.randn(s, generator=generator).to(device, dtype).requires_grad_() for s in shapes]
    if isinstance(options.get("lr"), torch.Tensor):
        options = {**options, "lr": options["lr"].clone()}
    optimizer = kind(parameters, **options)
    for _ in range(STEPS):
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator).to(device, dtype)
        optimizer.step()
    states = [
        value
        for p in parameters
        for value in optimizer.state[p].values()
        if isinstance(value, torch.Tensor) and value.dim() == p.dim()
    ]
    return [t.detach().cpu() for t in (*parameters, *states)]


def same_as_cpu(
    kind: type[torch.optim.Optimizer],
    options: dict[str, Any],
    reference: dict[str, Any],
    rtol: float = 1e-6,
    **how: Any,
) -> None:
    for ours, theirs in zip(train(kind, "dml", options, **how), train(kind, "cpu", reference, **how), strict=True):
        # A sum's rounding errors are relative to its largest terms, not to the remainder if they
        # cancel.
        assert_same(ours, theirs, rtol, rtol / 10 * max(1.0, float(theirs.abs().max())))


CASES = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (torch.optim.Adam, {"lr": 0.01}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    (torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.95), "maximize": True, "amsgrad": True}),
    (torch.optim.Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    (torch.optim.Adagrad, {"lr": 0.1, "initial_accumulator_value": 0.1, "maximize": True}),
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
        (torch.optim.Adamax, {"lr": 0.01, "weight_decay": 0.1}),
        (torch.optim.NAdam, {"lr": 0.01, "decoupled_weight_decay": True, "weight_decay": 0.1}),
        (torch.optim.RAdam, {"lr": 0.01, "weight_decay": 0.1}),
        (torch.optim.Adadelta, {"lr": 1.0, "maximize": True}),
        (torch.optim.ASGD, {"lr": 0.01, "t0": 2.0}),
        (torch.optim.Rprop, {"lr": 0.01}),
        (torch.optim.Adafactor, {"weight_decay": 0.1}),
    ],
)
def test_other_optimizers(kind: type[torch.optim.Optimizer], options: dict[str, Any], foreach: bool) -> None:
    options = {**options, "foreach": foreach}
    same_as_cpu(kind, options, {**options, "foreach": False}, 5e-6)


def test_muon() -> None:
    # The orthogonalisation is computed in bfloat16.
    same_as_cpu(torch.optim.Muon, {"lr": 0.01}, {"lr": 0.01}, 2e-2, shapes=((4, 7), (5, 3)))


def test_lbfgs() -> None:
    def run(device: str) -> torch.Tensor:
        x = torch.tensor([-1.2, 1.0]).to(device).requires_grad_()
        optimizer = torch.optim.LBFGS([x], 0.5, max_iter=10, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return x.detach().cpu()

    assert_same(run("dml"), run("cpu"), 1e-3, 1e-4)


CAPTURABLE = [torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam, torch.optim.RMSprop]


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize(
    "kind", [*CAPTURABLE, torch.optim.Adamax, torch.optim.Adadelta, torch.optim.ASGD, torch.optim.Rprop]
)
def test_steps_counted_on_the_device(kind: type[torch.optim.Optimizer], foreach: bool) -> None:
    same_as_cpu(kind, {"lr": 0.01, "capturable": True, "foreach": foreach}, {"lr": 0.01, "foreach": False}, 5e-6)


@pytest.mark.parametrize("place", ["cpu", "dml"])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad, torch.optim.RMSprop])
def test_the_rate_as_a_tensor(kind: type[torch.optim.Optimizer], place: str) -> None:
    rate = torch.tensor(0.01, device=place)
    same_as_cpu(kind, {"lr": rate, "foreach": False}, {"lr": 0.01, "foreach": False})
    if "fused" in inspect.signature(kind).parameters:
        same_as_cpu(kind, {"lr": rate, "fused": True}, {"lr": 0.01, "foreach": False})


@pytest.mark.parametrize("fused", [False, True])
def test_parameters_of_half_precision(fused: bool) -> None:
    form = {"fused": True} if fused else {"foreach": True}
    for dtype in (torch.float16, torch.bfloat16):
        options = {"lr": 0.01, "eps": 1e-3}
        tolerance = 16 * torch.finfo(dtype).eps
        same_as_cpu(torch.optim.AdamW, {**options, **form}, {**options, "fused": True}, tolerance, dtype=dtype)


def test_gradients_through_a_step() -> None:
    def run(device: str) -> list[torch.Tensor]:
        rate = torch.tensor(0.1, device=device, requires_grad=True)
        weight = torch.linspace(-1, 1, 5).to(device).requires_grad_()
        p = weight.clone()
        p.grad = (weight * 3).clone()
        torch.optim.SGD([p], rate, momentum=0.5, differentiable=True, foreach=False).step()
        p.square().sum().backward()
        return [weight.grad, rate.grad]

    assert_same(run("dml"), run("cpu"))


@pytest.mark.parametrize(
    ("kind", "options"),
    [(torch.optim.SGD, {"momentum": 0.9}), (torch.optim.AdamW, {}), (torch.optim.Adagrad, {})],
)
def test_a_fused_step_is_skipped_where_gradients_overflow(kind: Any, options: dict[str, Any]) -> None:
    p = torch.ones(5, device="dml", requires_grad=True)
    optimizer = kind([p], 0.1, fused=True, **options)
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


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("kind", "options", "most"),
    [
        (torch.optim.SGD, {"foreach": True}, 1),
        (torch.optim.SGD, {"foreach": True, "momentum": 0.9}, 3),
        (torch.optim.SGD, {"fused": True, "momentum": 0.9}, 1),
        (torch.optim.Adam, {"foreach": True}, 7),
        (torch.optim.Adam, {}, 7),
        (torch.optim.AdamW, {"foreach": True}, 8),
        (torch.optim.AdamW, {"fused": True, "amsgrad": True}, 2),
        (torch.optim.Adam, {"foreach": True, "capturable": True}, 17),
        (torch.optim.Adagrad, {"fused": True}, 2),
    ],
)
def test_launches_of_a_step_do_not_grow_with_the_parameters(kind: Any, options: dict[str, Any], most: int) -> None:
    parameters = [torch.ones(3 + i % 5, i % 4 + 1, device="dml", requires_grad=True) for i in range(30)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer = kind(parameters, 0.01, **options)
    for _ in range(2):
        before = torch_dml.engine.queue_stats(0)["commands"]
        optimizer.step()
    assert torch_dml.engine.queue_stats(0)["commands"] - before <= most


# ---- schedulers, hooks and other features around optimizers


@pytest.mark.parametrize("foreach", [True, False, None])
@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_clipping(foreach: bool | None, order: float) -> None:
    def run(device: str) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        parameters = [torch.randn(s, generator=generator).to(device).requires_grad_() for s in SHAPES]
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator).to(device)
        norm = nn.utils.clip_grad_norm_(parameters, 0.5, order, foreach=foreach)
        clipped = [p.grad.clone() for p in parameters]
        nn.utils.clip_grad_value_(parameters, 0.02, foreach=foreach)
        return [norm, *clipped, *(p.grad for p in parameters)]

    assert_same(run("dml"), run("cpu"))


def test_a_norm_that_is_no_number() -> None:
    p = torch.ones(3, device="dml", requires_grad=True)
    p.grad = torch.tensor([1.0, torch.inf, 0.0], device="dml")
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_parameters_as_one_vector() -> None:
    module = nn.Linear(3, 4).to("dml")
    vector = nn.utils.parameters_to_vector(module.parameters())
    nn.utils.vector_to_parameters(vector * 2, module.parameters())
    assert nn.utils.parameters_to_vector(module.parameters()).equal(vector * 2)


@pytest.mark.parametrize(
    "average",
    [None, swa_utils.get_ema_avg_fn(0.9), swa_utils.get_ema_multi_avg_fn(0.9), swa_utils.get_swa_multi_avg_fn()],
)
def test_averaged_models(average: Any) -> None:
    many = average is not None and "list" in str(inspect.signature(average))
    name = "multi_avg_fn" if many else "avg_fn"

    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        module = nn.Linear(3, 4).to(device)
        averaged = swa_utils.AveragedModel(module, **{name: average})
        for _ in range(3):
            with torch.no_grad():
                for p in module.parameters():
                    p.add_(torch.ones_like(p))
            averaged.update_parameters(module)
        return list(averaged.module.parameters())

    assert_same(run("dml"), run("cpu"))


SCHEDULERS = [
    lambda o: lr_scheduler.StepLR(o, 2),
    lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=10),
    lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o), lr_scheduler.ExponentialLR(o, 0.9)], [2]),
    lambda o: swa_utils.SWALR(o, 0.05, 3),
]


@pytest.mark.parametrize("tensor", [False, True])
@pytest.mark.parametrize("make", SCHEDULERS)
def test_schedulers(make: Any, tensor: bool) -> None:
    def run(device: str) -> list[torch.Tensor]:
        p = torch.ones(3, device=device, requires_grad=True)
        rate = torch.tensor(0.1, device=device) if tensor else 0.1
        optimizer = torch.optim.SGD([p], rate, momentum=0.9)
        scheduler = make(optimizer)
        for _ in range(6):
            p.grad = p.detach().clone()
            optimizer.step()
            scheduler.step()
        return [p, torch.as_tensor(optimizer.param_groups[0]["lr"])]

    assert_same(run("dml"), run("cpu"))


def test_the_rate_falls_on_a_plateau() -> None:
    p = torch.ones(3, device="dml", requires_grad=True)
    optimizer = torch.optim.SGD([p], 0.1)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(3):
        scheduler.step(p.sum())
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.001)


class Lion(torch.optim.Optimizer):
    """An optimizer as users write them (Chen et al., 2023)."""

    def __init__(self, params: Any, lr: float = 1e-2, betas: tuple[float, float] = (0.9, 0.99), decay: float = 0.1):
        super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                average = state.setdefault("average", torch.zeros_like(p))
                p.data.mul_(1 - group["lr"] * group["decay"])
                update = average.clone().mul_(group["betas"][0]).add(p.grad, alpha=1 - group["betas"][0]).sign_()
                p.add_(update, alpha=-group["lr"])
                average.mul_(group["betas"][1]).add_(p.grad, alpha=1 - group["betas"][1])


def test_an_optimizer_of_the_user() -> None:
    same_as_cpu(Lion, {}, {})


def test_a_state_is_saved_and_restored() -> None:
    module = nn.Linear(3, 4).to("dml")
    optimizer = torch.optim.AdamW(module.parameters(), 0.1)
    module(torch.ones(2, 3, device="dml")).sum().backward()
    optimizer.step()
    twin = copy.deepcopy(module)
    other = torch.optim.AdamW(twin.parameters(), 0.1)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for m, o in ((module, optimizer), (twin, other)):
        m.zero_grad()
        m(torch.ones(2, 3, device="dml")).sum().backward()
        o.step()
    assert all(p.equal(q) for p, q in zip(module.parameters(), twin.parameters(), strict=True))


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_fused_steps_of_infinite_parameters(decay: float) -> None:
    p, steps = torch.tensor([math.inf, -math.inf, 1.0, 2.0]), torch.zeros(())
    grad = torch.tensor([0.5, 1.0, math.inf, math.nan])
    numbers = {"lr": 0.1, "weight_decay": decay, "maximize": False}

    def adam(name: str, beta: float) -> Any:
        function = getattr(torch, name)

        def step(*lists: torch.Tensor) -> Any:
            p, grad, average, square, largest, count = ([x] for x in lists)
            options = {**numbers, "beta1": beta, "beta2": beta, "eps": 1e-8, "amsgrad": True}
            function(p, grad, average, square, largest, count, **options)
            return p, average, square, largest

        return step

    for beta in (0.0, 0.9):
        for name in ("_fused_adam_", "_fused_adamw_"):
            assert_same_outcome(adam(name, beta), p, grad, p / 2, p.abs(), p.abs(), steps)
            assert_same_outcome(adam(name, beta), p, grad, p / 2, p.abs(), p.abs(), steps + 3)

    def sgd(p: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        flags = {"nesterov": False, "is_first_step": False, "momentum": 0.0, "dampening": 0.0}
        torch._fused_sgd_([p], [grad], [], **numbers, **flags)
        return p

    def adagrad(p: torch.Tensor, grad: torch.Tensor, total: torch.Tensor, count: torch.Tensor) -> Any:
        torch._fused_adagrad_([p], [grad], [total], [count], **numbers, lr_decay=0.0, eps=1e-8)
        return p, total

    assert_same_outcome(sgd, p, grad)
    assert_same_outcome(adagrad, p, grad, p.abs(), steps + 1)


def test_no_momentum_takes_no_buffers() -> None:
    def step(p: torch.Tensor) -> None:
        numbers = {"weight_decay": 0.0, "momentum": 0.0, "lr": 0.1, "dampening": 0.0}
        torch._fused_sgd_([p], [p], [p], **numbers, nesterov=False, maximize=False, is_first_step=False)

    assert_same_error(step, torch.ones(3), words=False)


@pytest.mark.parametrize(
    "other", [torch.ones(2, 3, 1), torch.ones(3), torch.ones(2, 3).half()], ids=["rank", "size", "dtype"]
)
def test_fused_steps_check_gradients_and_states(other: torch.Tensor) -> None:
    p, step, other = torch.ones(2, 3).to("dml"), torch.zeros(()).to("dml"), other.to("dml")
    numbers = {"lr": 0.1, "weight_decay": 0.0, "eps": 1e-8, "maximize": False}
    adam = {**numbers, "beta1": 0.9, "beta2": 0.99, "amsgrad": False}
    sgd = {"lr": 0.1, "weight_decay": 0.0, "momentum": 0.9, "dampening": 0.0, "nesterov": False, "maximize": False}
    with pytest.raises(RuntimeError, match="expected"):
        torch._fused_adam_([p], [other], [p], [p], [], [step], **adam)
    with pytest.raises(RuntimeError, match="expected"):
        torch._fused_adamw_([p], [p], [p], [other], [], [step], **adam)
    with pytest.raises(RuntimeError, match="expected"):
        torch._fused_adagrad_([p], [p], [other], [step], lr_decay=0.0, **numbers)
    with pytest.raises(RuntimeError, match="expected"):
        torch._fused_sgd_([p], [p], [other], is_first_step=False, **sgd)
    assert torch.equal(p.cpu(), torch.ones(2, 3))
