"""Small models of the common kinds, trained for some steps: the losses agree with the CPU's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import nn

STEPS = 20


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The CPU's operators here are too small for several threads, which would mostly wait on a busy
    machine.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def losses(
    module: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor]],
    optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    device: str,
) -> list[float]:
    module = copy.deepcopy(module).to(device).train()
    rule = optimizer(module)
    found = []
    for step in range(STEPS):
        x, y = (t.to(device) for t in batches[step % len(batches)])
        rule.zero_grad()
        out = module(x)
        loss = F.cross_entropy(out.flatten(0, -2), y.flatten())
        loss.backward()
        rule.step()
        found.append(loss.detach())
    return torch.stack(found).cpu().tolist()


def check(
    module: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor]],
    optimizer: Callable[[nn.Module], torch.optim.Optimizer],
) -> None:
    ours, theirs = (losses(module, batches, optimizer, device) for device in ("dml", "cpu"))
    assert theirs[-1] < theirs[0]
    for step, (got, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert got == pytest.approx(expected, rel=1e-4), f"step {step}"


def sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), 0.01, momentum=0.9)


def adamw(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), 1e-3)


def images(count: int, size: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.randn(4, 3, size, size), torch.randint(0, 10, (4,))) for _ in range(count)]


def texts(count: int, length: int, words: int = 50) -> list[tuple[torch.Tensor, torch.Tensor]]:
    batches = [torch.randint(0, words, (4, length + 1)) for _ in range(count)]
    return [(text[:, :-1], text[:, 1:]) for text in batches]


class Residual(nn.Module):
    """A block of two convolutions with a shortcut (He et al., 2016)."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outer) for _ in range(2))
        self.short = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.first(x)), inplace=True)
        return F.relu(self.norms[1](self.second(y)) + self.short(x))


def test_residual_network() -> None:
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1),
        nn.MaxPool2d(3, 2, 1),
        Residual(8, 16, 1),
        Residual(16, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )
    check(module, images(2, 16), sgd)
    check(module.to(memory_format=torch.channels_last), images(2, 16), sgd)


@pytest.mark.slow
def test_resnet18() -> None:
    """Every step begins with the CPU's parameters.

    Rounding errors decide which of a million activations near zero are cut off, and in this model
    with its few pixels the effect grows a thousandfold within ten steps: in float64 too, if
    parameters are changed by 1e-7.
    """
    torchvision = pytest.importorskip("torchvision")
    torch.set_num_threads(2)
    module = torchvision.models.resnet18(num_classes=10)
    twin = copy.deepcopy(module).to("dml")
    x, y = images(1, 32)[0]
    rules = [sgd(module), sgd(twin)]
    for step in range(STEPS):
        twin.load_state_dict(module.state_dict())
        found = []
        for model, rule in zip((module, twin), rules, strict=True):
            device = model.fc.weight.device
            rule.zero_grad()
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            rule.step()
            found.append(loss.item())
        # A loss near zero is a difference of logits, and has their rounding errors.
        assert found[1] == pytest.approx(found[0], rel=1e-4, abs=1e-6), f"step {step}"
        for ours, theirs in zip(twin.parameters(), module.parameters(), strict=True):
            assert (ours.detach().cpu() - theirs.detach()).norm() <= 1e-3 * theirs.detach().norm()


class Speech(nn.Module):
    """A recurrent language model."""

    def __init__(self, kind: type[nn.RNNBase], words: int = 50) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 16)
        self.layers = kind(16, 24, 2, batch_first=True)
        self.out = nn.Linear(24, words)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layers(self.embed(x))[0])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_network(kind: type[nn.RNNBase]) -> None:
    check(Speech(kind), texts(2, 10), adamw)


class Attention(nn.Module):
    """Self-attention of heads of 8."""

    def __init__(self, width: int, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(width, 3 * width), nn.Linear(width, width), causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, -1, 8)).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(x.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A transformer layer with pre-normalisation."""

    def __init__(self, width: int, causal: bool) -> None:
        super().__init__()
        self.attention = Attention(width, causal)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class VisionTransformer(nn.Module):
    """Patches of images as tokens (Dosovitskiy et al., 2021)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, 17, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, False) for _ in range(2)), nn.LayerNorm(width))
        self.out = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).mT
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.out(self.layers(x)[:, 0])


def test_vision_transformer() -> None:
    check(VisionTransformer(), images(2, 16), adamw)


class Language(nn.Module):
    """A text decoder, whose output layer shares its weight with the embedding (Radford et al.,
    2019).
    """

    def __init__(self, width: int = 32, words: int = 50, length: int = 20) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, True) for _ in range(2)), nn.LayerNorm(width))
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        return self.out(self.layers(self.words(x) + self.places(places)))


@pytest.mark.smoke
def test_language_model() -> None:
    check(Language(), texts(2, 20), adamw)


def test_a_language_model_writes_what_the_cpu_writes() -> None:
    module = Language().eval()
    written = []
    for device in ("cpu", "dml"):
        twin = copy.deepcopy(module).to(device)
        text = torch.tensor([[1, 2, 3]], device=device)
        with torch.inference_mode():
            for _ in range(10):
                text = torch.cat([text, twin(text)[:, -1].argmax(-1, keepdim=True)], 1)
        written.append(text.cpu())
    assert written[0].equal(written[1])
