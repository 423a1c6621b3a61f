"""Networks that are trained under torch.compile have the losses of the same without."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.compile.compiled import compiled


class Language(nn.Module):
    """A transformer of one layer, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(20, 16), nn.LayerNorm(16)
        self.qkv, self.up, self.down = nn.Linear(16, 48), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        q, k, v = self.qkv(self.norm(x)).view(*x.shape[:2], 3, 4, 4).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.down(F.gelu(self.up(x))), 0.1, self.training)
        return F.linear(x, self.embedding.weight)


def pictures() -> nn.Module:
    """A convolutional network with batch normalisation."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.BatchNorm2d(16),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def losses(
    module: nn.Module,
    run: Callable[..., torch.Tensor],
    batches: list[tuple[torch.Tensor, torch.Tensor]],
    autocast: bool,
    **options: bool,
) -> list[torch.Tensor]:
    """The losses of all steps, with options of the optimizer."""
    torch.manual_seed(3)
    optimizer = torch.optim.AdamW(module.parameters(), 0.01, **options)
    found = []
    for x, y in batches:
        optimizer.zero_grad()
        with torch.autocast("dml", torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(run(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return found


def words(lengths: tuple[int, ...]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [tuple(torch.randint(20, (2, 3, n)).to("dml")) for n in lengths]  # type: ignore[misc]


def compare(module: nn.Module, batches: Any, autocast: bool, tolerance: float) -> None:
    module = module.to("dml")
    other = copy.deepcopy(module)
    expected = torch.stack(losses(other, other, batches, autocast)).tolist()
    found = torch.stack(losses(module, compiled(module), batches, autocast)).tolist()
    assert found == pytest.approx(expected, rel=tolerance)
    assert expected[-1] < expected[0]


@pytest.mark.smoke
@pytest.mark.parametrize("autocast", [False, True])
def test_language(autocast: bool) -> None:
    # Other lengths make sizes symbolic.
    compare(Language(), words((6, 6, 9, 7, 6)), autocast, 2e-2 if autocast else 1e-5)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_pictures(layout: torch.memory_format, autocast: bool) -> None:
    x = torch.randn(4, 3, 16, 16).to("dml", memory_format=layout)
    batches = [(x, torch.arange(4, device="dml"))] * 4
    module = pictures().to(memory_format=layout)  # type: ignore[call-overload]
    compare(module, batches, autocast, 5e-2 if autocast else 1e-4)


def test_inference() -> None:
    module = Language().to("dml").eval()
    with torch.no_grad():
        for x, _ in words((5, 8)):
            torch.testing.assert_close(compiled(module)(x), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("early", [False, True])
def test_checkpoints_repeat_random_numbers(early: bool) -> None:
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 8)).to("dml")
    x = torch.randn(4, 8, device="dml", requires_grad=True)

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = F.dropout(x, 0.2) if early else x
        return checkpoint(module, y, use_reentrant=False).square().sum()

    results = []
    for run in (loss, compiled(loss), compiled(loss)):
        torch.manual_seed(5)
        value = run(x)
        results.append((value.detach(), *torch.autograd.grad(value, [x, *module.parameters()])))
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-5, atol=1e-5)


def test_a_compiled_optimizer() -> None:
    results = []
    for compile_it in (False, True):
        p = torch.linspace(-1, 1, 6).to("dml").requires_grad_()
        optimizer = torch.optim.Adam([p], 0.1)
        step = torch.compile(optimizer.step) if compile_it else optimizer.step
        for _ in range(3):
            p.grad = p.detach() * 2
            step()
        results.append(p.detach().cpu())
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-5)


def test_an_exported_program_is_compiled() -> None:
    module = pictures().to("dml").eval()
    x = torch.randn(2, 3, 16, 16, device="dml")
    program = torch.export.export(module, (x,))
    torch.testing.assert_close(compiled(program.module())(x), module(x), rtol=1e-5, atol=1e-5)


def test_what_cannot_be_compiled_runs_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch_dml.inductor.errors import MissingKernelError

    def missing(name: str, dtype: torch.dtype) -> None:
        raise MissingKernelError(f"the reduction {name}")

    monkeypatch.setattr("torch_dml.inductor.kernel.reduction", missing)
    x = torch.randn(10, 20, device="dml")
    with pytest.warns(UserWarning, match="cannot compile a graph yet.*: the reduction sum"):
        found = torch.compile(lambda x: x.sum(1))(x)
    assert torch.equal(found, x.sum(1))
