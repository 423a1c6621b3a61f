"""Functions of PyTorch that mean CUDA when a program names no device: they use this device."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx


def test_random_numbers_are_forked() -> None:
    with torch.random.fork_rng():
        inside = torch.rand(3, device="dml"), torch.rand(3)
    outside = torch.rand(3, device="dml"), torch.rand(3)
    assert all(a.equal(b) for a, b in zip(inside, outside, strict=True))
    with torch.random.fork_rng(devices=[]):
        first = torch.rand(3, device="dml")
    assert not first.equal(torch.rand(3, device="dml"))


def test_the_loss_is_scaled() -> None:
    module = nn.Linear(3, 1).to("dml")
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    scaler = torch.amp.GradScaler()
    assert scaler.is_enabled()
    x = torch.randn(2, 3, device="dml")
    scaler.scale(module(x).sum()).backward()
    scaler.unscale_(optimizer)
    torch.testing.assert_close(module.weight.grad.cpu(), x.cpu().sum(0, keepdim=True))
    scaler.step(optimizer)
    scaler.update()
    assert not torch.amp.GradScaler(enabled=False).is_enabled()
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.amp.GradScaler("cuda").is_enabled()


def test_saved_tensors_are_pinned() -> None:
    x = torch.randn(5, device="dml", requires_grad=True)
    for pin_memory in (False, True):
        with torch.autograd.graph.save_on_cpu(pin_memory):
            result = x.sin()
        # The packed tensor is internal to the hooks: unpacking it shows whether it was in pinned
        # memory.
        packed = torch.autograd.graph.save_on_cpu(pin_memory).pack_hook(x.detach())[1]
        assert packed.is_pinned() == pin_memory and packed.equal(x.detach().cpu())
        (gradient,) = torch.autograd.grad(result.sum(), x)
        torch.testing.assert_close(gradient.cpu(), x.detach().cpu().cos())


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_storages_are_pinned() -> None:
    for storage in (torch.arange(3.0).untyped_storage(), torch.arange(3.0).storage()):
        assert not storage.is_pinned()
        pinned = storage.pin_memory()
        assert pinned.is_pinned() and pinned.tolist() == storage.tolist()


def test_pages_of_attention_lie_on_the_device() -> None:
    paged = pytest.importorskip("torch.nn.attention.experimental._paged_attention")
    assert paged.PagedAttention(2, 4, 2).page_table.device.type == "dml"


def test_constants_of_a_traced_function_lie_on_the_device() -> None:
    x = torch.randn(3, device="dml")
    traced = make_fx(lambda x: x * torch.tensor(2.0, device="dml"), tracing_mode="fake")(x)
    assert traced._tensor_constant0.device.type == "dml"
    assert traced(x).equal(x * 2)
