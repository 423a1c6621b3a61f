"""A case as a program that needs only torch and the device; for large arguments also the fuzzer."""

from __future__ import annotations

from typing import Any

import torch

from .calls import DOUBLE, FORWARD
from .cases import Case

# Larger storages are not printed: the program gets the arguments from the fuzzer.
MAX_ELEMENTS = 256
OPINFO = """\
from torch.testing._internal.common_methods_invocations import op_db

opinfo = {op.full_name: op for op in op_db}.__getitem__
"""
MOVE = """
def on(device, value):
    if isinstance(value, torch.Tensor):
        storage = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage()).to(device, copy=True)
        moved = storage.as_strided(value.shape, value.stride(), value.storage_offset())
        moved = moved.conj() if value.is_conj() else moved
        moved = torch._neg_view(moved) if value.is_neg() else moved
        return moved.detach().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: on(device, item) for key, item in value.items()}
    return type(value)(on(device, item) for item in value) if isinstance(value, (list, tuple)) else value
"""
GRADIENTS = """
def flat(value):
    value = list(value.values()) if isinstance(value, dict) else value
    return [x for item in value for x in flat(item)] if isinstance(value, (list, tuple)) else [value]


def gradients(results, leaves):
    results = [x for x in flat(results) if isinstance(x, torch.Tensor) and x.requires_grad]
    leaves = [x for x in flat(leaves) if isinstance(x, torch.Tensor) and x.requires_grad]
    weights = [((torch.arange(x.numel()) * 5 % 13 - 6) / 4).reshape(x.shape).to(x.device, x.dtype) for x in results]
    return torch.autograd.grad(results, leaves, weights, create_graph=True, allow_unused=True)
"""


def program(case: Case, device: str) -> str:
    """The source text of a case."""
    call = case.call
    lines = [
        f"# case {case.number}: {case.subject.name}, {call.stage}",
        "import torch",
        "import torch.nn.functional as F",
        "import torch_dml",
    ]
    if any(tensor.untyped_storage().nbytes() // tensor.element_size() > MAX_ELEMENTS for tensor in call.tensors()):
        lines += [
            "from tests.fuzz.cases import make",
            "",
            f"call = make({case.number}).call",
            "args, kwargs = call.args, call.kwargs",
        ]
    else:
        lines += ["", 'inf, nan = float("inf"), float("nan")', f"args = {source(call.args)}"]
        lines += [f"kwargs = {source(call.kwargs)}"]
    if "opinfo(" in call.function:
        lines.insert(1, OPINFO)
    lines += [MOVE]
    if call.stage != FORWARD:
        lines += [GRADIENTS]
    lines += [
        "",
        f'for device in ("cpu", "{device}"):',
        "    a, k = on(device, args), on(device, kwargs)",
        f"    torch.manual_seed({call.seed})",
        f"    result = ({call.function})(*a, **k)",
        "    print(device, result)",
    ]
    if call.stage != FORWARD:
        lines += ["    first = gradients(result, [a, k])", "    print(device, first)"]
    if call.stage == DOUBLE:
        lines += ["    print(device, gradients(first, [a, k]))"]
    return "\n".join(lines)


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
    plain = plain.conj() if plain.is_conj() else plain
    plain = torch._neg_view(plain) if plain.is_neg() else plain
    if 0 in plain.shape and plain.is_contiguous() and not storage.numel():
        text = f"torch.empty({tuple(plain.shape)}, dtype={plain.dtype})"
    elif plain.is_contiguous() and storage.numel() == plain.numel():
        text = f"torch.tensor({plain.tolist()}, dtype={plain.dtype})"
    else:
        text = (
            f"torch.tensor({storage.tolist()}, dtype={plain.dtype})"
            f".as_strided({tuple(plain.shape)}, {plain.stride()}, {plain.storage_offset()})"
        )
    text += ".conj()" if tensor.is_conj() else ""
    text = f"torch._neg_view({text})" if tensor.is_neg() else text
    return text + (".requires_grad_()" if tensor.requires_grad else "")
