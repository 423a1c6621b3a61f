"""A case as a program that needs nothing but torch and the device."""

from __future__ import annotations

from typing import Any

import torch

from .calls import BACKWARD, DOUBLE, Call
from .cases import Case

# Storages with more elements are not printed: the program takes the arguments from the fuzzer.
MAX_ELEMENTS = 256


def program(case: Case, device: str) -> str:
    """The source text of a case."""
    call = case.call
    lines = [
        f"# case {case.number}: {case.subject.name}, {call.stage}",
        "import torch, torch_dml",
        "import torch.nn.functional as F",
        'inf, nan = float("inf"), float("nan")',
    ]
    if "opinfo(" in call.function:
        lines += [
            "from torch.testing._internal.common_methods_invocations import op_db",
            "opinfo = {op.full_name: op for op in op_db}.__getitem__",
        ]
    if any(tensor.untyped_storage().nbytes() // tensor.element_size() > MAX_ELEMENTS for tensor in call.tensors()):
        lines += [
            "from tests.fuzz.cases import make",
            f"call = make({case.number}).call",
            "args, kwargs = call.args, call.kwargs",
        ]
    else:
        lines += [f"args = {source(call.args)}", f"kwargs = {source(call.kwargs)}"]
    return "\n".join([*lines, *_run(call, device)])


def _run(call: Call, device: str) -> list[str]:
    lines = [
        "from tests.fuzz.calls import Mover, Variant",
        f'for device in ("cpu", "{device}"):',
        "    move = Mover(torch.device(device), Variant())",
        "    a, k = move(args), move(kwargs)",
        f"    torch.manual_seed({call.seed})",
        f"    result = ({call.function})(*a, **k)",
        "    print(result)",
    ]
    if call.stage in (BACKWARD, DOUBLE):
        lines += [
            "    # then the gradients of the results with weights: tests/fuzz/calls.py",
        ]
    return lines


def source(value: Any) -> str:
    """The source text of an argument."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {source(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(source(item) for item in value) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(source(item) + ", " for item in value) + ")"
    return f"torch.device({str(value)!r})" if isinstance(value, torch.device) else repr(value)


def _tensor(tensor: torch.Tensor) -> str:
    plain = tensor.detach()
    storage = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
    if plain.is_contiguous() and storage.numel() == plain.numel():
        text = f"torch.tensor({plain.tolist()}, dtype={plain.dtype})"
        if 0 in plain.shape:
            text = f"torch.empty({tuple(plain.shape)}, dtype={plain.dtype})"
    else:
        text = (
            f"torch.tensor({storage.tolist()}, dtype={plain.dtype})"
            f".as_strided({tuple(plain.shape)}, {plain.stride()}, {plain.storage_offset()})"
        )
    return text + (".requires_grad_()" if tensor.requires_grad else "")
