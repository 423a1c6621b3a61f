"""torch.use_deterministic_algorithms(True): every operator that its documentation lists gives the
same bits, or raises, as on CUDA.

On CUDA about half of them raise; here all of them have deterministic kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.support.bits import bits

DML = "dml"
# Enough numbers for few enough positions that a race would be visible.
COUNT, PLACES = 20_000, 7


@pytest.fixture(autouse=True)
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def numbers(*sizes: int) -> torch.Tensor:
    """Numbers on the device; operators without a gradient ignore that they require one."""
    return torch.randn(sizes).to(DML).requires_grad_()


def places(*sizes: int) -> torch.Tensor:
    return torch.randint(PLACES, sizes or (COUNT,)).to(DML)


def image(dimensions: int, channels: int = 3) -> torch.Tensor:
    return numbers(2, channels, *((400, 20, 8)[dimensions - 1],) * dimensions)


def points() -> torch.Tensor:
    return (torch.rand(1, 60, 60, 2) * 2 - 1).to(DML).requires_grad_()


def unpooled(dimensions: int) -> torch.Tensor:
    kind = {1: (F.max_pool1d, F.max_unpool1d), 2: (F.max_pool2d, F.max_unpool2d), 3: (F.max_pool3d, F.max_unpool3d)}
    pool, unpool = kind[dimensions]
    # Overlapping windows, so that some numbers are the maximum of several.
    found, indices = pool(image(dimensions), 3, 1, return_indices=True)
    return unpool(found, indices, 3, 1)


def convolved(kind: type[nn.Module], dimensions: int) -> list[torch.Tensor]:
    module = kind(3, 4, 3).to(DML)
    return [module(image(dimensions)), *module.parameters()]


def onto(change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The result of an in-place change of a tensor with a few elements."""
    return change(torch.zeros(PLACES, device=DML))


def bag() -> torch.Tensor:
    offsets = torch.arange(0, COUNT, 100).to(DML)
    return F.embedding_bag(places(), numbers(PLACES, 5), offsets, mode="max")


def ctc() -> torch.Tensor:
    lengths = torch.full((4,), 30), torch.tensor([9, 8, 7, 5])
    return F.ctc_loss(numbers(30, 4, 6).log_softmax(-1), torch.randint(1, 6, (4, 9)).to(DML), *lengths)


def sparse_bmm() -> torch.Tensor:
    where = torch.stack([torch.randint(n, (4_000,)) for n in (2, 20, 30)])
    return torch.bmm(torch.sparse_coo_tensor(where, torch.randn(4_000), (2, 20, 30)).to(DML), numbers(2, 30, 9))


# In the order of the documentation. Operators that it lists for CPU tensors are called with the
# device's.
DETERMINISTIC_ON_CUDA: dict[str, Callable[[], Any]] = {
    **{f"Conv{d}d": lambda d=d: convolved(getattr(nn, f"Conv{d}d"), d) for d in (1, 2, 3)},
    **{f"ConvTranspose{d}d": lambda d=d: convolved(getattr(nn, f"ConvTranspose{d}d"), d) for d in (1, 2, 3)},
    **{f"ReplicationPad{d}d": lambda d=d: F.pad(image(d), (3, 2) * d, "replicate") for d in (1, 2, 3)},
    "bmm of sparse": sparse_bmm,
    "getitem": lambda: numbers(PLACES, 3)[places(), [0, 2] * (COUNT // 2)],
    "index_put": lambda: onto(lambda x: x.index_put((places(),), numbers(COUNT))),
    "index_put of a number": lambda: onto(lambda x: x.index_put((places(),), numbers(1)[0])),
    "index_put accumulate": lambda: onto(lambda x: x.index_put((places(),), numbers(COUNT), accumulate=True)),
    "put_ accumulate": lambda: onto(lambda x: x.put_(places(), numbers(COUNT), accumulate=True)),
    "scatter_add_": lambda: onto(lambda x: x.scatter_add_(0, places(), numbers(COUNT))),
    "gather": lambda: numbers(PLACES).gather(0, places()),
    "index_add": lambda: onto(lambda x: x.index_add(0, places(), numbers(COUNT))),
    "index_select": lambda: numbers(PLACES, 3).index_select(0, places()),
    "repeat_interleave": lambda: numbers(PLACES, 3).repeat_interleave(places(PLACES) * 500, 0),
    "index_copy": lambda: onto(lambda x: x.index_copy(0, places(), numbers(COUNT))),
    "scatter": lambda: onto(lambda x: x.scatter(0, places(), numbers(COUNT).detach())),
    "scatter_reduce sum": lambda: onto(lambda x: x.scatter_reduce(0, places(), numbers(COUNT), "sum")),
    "scatter_reduce mean": lambda: onto(lambda x: x.scatter_reduce(0, places(), numbers(COUNT), "mean")),
}
RAISES_ON_CUDA: dict[str, Callable[[], Any]] = {
    "AvgPool3d": lambda: F.avg_pool3d(image(3), 3, 1),
    "AdaptiveAvgPool2d": lambda: F.adaptive_avg_pool2d(image(2), 7),
    "AdaptiveAvgPool3d": lambda: F.adaptive_avg_pool3d(image(3), 5),
    "MaxPool3d": lambda: F.max_pool3d(image(3), 3, 1),
    "AdaptiveMaxPool2d": lambda: F.adaptive_max_pool2d(image(2), 7),
    "FractionalMaxPool2d": lambda: F.fractional_max_pool2d(image(2), 3, 9),
    "FractionalMaxPool3d": lambda: F.fractional_max_pool3d(image(3), 3, 4),
    **{f"MaxUnpool{d}d": lambda d=d: unpooled(d) for d in (1, 2, 3)},
    "interpolate linear": lambda: F.interpolate(image(1), scale_factor=2.3, mode="linear"),
    "interpolate bilinear": lambda: F.interpolate(image(2), scale_factor=2.3, mode="bilinear"),
    "interpolate bicubic": lambda: F.interpolate(image(2), scale_factor=2.3, mode="bicubic"),
    "interpolate trilinear": lambda: F.interpolate(image(3), scale_factor=2.3, mode="trilinear"),
    **{f"ReflectionPad{d}d": lambda d=d: F.pad(image(d), (3, 2) * d, "reflect") for d in (1, 2, 3)},
    "NLLLoss": lambda: F.nll_loss(numbers(2_000, PLACES).log_softmax(1), places(2_000)),
    "NLLLoss of images": lambda: F.nll_loss(image(2, PLACES).log_softmax(1), places(2, 20, 20)),
    "CTCLoss": ctc,
    "EmbeddingBag max": bag,
    "put_": lambda: onto(lambda x: x.put_(places(), numbers(COUNT))),
    "histc": lambda: numbers(COUNT).detach().histc(10),
    "bincount": lambda: torch.bincount(places(), numbers(COUNT).detach()),
    "median": lambda: numbers(60, 50).median(1),
    "grid_sample": lambda: F.grid_sample(numbers(1, 3, 5, 5), points(), align_corners=False),
    "cumsum": lambda: numbers(3, COUNT).cumsum(1),
    "scatter_reduce prod": lambda: onto(lambda x: (x + 1).scatter_reduce(0, places(), numbers(COUNT), "prod")),
}
LISTED = {**DETERMINISTIC_ON_CUDA, **RAISES_ON_CUDA}


def leaves(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """The leaves that require a gradient in the graphs of some tensors, in order of use."""
    found: dict[int, torch.Tensor] = {}
    waiting, seen = [output.grad_fn for output in outputs if output.grad_fn is not None], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        waiting.extend(before for before, _ in node.next_functions)
    return list(found.values())


def run(call: Callable[[], Any]) -> list[Any]:
    """The bits of the results and of all gradients."""
    torch.manual_seed(3)
    results = call()
    outputs = list(results) if isinstance(results, list | tuple) else [results]
    differentiable = [output for output in outputs if output.grad_fn is not None]
    weights = [torch.randn(output.shape).to(DML) for output in differentiable]
    gradients = torch.autograd.grad(differentiable, leaves(differentiable), weights) if differentiable else ()
    return bits([outputs, list(gradients)])


@pytest.mark.parametrize("name", LISTED)
def test_listed_operators_give_the_same_bits(name: str) -> None:
    first = run(LISTED[name])
    assert all(run(LISTED[name]) == first for _ in range(3))


def last_wins(index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Zeros to which the values are written at their indices, one after the other."""
    found = torch.zeros(PLACES)
    for place, value in zip(index.tolist(), values.tolist(), strict=True):
        found[place] = value
    return found


WRITES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "setitem": lambda x, i, v: x.__setitem__(i, v) or x,
    "index_put": lambda x, i, v: x.index_put((i,), v),
    "index_put_": lambda x, i, v: x.index_put_((i,), v),
    "scatter": lambda x, i, v: x.scatter(0, i, v),
    "scatter_": lambda x, i, v: x.scatter_(0, i, v),
    "index_copy": lambda x, i, v: x.index_copy(0, i, v),
    "index_copy_": lambda x, i, v: x.index_copy_(0, i, v),
    "put_": lambda x, i, v: x.put_(i, v),
}


@pytest.mark.parametrize("count", [5, 3_000, COUNT])
@pytest.mark.parametrize("name", WRITES)
def test_of_several_writes_to_a_place_the_last_stays(name: str, count: int) -> None:
    """Without the flag any value may win: these kernels respect the flag."""
    index, values = torch.randint(PLACES, (count,)), torch.randn(count)
    found = WRITES[name](torch.zeros(PLACES, device=DML), index.to(DML), values.to(DML))
    assert torch.equal(found.cpu(), last_wins(index, values))


def test_uninitialised_memory_is_filled() -> None:
    assert torch.empty(1_000, device=DML).isnan().all()
    assert (torch.empty(1_000, dtype=torch.int32, device=DML) == torch.iinfo(torch.int32).max).all()
    assert torch.empty(0, device=DML).resize_(1_000).isnan().all()


def test_operators_that_raise_on_other_devices_warn_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    for name in ("cumsum", "grid_sample", "put_"):
        run(LISTED[name])
    assert not [warning for warning in recwarn if "deterministic" in str(warning.message)]
