"""Products under torch.autocast("dml") without gradients: float32 is rounded on load."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_dml
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.compare import tensors
from tests.support.dtypes import HALVES, dtypes
from tests.support.launches import launches

QUIET = (torch.no_grad, torch.inference_mode)
quietly = pytest.mark.parametrize("quietly", QUIET, ids=["no_grad", "inference_mode"])

Product = Callable[..., torch.Tensor]
# Operators with the sizes of their arguments (the addend precedes the operands), and their numbers
# of launches.
PRODUCTS: dict[str, tuple[Product, list[tuple[int, ...]], int]] = {
    "mm": (torch.mm, [(9, 20), (20, 7)], 1),
    "mm of few rows": (torch.mm, [(2, 33), (33, 12)], 1),
    "mm without an inner dimension": (torch.mm, [(9, 0), (0, 7)], 1),
    "mm of nothing": (torch.mm, [(0, 20), (20, 7)], 0),
    "bmm": (torch.bmm, [(3, 9, 20), (3, 20, 7)], 1),
    "matmul": (torch.matmul, [(9, 20), (20, 7)], 1),
    "matmul of vectors": (torch.matmul, [(20,), (20,)], 1),
    "matmul with a vector": (torch.matmul, [(9, 20), (20,)], 1),
    "matmul of a vector": (torch.matmul, [(20,), (20, 7)], 1),
    "matmul of batches": (torch.matmul, [(2, 3, 9, 20), (2, 3, 20, 7)], 1),
    "matmul of a batch with a matrix": (torch.matmul, [(2, 3, 9, 20), (20, 7)], 1),
    "matmul of a batch with a vector": (torch.matmul, [(2, 9, 20), (20,)], 1),
    "matmul of no batches": (torch.matmul, [(0, 9, 20), (0, 20, 7)], 0),
    "linear": (F.linear, [(9, 20), (7, 20)], 1),
    "linear of a batch": (F.linear, [(2, 3, 20), (7, 20)], 1),
    "linear of a vector": (F.linear, [(20,), (7, 20)], 1),
}
ADDING: dict[str, tuple[Product, list[tuple[int, ...]], int]] = {
    "addmm": (torch.addmm, [(7,), (9, 20), (20, 7)], 1),
    "addmm with factors": (lambda *t: torch.addmm(*t, beta=2, alpha=0.5), [(9, 7), (9, 20), (20, 7)], 1),
    "baddbmm": (torch.baddbmm, [(3, 9, 7), (3, 9, 20), (3, 20, 7)], 1),
    "baddbmm with factors": (lambda *t: torch.baddbmm(*t, beta=0, alpha=3), [(1, 7), (3, 9, 20), (3, 20, 7)], 1),
    "linear with a bias": (lambda b, x, w: F.linear(x, w, b), [(7,), (9, 20), (7, 20)], 1),
    "linear of a batch with a bias": (lambda b, x, w: F.linear(x, w, b), [(7,), (2, 3, 20), (7, 20)], 1),
}


def made(sizes: list[tuple[int, ...]]) -> list[torch.Tensor]:
    """Return float32 tensors on the device, with numbers that are rounded, overflow or are not
    represented in half precision.
    """
    torch.manual_seed(len(sizes) + sum(map(sum, sizes)))
    values = [torch.randn(size) for size in sizes]
    for one in values:
        one.view(-1)[::29] *= 1e-7
    return [one.to("dml") for one in values]


def assert_equal(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """The same tensor: bits, sizes and strides."""
    assert (found.dtype, found.shape, found.stride()) == (wanted.dtype, wanted.shape, wanted.stride())
    assert torch.equal(found.cpu().view(torch.int16), wanted.cpu().view(torch.int16))


@pytest.mark.parametrize("name", [*PRODUCTS, *ADDING])
@dtypes(HALVES)
@quietly
def test_bits_are_those_of_converted_operands(
    name: str, dtype: torch.dtype, quietly: Callable[[], AbstractContextManager]
) -> None:
    product, sizes, count = {**PRODUCTS, **ADDING}[name]
    given = made(sizes)
    added, operands = given[: name in ADDING], given[name in ADDING :]
    converted = [one.to(dtype) for one in given]
    with quietly():
        wanted = product(*converted)
        for lies in ([True, True], [True, False], [False, True]):
            mixed = [one if is_float else one.to(dtype) for one, is_float in zip(operands, lies, strict=True)]
            with torch.autocast("dml", dtype):
                assert_equal(product(*added, *mixed), wanted)
        # No launch except the product, and the conversion of the addend.
        with torch.autocast("dml", dtype):
            assert launches(lambda: product(*added, *operands)) == count + len(added)
            assert launches(lambda: product(*converted)) == count


@dtypes(HALVES)
@torch.no_grad()
def test_any_layout_and_place(dtype: torch.dtype) -> None:
    x, w = made([(2, 40, 12), (11, 40)])
    views = [
        x.transpose(1, 2),
        x[:, ::2].transpose(1, 2).expand(2, 12, 20),
        x[:, 3:, 1:].transpose(1, 2),
        x.view(-1)[1:-39].view(23, 40),
        x[:1].transpose(1, 2).expand(5, 12, 40),
        x.permute(2, 0, 1),
    ]
    for view in views:
        weight = w[:, : view.shape[-1]]
        wanted = F.linear(view.to(dtype), weight.to(dtype))
        with torch.autocast("dml", dtype):
            assert_equal(F.linear(view, weight), wanted)
            assert_equal(view @ weight.t(), wanted)


@dtypes(HALVES)
def test_numbers_that_are_rounded_each_in_its_way(dtype: torch.dtype) -> None:
    special = [
        1 + 2**-11,
        1 + 3 * 2**-11,
        1 + 2**-8,
        1 + 3 * 2**-8,
        65519,
        65520,
        -7e4,
        3.39e38,
        6e-5,
        5.96e-8,
        2.98e-8,
        1e-40,
    ]
    x = torch.diag(torch.tensor([*special, torch.inf, -0.0])).to("dml")
    for size in (len(x), 1):
        ones = torch.eye(len(x), size, device="dml", dtype=dtype)
        with torch.inference_mode(), torch.autocast("dml", dtype):
            found = x.clone() @ ones
        assert_equal(found.nan_to_num(1.0), (x.to(dtype) @ ones).nan_to_num(1.0))


# ---- what does not change


def test_weights_are_converted_once() -> None:
    x, w = made([(9, 20), (7, 20)])
    w.requires_grad_()

    def commands() -> int:
        before = torch_dml.engine.queue_stats(0)["commands"]
        F.linear(x, w)
        return torch_dml.engine.queue_stats(0)["commands"] - before

    # In the first iteration kernels are compiled.
    for _ in range(2):
        with torch.no_grad(), torch.autocast("dml", torch.float16):
            counts = [commands(), commands(), commands()]
    assert counts == [2, 1, 1]
    with torch.no_grad(), torch.autocast("dml", torch.float16, cache_enabled=False):
        assert launches(lambda: F.linear(x, w)) == 1
        assert_equal(F.linear(x, w), F.linear(x.half(), w.half()))


@dtypes(HALVES)
def test_gradients_are_those_of_converted_operands(dtype: torch.dtype) -> None:
    given = made([(7,), (9, 20), (7, 20)])

    def run(convert: bool) -> list[torch.Tensor]:
        leaves = [one.clone().requires_grad_() for one in given]
        b, x, w = [one.to(dtype) for one in leaves] if convert else leaves
        with torch.autocast("dml", dtype, enabled=not convert):
            saved: list[torch.dtype] = []
            with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(t.dtype), t)[1], lambda t: t):
                out = F.linear(x, w, b)
        assert saved and set(saved) == {dtype}
        out.float().square().sum().backward()
        return [out.detach(), *(leaf.grad for leaf in leaves)]

    for found, wanted in zip(run(False), run(True), strict=True):
        assert torch.equal(found, wanted)


def test_one_operand_with_a_gradient_is_enough_to_record_it() -> None:
    x, w = made([(9, 20), (20, 7)])
    w = (w * 1).requires_grad_()
    with torch.autocast("dml", torch.float16):
        out = x @ w
    out.sum().backward()
    assert out.grad_fn is not None and w.grad.dtype == torch.float32
    with torch.autocast("dml", torch.float16):
        assert launches(lambda: x @ w.detach()) == 1


class Seen(TorchDispatchMode):
    """Records the dtypes of floats that products get."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.mm.default:
            self.dtypes |= {one.dtype for one in tensors(args)}
        return func(*args, **(kwargs or {}))


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_who_follows_operators_finds_conversions_among_them() -> None:
    x, w = made([(9, 20), (20, 7)])
    with torch.autocast("dml", torch.float16), Seen() as seen:
        torch.mm(x, w)
    assert seen.dtypes == {torch.float16}
    with torch.autocast("dml", torch.float16, cache_enabled=False):
        traced = torch.jit.trace(lambda x: torch.mm(x, w), x, check_trace=False)
    wanted = x.half() @ w.half()
    assert_equal(traced(x), wanted)
    with torch.autocast("dml", torch.float16):
        assert_equal(torch.vmap(lambda row: torch.mv(w.t(), row))(x).contiguous(), wanted)
        assert_equal(torch.vmap(torch.matmul, (0, None))(x, w).contiguous(), wanted)


@torch.no_grad()
def test_graphs_and_compiled_functions() -> None:
    x, w = made([(9, 20), (20, 7)])
    graph = torch.dml.Graph()
    with torch.autocast("dml", torch.float16):
        torch.mm(x, w)
        with torch.dml.graph(graph):
            out = torch.mm(x, w)
    x.copy_(torch.randn(9, 20))
    graph.replay()
    wanted = x.half() @ w.half()
    assert_equal(out, wanted)
    compiled = torch.compile(torch.mm, backend="aot_eager")
    with torch.autocast("dml", torch.float16):
        assert_equal(compiled(x, w), wanted)


def message(product: Product, *operands: torch.Tensor) -> str:
    with pytest.raises(RuntimeError) as error:
        product(*operands)
    return str(error.value)


@torch.no_grad()
def test_what_is_refused() -> None:
    x, w = made([(9, 20), (20, 7)])
    half, double = w.half(), w.double()
    outside = [message(torch.mm, x, half), message(torch.bmm, x[None], half[None]), message(torch.mv, x, half[:, 0])]
    assert all("dtype" in one or "scalar type" in one for one in outside)
    assert message(F.linear, x, half.t()) == message(torch.mm, x, half)
    with torch.autocast("dml", torch.float16):
        # float64 is not changed.
        assert "double" in message(torch.mm, x, double)
        assert message(torch.mm, x, double) == message(torch.mm, x.half(), double)
        assert torch.mm(x.double(), double).dtype == torch.float64
        assert message(torch.mm, x, x) == message(torch.mm, x.half(), x.half())
        assert message(F.linear, x, w) == message(F.linear, x.half(), w.half())
        assert message(torch.addmm, x, x, w) == message(torch.addmm, x.half(), x.half(), half)
        # Neither an operand on the CPU nor an operator without an autocast kernel.
        assert message(torch.mm, x, w.cpu()) == message(torch.mm, x.half(), w.cpu())
        out = torch.empty(9, 7, device="dml", dtype=torch.float16)
        with pytest.raises(RuntimeError, match="dtype"):
            torch.mm(x, half, out=out)
        # An error leaves no state behind.
        with torch.autocast("dml", enabled=False):
            assert message(torch.mm, x, half) == outside[0]
