"""Compiled programs in a process that has another kind of GPU too."""

from __future__ import annotations

import pytest
import torch


def test_another_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.mtia, "is_available", lambda: True)
    x = torch.randn(8, 16, device="dml", requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        # `arange` on the CPU is what Inductor moves to "the" GPU.
        return x.tanh() * torch.arange(16).to(x.device) + torch.arange(16)[3]

    expected = function(x)
    found = torch.compile(function)(x)
    assert torch.equal(found, expected)
    (gradient,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(gradient, torch.autograd.grad(expected.sum(), x)[0])
