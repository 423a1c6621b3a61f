"""Moving modules: parameters stay the same objects, as on every in-tree device of PyTorch."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


def tied() -> nn.Sequential:
    module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    module[1].weight = module[0].weight
    return module


@pytest.mark.smoke
def test_shared_parameters_stay_shared() -> None:
    module = tied().to("dml")
    assert module[0].weight is module[1].weight and len(list(module.parameters())) == 1
    twin = copy.deepcopy(module)
    assert twin[0].weight is twin[1].weight and twin[0].weight is not module[0].weight
    module.cpu().half().to("dml")
    assert module[0].weight is module[1].weight and module[0].weight.dtype == torch.float16
    x = torch.randn(2, 3)
    for device in ("cpu", "dml"):
        there = tied().to(device)
        with torch.no_grad():
            there[0].weight.copy_(torch.eye(3) * 2)
        there(x.to(device)).sum().backward()
        grad = there[0].weight.grad.cpu()
    torch.testing.assert_close(grad, 2 * 2 * x.sum(0).expand(3, 3))


def test_an_optimizer_made_before_the_move_keeps_its_parameters() -> None:
    module = nn.Linear(3, 2)
    weight, grad = module.weight, torch.ones(2, 3)
    optimizer = torch.optim.SGD(module.parameters(), 0.5)
    weight.grad = grad
    before = weight.detach().clone()
    module.to("dml")
    assert module.weight is weight and weight.device.type == "dml" and weight.grad.device.type == "dml"
    optimizer.step()
    torch.testing.assert_close(weight.detach().cpu(), before - 0.5)
    module.cpu()
    assert module.weight is weight and weight.device.type == "cpu" and weight.grad.device.type == "cpu"


def test_hooks_and_gradients_survive_the_move() -> None:
    module = nn.Linear(3, 2)
    seen = []
    module(torch.ones(1, 3)).sum().backward()
    module.to("dml").weight.register_hook(seen.append)
    module.zero_grad()
    module(torch.ones(1, 3, device="dml")).sum().backward()
    assert seen[0].device.type == "dml" and module.weight.grad.equal(torch.ones(2, 3, device="dml"))


def test_data_is_exchanged_between_devices() -> None:
    x = torch.ones(2)
    x.data = torch.zeros(3, device="dml")
    assert x.device.type == "dml" and x.shape == (3,)
    x.data = torch.ones(4)
    assert x.device.type == "cpu" and x.sum() == 4
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = torch.eye(2).to_sparse()


def test_empty_modules_get_memory_on_the_device() -> None:
    with torch.device("meta"):
        module = nn.Linear(3, 2)
    module.to_empty(device="dml")
    module.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    assert module(torch.ones(1, 3, device="dml")).cpu().equal(torch.full((1, 2), 3.0))
    with torch.device("dml"):
        assert nn.Linear(2, 2).weight.device.type == "dml"
