"""scaled_dot_product_attention and the attention layers, compared with float64 on the CPU."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.support.compare import assert_matches_cpu, assert_same, cosines, to_device
from tests.support.dtypes import FLOATS, dtypes, sample
from tests.support.layouts import lay_out, layouts

TOLERANCE = {torch.float32: 5e-6, torch.float64: 1e-13, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def attend(device: str, dtype: torch.dtype, tensors: list[torch.Tensor], run: Any) -> list[torch.Tensor]:
    q, k, v, g = (t.to(dtype).to(device) for t in tensors)
    leaves = [t.detach().requires_grad_() for t in (q, k, v)]
    out = run(*leaves)
    out.backward(g)
    return [out.detach().cpu().double(), *(t.grad.cpu().double() for t in leaves)]


def check(tensors: list[torch.Tensor], dtype: torch.dtype = torch.float32, mask: Any = None, **options: Any) -> None:
    """The result and the gradients of queries, keys and values, for inputs and an output gradient
    that are first rounded to `dtype`.
    """
    tensors = [t.to(dtype) for t in tensors]

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        own = None if mask is None else mask.to(q.device)
        if own is not None and own.is_floating_point():
            own = own.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, own, **options)

    with sdpa_kernel(SDPBackend.MATH):
        expected = attend("cpu", torch.float64, tensors, run)
    for ours, theirs in zip(attend("dml", dtype, tensors, run), expected, strict=True):
        scale = theirs.abs().max().item() + 1 if theirs.numel() else 1
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE[dtype] * scale, equal_nan=True)


def make(b: int, h: int, length: int, keys: int, d: int, e: int, kv_heads: int | None = None) -> list[torch.Tensor]:
    kv = kv_heads or h
    shapes = ((b, h, length, d), (b, kv, keys, d), (b, kv, keys, e), (b, h, length, e))
    return [torch.randn(s, dtype=torch.float64) for s in shapes]


@pytest.mark.smoke
@dtypes(FLOATS)
def test_dtypes(dtype: torch.dtype) -> None:
    check(make(2, 2, 7, 9, 16, 16), dtype)


@pytest.mark.parametrize("sizes", [(1, 2, 70, 65, 40, 24), (1, 1, 16, 100, 130, 200), (2, 1, 1, 33, 5, 3)])
def test_sizes(sizes: Any) -> None:
    check(make(*sizes))


@pytest.mark.parametrize("sizes", [(2, 2, 70, 40), (1, 2, 40, 70)])
def test_causal(sizes: Any) -> None:
    check(make(*sizes, 16, 16), is_causal=True)


@pytest.mark.parametrize("sizes", [(1, 2, 130, 140, 80, 100), (1, 1, 101, 97, 66, 73), (1, 1, 128, 128, 16, 128)])
@pytest.mark.parametrize("causal", [False, True])
def test_long_rows_and_columns(sizes: Any, causal: bool) -> None:
    """With several rows for each invocation; rows of whole quads and others."""
    check(make(*sizes), is_causal=causal)
    if not causal:
        check(make(*sizes), mask=torch.randn(sizes[2], sizes[3], dtype=torch.float64))


def test_dropout_of_long_rows_and_columns() -> None:
    """All launches draw the same numbers: the gradients are those of the weights that were kept."""
    q, k, v, g = (t.float().to("dml") for t in make(1, 2, 130, 110, 16, 24))
    eye = torch.eye(110, device="dml").expand(1, 2, 110, 110)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.25)

    kept = (run(q, k, eye) != 0).double().cpu() / 0.75

    def composed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return ((q @ k.mT / 4).softmax(-1) * kept) @ v

    expected = attend("cpu", torch.float64, [q, k, v, g], composed)
    for ours, theirs in zip(attend("dml", torch.float32, [q, k, v, g], run), expected, strict=True):
        torch.testing.assert_close(
            ours, theirs, rtol=0, atol=TOLERANCE[torch.float32] * (theirs.abs().max().item() + 1)
        )


@pytest.mark.parametrize("shape", [(7, 9), (2, 1, 7, 9), (1, 2, 1, 9), (2, 2, 7, 9), ()])
def test_masks_of_numbers(shape: tuple[int, ...]) -> None:
    check(make(2, 2, 7, 9, 16, 16), mask=torch.randn(shape))


def test_masks_of_flags_and_rows_that_see_nothing() -> None:
    mask = torch.rand(7, 9) > 0.5
    mask[2] = False
    check(make(2, 2, 7, 9, 16, 16), mask=mask)
    check(make(2, 2, 7, 9, 16, 16), mask=torch.zeros(2, 1, 1, 9, dtype=torch.bool))


def test_a_mask_may_have_more_digits() -> None:
    q = torch.randn(1, 2, 5, 8, dtype=torch.float16)
    mask = torch.randn(5, 5)
    expected = F.scaled_dot_product_attention(q.float(), q.float(), q.float(), mask)
    assert_same(F.scaled_dot_product_attention(*[q.to("dml")] * 3, mask.to("dml")), expected.half())


@pytest.mark.parametrize("scale", [0.3, 0.0, -1.0])
def test_scale(scale: float) -> None:
    check(make(1, 2, 7, 9, 16, 16), scale=scale)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_heads_that_share_keys(kv_heads: int) -> None:
    check(make(2, 4, 7, 9, 16, 16, kv_heads), enable_gqa=True)


def test_the_gradient_of_a_mask() -> None:
    q, mask = torch.randn(2, 2, 5, 8), torch.randn(5, 5)
    run = F.scaled_dot_product_attention
    assert_matches_cpu(run, q, q, q, mask.requires_grad_(), rtol=1e-5, atol=1e-5)


def test_strides() -> None:
    qkv = torch.randn(2, 6, 3, 2, 8)

    def run(qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    out = assert_matches_cpu(run, qkv.requires_grad_(), rtol=1e-5, atol=1e-5)
    # The heads are adjacent, as in the queries: the next layer needs no copy.
    assert out.transpose(1, 2).is_contiguous()
    q = torch.randn(2, 2, 8, 6)
    assert_matches_cpu(lambda q: F.scaled_dot_product_attention(q.mT, q.mT[:, :1].expand(2, 2, 6, 8), q.mT), q)


@layouts("zero_dim", "empty")
def test_the_result_lies_as_queries_do(layout: str) -> None:
    q = lay_out(sample(2, 3, 4, 5), layout)
    out = F.scaled_dot_product_attention(*[to_device(q, "dml")] * 3)
    assert out.stride() == torch.empty_like(q).stride()
    if q.stride(-1) == 1:  # Otherwise the CPU's is not fused.
        assert out.stride() == F.scaled_dot_product_attention(q, q, q).stride()


def test_empty() -> None:
    for sizes in ((0, 2, 3, 4, 8, 8), (2, 2, 0, 4, 8, 8), (2, 2, 3, 0, 8, 8), (2, 2, 3, 4, 8, 0)):
        check(make(*sizes))


def test_other_ranks() -> None:
    q = torch.randn(2, 5, 8)
    assert_matches_cpu(F.scaled_dot_product_attention, q, q, q, rtol=1e-5, atol=1e-5)
    assert_matches_cpu(F.scaled_dot_product_attention, q[0], q[0], q[0], rtol=1e-5, atol=1e-5)


def test_infinities_and_nan() -> None:
    q, k, v = (torch.randn(1, 1, 4, 8) for _ in range(3))
    q[0, 0, 1, 0] = torch.nan
    v[0, 0, 2, 3] = torch.inf
    # The CPU's fused kernel loses a query's NaN.
    with sdpa_kernel(SDPBackend.MATH):
        expected = F.scaled_dot_product_attention(q, k, v)
    assert_same(F.scaled_dot_product_attention(*(t.to("dml") for t in (q, k, v))), expected)


@pytest.mark.parametrize("causal", [False, True])
def test_dropout(causal: bool) -> None:
    q = torch.randn(2, 2, 24, 16, device="dml", dtype=torch.float64, requires_grad=True)
    k = torch.randn(2, 1, 30, 16, device="dml", dtype=torch.float64, requires_grad=True)
    # The values are the unit vectors, so the result is the weights.
    eye = torch.eye(30, device="dml", dtype=torch.float64).expand(2, 1, 30, 30)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return F.scaled_dot_product_attention(q, k, v, None, 0.25, causal, enable_gqa=True)

    weights = F.scaled_dot_product_attention(q, k, eye, is_causal=causal, enable_gqa=True)
    dropped = run(q, k, eye)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], weights[kept] / 0.75)
    share = kept.sum().item() / (weights != 0).sum().item()
    assert 0.68 < share < 0.82
    assert run(q, k, eye).equal(dropped)
    v = torch.randn(2, 1, 30, 8, device="dml", dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(run, (q, k, v), fast_mode=True, atol=1e-6)


@pytest.mark.parametrize("keys", [30, 7, 4])
def test_mask_of_dropout(keys: int) -> None:
    """Attention with a given seed and offset keeps a weight if its random number is above the
    probability to drop it.
    """
    eye = torch.eye(keys, device="dml").expand(2, 3, keys, keys)
    q, k = torch.randn(2, 3, 9, 16, device="dml"), torch.randn(2, 3, keys, 16, device="dml")
    for share in (0.1, 0.5):
        overrideable = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
        dropped, *_, seed, offset, _ = overrideable(q, k, eye, dropout_p=share)
        mask = torch.empty(2, 3, 9, keys, device="dml")
        assert torch._fill_mem_eff_dropout_mask_(mask, share, seed.item(), offset.item()) is mask
        assert mask.min() > 0 and mask.max() <= 1
        assert torch.equal(dropped != 0, mask > share)
    empty = torch.empty(2, 3, 0, keys, device="dml")
    assert torch._fill_mem_eff_dropout_mask_(empty, 0.5, 1, 2).numel() == 0
    with pytest.raises(RuntimeError, match="contiguous"):
        torch._fill_mem_eff_dropout_mask_(mask.transpose(0, 1), 0.5, 1, 2)


def test_dropout_of_everything() -> None:
    q = torch.randn(1, 1, 4, 8, device="dml", requires_grad=True)
    out = F.scaled_dot_product_attention(q, q, q, dropout_p=1.0)
    out.sum().backward()
    assert (out == 0).all() and (q.grad == 0).all()


def test_the_choice_of_a_backend_is_heeded() -> None:
    q = torch.randn(1, 2, 3, 4, device="dml", requires_grad=True)
    assert "Overrideable" in type(F.scaled_dot_product_attention(q, q, q).grad_fn).__name__
    with sdpa_kernel(SDPBackend.MATH):
        assert "Overrideable" not in type(F.scaled_dot_product_attention(q, q, q).grad_fn).__name__


# ---- gradients of gradients


def check_twice(
    tensors: list[torch.Tensor],
    dtype: torch.dtype = torch.float32,
    mask: Any = None,
    wanted: Sequence[int] = range(3),
    **options: Any,
) -> None:
    """Differentiable gradients, and their gradients.

    The first are those of queries, keys and values, as `wanted` says; the second also those of the
    output gradient.
    """
    tensors = [t.to(dtype) for t in tensors]

    def derive(device: str, dtype: torch.dtype) -> list[torch.Tensor]:
        given = [t.to(device, dtype) for t in tensors]
        leaves = [given[i].requires_grad_() for i in wanted]
        own = None if mask is None else mask.to(device, dtype if mask.is_floating_point() else None)
        g = given.pop().requires_grad_()
        out = F.scaled_dot_product_attention(*given, own, **options)
        first = torch.autograd.grad(out, leaves, g, create_graph=True)
        second = torch.autograd.grad(first, (*leaves, g), [cosines(t) for t in first], materialize_grads=True)
        return [t.detach().cpu().double() for t in (*first, *second)]

    with sdpa_kernel(SDPBackend.MATH):
        expected = derive("cpu", torch.float64)
    for ours, theirs in zip(derive("dml", dtype), expected, strict=True):
        scale = theirs.abs().max().item() + 1 if theirs.numel() else 1
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE[dtype] * scale)


@dtypes(FLOATS)
@pytest.mark.parametrize("sizes", [(2, 2, 7, 9, 16, 16), (1, 2, 9, 5, 3, 6), (2, 1, 1, 33, 5, 3)])
def test_second_gradients(sizes: Any, dtype: torch.dtype) -> None:
    check_twice(make(*sizes), dtype)


@dtypes(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("lengths", [(7, 7), (9, 5), (5, 9)])
def test_second_gradients_of_causal_attention(lengths: Any, dtype: torch.dtype) -> None:
    check_twice(make(2, 2, *lengths, 8, 6), dtype, is_causal=True, scale=0.3)


@dtypes(torch.float32, torch.bfloat16)
def test_second_gradients_under_masks(dtype: torch.dtype) -> None:
    flags = torch.rand(7, 9) > 0.5
    flags[2] = False
    for mask in (flags, torch.randn(2, 1, 7, 9), torch.randn(2, 1, 1, 9) > 0, torch.randn(())):
        check_twice(make(2, 2, 7, 9, 8, 6), dtype, mask)


@dtypes(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_second_gradients_of_heads_that_share_keys(kv_heads: int, dtype: torch.dtype) -> None:
    check_twice(make(2, 4, 7, 9, 8, 6, kv_heads), dtype, enable_gqa=True)
    check_twice(make(2, 4, 7, 9, 8, 6, kv_heads), dtype, torch.randn(4, 7, 9), enable_gqa=True)
    check_twice(make(2, 4, 7, 9, 8, 6, kv_heads), dtype, enable_gqa=True, is_causal=True)


def test_second_gradients_of_nothing() -> None:
    for sizes in ((0, 2, 3, 4, 8, 8), (2, 2, 0, 4, 8, 8), (2, 2, 3, 0, 8, 8), (2, 2, 3, 4, 8, 0)):
        check_twice(make(*sizes))


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_second_gradients_of_some(wanted: tuple[int, ...]) -> None:
    check_twice(make(1, 2, 5, 7, 8, 6), wanted=wanted)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"dropout_p": 0.25}, {"dropout_p": 1.0}])
def test_gradgradcheck(options: dict[str, Any]) -> None:
    q, k, v = (t.to("dml").requires_grad_() for t in make(2, 4, 5, 37, 4, 3, 2)[:3])

    def run(*given: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return F.scaled_dot_product_attention(*given, **options, enable_gqa=True)

    torch.autograd.gradgradcheck(run, (q, k, v), fast_mode=True)
    # The gradients are the same, however they are computed.
    once = torch.autograd.grad(run(q, k, v).sum(), (q, k, v))
    again = torch.autograd.grad(run(q, k, v).sum(), (q, k, v), create_graph=True)
    for one, other in zip(once, again, strict=True):
        torch.testing.assert_close(one, other)


WRONG = [
    lambda d: F.scaled_dot_product_attention(*[torch.ones(1, 2, 3, 4, device=d)] * 2, torch.ones(1, 2, 5, 4, device=d)),
    lambda d: F.scaled_dot_product_attention(
        *[torch.ones(1, 2, 3, 4, device=d)] * 2, torch.ones(1, 2, 3, 4).to(d, torch.half)
    ),
    lambda d: F.scaled_dot_product_attention(
        *[torch.ones(1, 2, 3, 4, device=d)] * 3, torch.ones(3, 3, device=d), is_causal=True
    ),
    lambda d: F.scaled_dot_product_attention(*[torch.ones(1, 2, 3, 4, device=d)] * 3, torch.ones(4, 4, device=d)),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_errors(wrong: Any) -> None:
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(Exception) as expected:
        wrong("cpu")
    with pytest.raises(type(expected.value)):
        wrong("dml")


# ---- layers


def on_both(module: nn.Module, run: Any, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """`run(module, device)` on both devices: compares results, and in training the gradients of the
    parameters.
    """
    found = []
    for device in ("cpu", "dml"):
        twin = copy.deepcopy(module).to(device)
        results = run(twin, device)
        if module.training:
            results[0].square().sum().backward()
            results = [*results, *(p.grad for p in twin.parameters())]
        found.append(list(results))
    for theirs, ours in zip(*found, strict=True):
        assert_same(ours, theirs, rtol, atol)


def multihead(x: torch.Tensor, memory: torch.Tensor, **options: Any) -> Any:
    def run(module: nn.Module, device: str) -> Any:
        moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        memory_there = x.to(device) if memory is x else memory.to(device)
        there = memory_there if memory is x else x.to(device)
        with torch.set_grad_enabled(module.training):
            out, weights = module(there, memory_there, memory_there, **moved)
        return [out] if weights is None else [out, weights]

    return run


@pytest.mark.parametrize("train", [True, False])
def test_multihead_attention(train: bool) -> None:
    module = nn.MultiheadAttention(16, 4, batch_first=True).train(train)
    x, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    on_both(module, multihead(x, x))
    on_both(module, multihead(x, x, need_weights=False))
    on_both(module, multihead(x, x, average_attn_weights=False))
    on_both(module, multihead(x, x, key_padding_mask=padding))
    on_both(module, multihead(x, x, attn_mask=later, key_padding_mask=padding, need_weights=False))
    on_both(module, multihead(x, x, attn_mask=later, is_causal=True, need_weights=False))
    on_both(module, multihead(x, memory))


def test_multihead_attention_with_other_widths() -> None:
    module = nn.MultiheadAttention(16, 2, kdim=6, vdim=10, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    k, v = torch.randn(2, 7, 6), torch.randn(2, 7, 10)
    x = torch.randn(2, 5, 16)
    on_both(module, lambda m, d: [m(x.to(d), k.to(d), v.to(d), need_weights=False)[0]])


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_masked_softmax(kind: int) -> None:
    x = torch.randn(2, 2, 5, 5)
    mask = [torch.ones(5, 5).triu(1), torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]]), torch.rand(2, 2, 5, 5) > 0.6]
    assert_matches_cpu(lambda x, m: torch._masked_softmax(x, m, 3, kind), x, mask[kind].bool())
    if kind == 2:
        assert_matches_cpu(lambda x, m: torch._masked_softmax(x, m, 1, 2), x.requires_grad_(), mask[2])


@dtypes(torch.float32, torch.float16)
def test_projection_before_attention(dtype: torch.dtype) -> None:
    qkv, bias = torch.randn(2, 3, 24, dtype=dtype), torch.randn(24, dtype=dtype)
    assert_matches_cpu(lambda x, b: torch._transform_bias_rescale_qkv(x, b, 2), qkv, bias)
    assert_matches_cpu(lambda x, b: torch._transform_bias_rescale_qkv(x.mT, b[:9:3], 1), qkv.mT[:, :3], bias)
    with pytest.raises(RuntimeError, match="heads"):
        torch._transform_bias_rescale_qkv(qkv.to("dml"), bias.to("dml"), 5)


LAYERS = [{"activation": "gelu"}, {"norm_first": True, "activation": "relu"}]


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("options", LAYERS)
def test_encoder_layers(options: dict[str, Any], train: bool) -> None:
    module = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.0, batch_first=True, **options).train(train)
    x = torch.randn(2, 5, 16)
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    later = nn.Transformer.generate_square_subsequent_mask(5)
    for masks in ({}, {"src_key_padding_mask": padding}, {"src_mask": later}):

        def run(module: nn.Module, device: str, masks: dict[str, torch.Tensor] = masks) -> list[torch.Tensor]:
            with torch.set_grad_enabled(module.training):
                return [module(x.to(device), **{name: mask.to(device) for name, mask in masks.items()})]

        on_both(module, run, 1e-4, 1e-4)


@pytest.mark.parametrize("train", [True, False])
def test_transformers(train: bool) -> None:
    module = nn.Transformer(16, 4, 1, 1, 24, dropout=0.0, batch_first=True).train(train)
    x, y = torch.randn(2, 5, 16), torch.randn(2, 6, 16)
    later = nn.Transformer.generate_square_subsequent_mask(6)

    def run(module: nn.Module, device: str) -> list[torch.Tensor]:
        with torch.set_grad_enabled(module.training):
            return [module(x.to(device), y.to(device), tgt_mask=later.to(device), tgt_is_causal=True)]

    on_both(module, run, 1e-4, 1e-4)
