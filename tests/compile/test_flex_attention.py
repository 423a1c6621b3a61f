"""flex_attention in compiled graphs, against the same in float64 on the CPU. That a graph runs
operator by operator is an error in all tests.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch_dml.inductor import runtime

from tests.compile.compiled import compiled

Score = Callable[..., torch.Tensor]
TOLERANCES = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-6}


@pytest.fixture(autouse=True)
def gradients_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let eager flex_attention have gradients on the CPU: it refuses them."""
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)


class Case:
    """Inputs on the device, and what flex_attention is given beside them."""

    def __init__(
        self,
        batch: int = 2,
        heads: int = 2,
        queries: int = 40,
        keys: int = 40,
        size: int = 16,
        *,
        key_batch: int | None = None,
        key_heads: int | None = None,
        value_size: int | None = None,
        dtype: torch.dtype = torch.float32,
        block: int | tuple[int, int] = 16,
    ) -> None:
        self.dtype, self.block = dtype, block
        self.positions = (batch, heads, queries, keys)
        key_shape = (key_batch or batch, key_heads or heads, keys)
        shapes = [(batch, heads, queries, size), (*key_shape, size), (*key_shape, value_size or size)]
        self.inputs = [torch.randn(shape).to(dtype) for shape in shapes]
        self.weights = torch.randn(batch, heads, queries, value_size or size).to(dtype)
        self.options: dict[str, Any] = {"enable_gqa": True} if key_heads else {}

    def mask(self, function: Score, device: str, batch: int | None = None, heads: int | None = None) -> BlockMask:
        queries, keys = self.positions[2:]
        return create_block_mask(function, batch, heads, queries, keys, device=device, BLOCK_SIZE=self.block)

    def check(
        self,
        score: Callable[..., Score] | None = None,
        mask: Callable[..., Score] | None = None,
        captured: tuple[torch.Tensor, ...] = (),
        *,
        mask_shape: tuple[int | None, int | None] = (None, None),
        run: Callable[..., Any] | None = None,
        gradients: bool = True,
        **options: Any,
    ) -> None:
        """Compare outputs and gradients. `score` and `mask` make functions of captured tensors;
        those of floats have gradients.
        """
        results = []
        for function, device in ((run or compiled(flex_attention), "dml"), (flex_attention, "cpu")):
            wanted = self.dtype if device == "dml" else torch.float64
            inputs = [x.to(device, wanted).requires_grad_(gradients) for x in self.inputs]
            given = [x.to(device, wanted) if x.is_floating_point() else x.to(device) for x in captured]
            learned = [x.requires_grad_(gradients) for x in given if x.is_floating_point()]
            block_mask = None if mask is None else self.mask(mask(*given), device, *mask_shape)
            found = function(*inputs, score and score(*given), block_mask, **self.options, **options)
            outputs = found if isinstance(found, tuple) else (found,)
            results.append(list(outputs))
            if gradients:
                loss = (outputs[0] * self.weights.to(outputs[0])).sum()
                if len(outputs) > 1:
                    loss = loss + outputs[1].where(outputs[1].isfinite(), 0).cos().sum()
                results[-1] += torch.autograd.grad(loss, [*inputs, *learned])
        assert results[0][0].dtype == self.dtype
        for one, other in zip(*results, strict=True):
            one, other = one.detach().cpu().double(), other.detach().double()
            tolerance = TOLERANCES[self.dtype] * max(other[other.isfinite()].abs().max().item(), 1.0)
            torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


def causal(*_: torch.Tensor) -> Score:
    return lambda b, h, q, k: q >= k


def capped(*_: torch.Tensor) -> Score:
    return lambda score, b, h, q, k: 2 * torch.tanh(score / 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    Case(dtype=dtype).check(None, causal)


@pytest.mark.parametrize("sizes", [(4, 33), (40, 8), (64, 136)])
def test_sizes_of_heads(sizes: tuple[int, int]) -> None:
    Case(1, 1, 20, 36, sizes[0], value_size=sizes[1]).check()


@pytest.mark.parametrize(("lengths", "block"), [((1, 70), 128), ((130, 3), 16), ((33, 65), (48, 24))])
def test_lengths_and_blocks(lengths: tuple[int, int], block: int | tuple[int, int]) -> None:
    Case(1, 1, *lengths, 8, block=block).check(None, lambda: lambda b, h, q, k: (q + k) % 3 != 1)


def test_soft_capping_in_a_sliding_window() -> None:
    Case().check(capped, lambda: lambda b, h, q, k: (q >= k) & (q - k < 7))


def test_biases_by_distance_with_shared_keys_and_logarithms_of_sums() -> None:
    def score(slopes: torch.Tensor) -> Score:
        return lambda score, b, h, q, k: score - slopes[h] * (q - k).abs()

    Case(heads=4, key_heads=2).check(score, causal, (torch.tensor([0.5, 0.25, 0.1, 0.0]),), return_lse=True, scale=0.7)


def test_a_captured_tensor_that_is_read_twice() -> None:
    def score(bias: torch.Tensor) -> Score:
        return lambda score, b, h, q, k: score * bias[h, q] + bias[h, q - k + 39]

    Case(1).check(score, None, (torch.randn(2, 79),))


def test_documents() -> None:
    documents = torch.tensor([[0] * 7 + [1] * 20 + [2] * 13, [0] * 30 + [1] * 10])

    def mask(documents: torch.Tensor) -> Score:
        return lambda b, h, q, k: (documents[b, q] == documents[b, k]) & (q >= k)

    Case().check(None, mask, (documents,), mask_shape=(2, None), gradients=False)


def test_prefixes_and_queries_without_keys() -> None:
    def mask(prefixes: torch.Tensor) -> Score:
        return lambda b, h, q, k: ((k < prefixes[b]) | (q >= k)) & (q < 33) & (k % 2 == h)

    Case().check(None, mask, (torch.tensor([5, 21]),), mask_shape=(2, 2), return_lse=True)


def test_batches_that_share_keys() -> None:
    Case(3, 4, key_batch=1, key_heads=1).check(None, causal, mask_shape=(3, None))


def test_dynamic_sizes() -> None:
    def score(bias: torch.Tensor) -> Score:
        return lambda score, b, h, q, k: score + bias[q]

    run = compiled(flex_attention, dynamic=True)
    for n in (40, 70, 23):
        Case(1, 2, n, n + 1).check(score, None, (torch.randn(n),), run=run)


def test_indices_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.codegen.simd.SIMDScheduling.can_use_32bit_indexing", lambda *_: False)

    def score(bias: torch.Tensor) -> Score:
        return lambda score, b, h, q, k: score + bias[h, q]

    Case(queries=20).check(score, causal, (torch.randn(2, 20),))


def test_a_number_of_the_cpu_and_a_learned_one() -> None:
    def run(x: torch.Tensor, number: torch.Tensor, learned: torch.Tensor) -> torch.Tensor:
        return flex_attention(x, x, x, lambda score, b, h, q, k: score * number * learned)

    x, number = torch.randn(1, 2, 20, 8), torch.tensor(0.5)
    double = [torch.tensor(0.7, dtype=torch.float64, requires_grad=True), x.double()]
    expected = F.scaled_dot_product_attention(double[1] * 0.5 * double[0], double[1], double[1])
    learned = torch.tensor(0.7, device="dml", requires_grad=True)
    found = compiled(run)(x.to("dml"), number, learned)
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=1e-5)
    gradients = [torch.autograd.grad(y.square().sum(), of)[0] for y, of in ((found, learned), (expected, double[0]))]
    torch.testing.assert_close(gradients[0].cpu().double(), gradients[1], rtol=1e-4, atol=1e-5)


def test_a_model_under_autocast() -> None:
    def run(x: torch.Tensor, w: torch.Tensor, mask: BlockMask) -> torch.Tensor:
        q, k, v = (x @ w).view(2, 40, 3, 2, 8).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v, block_mask=mask).transpose(1, 2).reshape(x.shape)

    x, w = torch.randn(2, 40, 16, device="dml"), (torch.randn(16, 48) / 4).to("dml").requires_grad_()
    mask = torch.compile(create_block_mask)(lambda b, h, q, k: q >= k, None, None, 40, 40, "dml", 16)
    expected = compiled(run)(x, w, mask)
    with torch.autocast("dml", torch.bfloat16):
        found = compiled(run)(x, w, mask)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    (gradient,) = torch.autograd.grad(found.float().square().sum(), w)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.square().sum(), w)[0], rtol=0.05, atol=1.0)


def test_an_index_out_of_range_is_an_error() -> None:
    x, bias = torch.randn(1, 1, 20, 8, device="dml"), torch.randn(10, device="dml")
    with pytest.raises(IndexError, match=r"index 1\d is out of bounds for dimension 0 with size 10"):
        compiled(flex_attention)(x, x, x, lambda score, b, h, q, k: score + bias[q])
        torch.accelerator.synchronize()


def test_longer_loops_than_a_software_adapter_runs_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "MOST_TURNS", 3)
    monkeypatch.setattr(runtime, "get_device_properties", lambda _: SimpleNamespace(software=True))
    x, run = torch.randn(1, 1, 40, 8, device="dml"), compiled(flex_attention)
    with pytest.raises(NotImplementedError, match=r"loops of \d+ turns on a software adapter"):
        run(x, x, x)
    monkeypatch.undo()
    run(x, x, x)
