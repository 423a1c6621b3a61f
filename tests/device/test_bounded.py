"""Long launches are split and submitted in parts (TORCH_DML_SUBMIT_WORK): no bit of a result
depends on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.support.launches import launches
from tests.support.processes import run_python


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(sizes))
    return torch.randn(sizes, generator=generator).to(dtype).to("dml")


def gradients(run: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """Return a result and the gradients of its inputs."""
    inputs = tuple(x.requires_grad_() for x in inputs)
    result = run(*inputs)
    return [result.detach(), *torch.autograd.grad(result, inputs, torch.ones_like(result))]


def replayed() -> Tensor:
    """Return the result of a graph with a long launch and a random one, replayed three times."""
    x, w = numbers(300, 200), numbers(200, 300) / 20
    (x @ w).sum().item()
    torch.dml.synchronize()
    graph = torch.dml.Graph()
    with torch.dml.graph(graph):
        y = torch.tanh(x @ w @ x)
        x.add_(y + torch.rand_like(y), alpha=0.1)
    for _ in range(3):
        graph.replay()
    return x


def cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the cases: launches of all forms, with more than a million operations."""
    half, double = torch.float16, torch.float64
    yield "mm", lambda: numbers(333, 129) @ numbers(129, 217)
    yield "mm of few tiles", lambda: numbers(64, 4000) @ numbers(4000, 64)
    yield "mm of halves", lambda: numbers(256, 128, dtype=half) @ numbers(128, 256, dtype=half)
    yield "mm of float64", lambda: numbers(99, 120, dtype=double) @ numbers(120, 130, dtype=double)
    yield "mm of integers", lambda: numbers(128, 100).long() @ numbers(100, 128).long()
    yield "mv", lambda: numbers(3, 700) @ numbers(700, 900)
    yield "bmm", lambda: numbers(20, 60, 50) @ numbers(20, 50, 70)
    yield "addmm", lambda: torch.addmm(numbers(200), numbers(200, 100), numbers(100, 200))
    for sizes in ((3, 8, 30, 28), (2, 16, 20, 20)):
        x, w = numbers(*sizes), numbers(12, sizes[1], 3, 3)
        yield f"conv2d {sizes}", lambda x=x, w=w: gradients(lambda x, w: F.conv2d(x, w, padding=1, stride=2), x, w)
    yield "conv3d", lambda: gradients(F.conv3d, numbers(2, 4, 9, 10, 11), numbers(6, 4, 3, 3, 3))
    yield (
        "depthwise",
        lambda: gradients(
            lambda x, w: F.conv2d(x, w, padding=2, groups=24), numbers(4, 24, 31, 31), numbers(24, 1, 5, 5)
        ),
    )
    for width, heads, causal in ((64, 4, False), (40, 3, True)):
        inputs = [numbers(2, heads, n, width) for n in (150, 170, 170)]
        yield (
            f"attention {width}",
            lambda inputs=inputs, causal=causal: gradients(
                lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), *inputs
            ),
        )
    yield "cdist", lambda: gradients(lambda x, y: torch.cdist(x, y, p=1.5), numbers(150, 33), numbers(140, 33))
    large = numbers(700, 901)
    yield "pointwise", lambda: torch.tanh(large) * large + large.T.contiguous().T
    yield "copies", lambda: [large.T.contiguous(), large.flip(1), torch.cat([large[:, :9], large], 1)]
    yield "lists", lambda: torch._foreach_add([numbers(n, 101) for n in (300, 5, 999)], 2.5)
    yield "reductions", lambda: [large.sum(), large.amax(0), large.var(1), large.argmin(), large.logsumexp(0)]
    yield "scans", lambda: [large.cumsum(1), large.cumsum(0), torch.cummax(large, 1)]
    some = large[:60]
    yield "sorts", lambda: [*some.sort(1), *some.flatten().sort(), *some.topk(7), *some.T.median(1)]
    yield "unique", lambda: torch.unique((some * 9).long(), return_counts=True)
    yield "indexing", lambda: [large[large > 1], large.nonzero(), large[numbers(500).long().abs()]]
    yield "softmax", lambda: gradients(lambda x: x.softmax(1), numbers(300, 777))
    yield "normalization", lambda: gradients(lambda x: F.layer_norm(x, [500]), numbers(333, 500))
    yield "groups", lambda: gradients(lambda x: F.group_norm(x, 4), numbers(8, 16, 20, 31))
    yield "fft", lambda: [torch.fft.rfft(numbers(50, 1009)), torch.fft.fft2(numbers(120, 128))]
    yield "pooling", lambda: gradients(lambda x: F.max_pool2d(x, 3, 2), numbers(4, 8, 61, 61))
    yield "embedding", lambda: gradients(lambda w: F.embedding(numbers(900).long().abs(), w), numbers(100, 300))
    yield "linear algebra", lambda: [*torch.linalg.qr(numbers(9, 70, 60)), *torch.linalg.lu_factor(numbers(150, 150))]
    sparse = (numbers(200, 300) * (numbers(200, 300) > 1)).cpu().to_sparse_csr().to("dml")
    yield "sparse", lambda: sparse @ numbers(300, 64)
    yield "recurrence", lambda: torch.nn.LSTM(64, 64, device="dml")(numbers(30, 20, 64))[0]
    yield "random", lambda: [torch.rand(200_000, device="dml"), torch.randperm(50_000, device="dml")]
    yield "graph", replayed


def tensors(result: object) -> Iterator[Tensor]:
    if isinstance(result, Tensor):
        yield result
    else:
        for part in result:  # type: ignore[attr-defined]
            yield from tensors(part)


def digests() -> dict[str, tuple[str, int]]:
    """Return a hash of each case's results, and its number of launches."""
    found = {}
    for name, run in cases():
        torch.manual_seed(1)
        results: list[Tensor] = []
        count = launches(lambda run=run, results=results: results.extend(tensors(run())))
        digest = hashlib.sha256()
        for result in results:
            digest.update(result.detach().cpu().flatten().view(torch.uint8).numpy().tobytes())
        found[name] = digest.hexdigest(), count
    return found


@pytest.mark.slow
def test_no_bit_depends_on_how_work_is_cut():
    whole = digests()
    for thread in "01":
        done = run_python("-m", "tests.device.test_bounded", TORCH_DML_SUBMIT_WORK="1", TORCH_DML_SUBMIT_THREAD=thread)
        assert done.returncode == 0, done.stderr
        cut = json.loads(done.stdout)
        assert cut.keys() == whole.keys()
        assert [name for name in whole if cut[name][0] != whole[name][0]] == []
        long = {name for name in whole if cut[name][1] > whole[name][1]}
        assert {"mm", "conv3d", "depthwise", "attention 64", "cdist", "pointwise", "reductions", "sparse"} <= long


if __name__ == "__main__":
    print(json.dumps(digests()))
