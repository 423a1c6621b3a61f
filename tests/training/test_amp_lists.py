"""torch.autocast("dml") follows CUDA's lists, with which PyTorch tests CUDA, operator by
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch.testing._internal.autocast_test_lists import AutocastTestLists
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.compare import tensors
from tests.support.dtypes import HALVES, dtypes

DML = torch.device("dml", 0)
# Allowed difference of an operator's result from float32's, in units of the dtype in which it ran,
# in the Euclidean norm.
UNITS = 8
# Lists by the module of their operators; None: only methods of tensors.
MODULES = {
    **dict.fromkeys(("torch_fp16", "torch_fp32", "torch_need_autocast_promote", "torch_expect_builtin_promote"), torch),
    **dict.fromkeys(("nn_fp16", "nn_fp32"), torch._C._nn),
    "linalg_fp16": torch._C._linalg,
    **dict.fromkeys(("methods_fp16", "methods_fp32", "methods_expect_builtin_promote"), None),
}
# The list has wrong arguments for `einsum`, so that PyTorch does not run it either: test_amp.py
# does.
WITHOUT = {"cudnn_convolution", "cudnn_convolution_transpose", "einsum"}


@dataclass(frozen=True)
class Entry:
    """An operator of a list, and arguments on the CPU."""

    list: str
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: torch.dtype | None = None  # if the list has one

    def forms(self) -> list[Callable[..., Any]]:
        """The function and the method, if they exist."""
        module = MODULES[self.list]
        function = getattr(module, self.name, None) if module is not None else None
        return [form for form in (function, getattr(torch.Tensor, self.name, None)) if form is not None]

    def runs_in(self, lower: torch.dtype) -> torch.dtype:
        """The dtype of the list for autocast to `lower`; if it promotes, one argument is
        float32.
        """
        return lower if self.list.endswith("fp16") else torch.float32


def entries() -> Iterator[Any]:
    torch.manual_seed(0)
    lists = AutocastTestLists(torch.device("cpu"))
    for name in MODULES:
        for index, (operator, args, *rest) in enumerate(getattr(lists, name)):
            if operator not in WITHOUT:
                kwargs = next((one for one in rest if isinstance(one, dict)), {})
                result = next((one for one in rest if isinstance(one, torch.dtype)), None)
                yield pytest.param(
                    Entry(name, operator, shortened(args), kwargs, result), id=f"{name}-{operator}-{index}"
                )


def shortened(value: Any) -> Any:
    """With two of eight channels for volumes: the convolution of all of them takes a software
    adapter seconds.
    """
    if isinstance(value, torch.Tensor):
        return value[:2, :2] if value.dim() == 5 else value
    return type(value)(map(shortened, value)) if isinstance(value, list | tuple) else value


def cast(value: Any, device: torch.device, to: Callable[[torch.dtype], torch.dtype]) -> Any:
    """A value with its tensors on a device, and floats in the dtype that `to` returns for
    theirs.
    """
    if isinstance(value, torch.Tensor):
        return value.to(device, to(value.dtype) if value.is_floating_point() else value.dtype)
    return type(value)(cast(one, device, to) for one in value) if isinstance(value, list | tuple) else value


class Kernels(TorchDispatchMode):
    """Records the dtypes of floats that kernels get, except copies between dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, set[torch.dtype]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = {tensor.dtype for tensor in tensors([args, kwargs]) if tensor.is_floating_point()}
        # Some reductions have a dtype argument, and convert on load.
        told = next((value for value in (*args, *kwargs.values()) if isinstance(value, torch.dtype)), None)
        if found and func is not torch.ops.aten._to_copy.default:
            self.seen.append((str(func), {told} if told is not None else found))
        return func(*args, **kwargs)


def assert_near(result: torch.Tensor, exact: torch.Tensor) -> None:
    """The result equals that of float32 up to roundings of its own dtype."""
    if not result.is_floating_point():
        assert torch.equal(result.cpu(), exact)
        return
    got, exact = result.cpu().double(), exact.double()
    finite = exact.isfinite()
    assert torch.equal(got[~finite], exact[~finite])
    allowed = UNITS * torch.finfo(result.dtype).eps * max(exact[finite].norm().item(), 1.0)
    error = (got - exact)[finite].norm().item()
    assert error <= allowed, f"{error} > {allowed}"


@pytest.mark.parametrize("entry", list(entries()))
@dtypes(HALVES)
@pytest.mark.filterwarnings("ignore")
def test_operators_run_in_the_dtype_that_cuda_lists(entry: Entry, dtype: torch.dtype) -> None:
    given = cast(entry.args, DML, lambda own: dtype if own == torch.float16 else own)
    in_float32 = cast(given, torch.device("cpu"), lambda _: torch.float32)
    wanted = entry.runs_in(dtype)
    promotes_by_itself = entry.list.endswith("builtin_promote")
    for form in entry.forms():
        with torch.autocast("dml", dtype), Kernels() as kernels:
            result = form(*given, **entry.kwargs)
        exact = form(*in_float32, **entry.kwargs)
        if isinstance(result, bool):
            assert result == exact
            continue
        # CUDA's result: the same without autocast, for arguments that were converted before.
        control = form(*(given if promotes_by_itself else cast(given, DML, lambda _: wanted)), **entry.kwargs)
        for one, other, reference in zip(tensors(result), tensors(control), tensors(exact), strict=True):
            assert one.dtype == other.dtype == (entry.result or wanted)
            assert torch.equal(one, other)
            assert_near(one, reference)
        if not promotes_by_itself:
            assert kernels.seen and all(found == {wanted} for _, found in kernels.seen), kernels.seen


@dtypes(HALVES)
def test_what_cuda_bans_is_refused(dtype: torch.dtype) -> None:
    for name, args, module in AutocastTestLists(DML).banned:
        with torch.autocast("dml", dtype), pytest.raises(RuntimeError, match="unsafe to autocast"):
            getattr(module, name)(*args)


def test_the_lists_are_those_that_are_tested() -> None:
    """A list that a later PyTorch adds is noticed."""
    lists = AutocastTestLists(torch.device("cpu"))
    named = {name for name, value in vars(lists).items() if isinstance(value, list)}
    assert named == {*MODULES, "banned"}
