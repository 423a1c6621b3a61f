"""Random functions of tensors, for torch.compile: a list of lines, whose results stand in a list.

A case's number determines everything about it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from tests.support.dtypes import refuses_float64

Tensors = list[torch.Tensor]

FLOATS = [torch.float32, torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = [torch.int32, torch.int64, torch.int8, torch.uint8, torch.int16]
SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 17, 33, 130]

UNARY = [
    *("torch.neg(x)", "torch.abs(x)", "torch.sin(x)", "torch.tanh(x)", "torch.sigmoid(x)", "torch.relu(x)"),
    *("F.gelu(x)", "F.silu(x)", "torch.sqrt(x.abs())", "torch.rsqrt(x.abs() + 1)", "torch.log1p(x.abs())"),
    *("torch.exp(x.clamp(-3, 3))", "torch.erf(x)", "torch.square(x)", "F.leaky_relu(x, 0.1)", "F.softplus(x)"),
    *("x * 0.5", "1.5 - x", "x / 3", "x.clamp(-1, 0.75)", "torch.atan(x)", "F.hardswish(x)", "F.elu(x)"),
]
# Not continuous: only of values that are the same in both.
STEPS = ["torch.floor(x)", "torch.round(x)", "torch.sign(x)", "torch.trunc(x)", "x.frac()", "torch.ceil(x)"]
BINARY = [
    *("x + y", "x - y", "x * y", "x / (y.abs() + 1)", "torch.maximum(x, y)", "torch.minimum(x, y)"),
    *("torch.hypot(x, y)", "torch.lerp(x, y, 0.25)", "torch.add(x, y, alpha=0.5)", "torch.addcmul(x, y, y, value=0.5)"),
]
BINARY_STEPS = [
    *("torch.where(x > y, x, y * 2)", "torch.fmod(x, y.abs() + 1)", "torch.copysign(x, y)", "torch.atan2(x, y)"),
    *("torch.remainder(x, y.abs() + 0.5)", "torch.floor_divide(x, y.abs() + 1)", "(x == y).to(x.dtype)"),
]
OF_INTEGERS = [
    *("x + y", "x * y", "x - y", "x & y", "x | 3", "x ^ y", "torch.maximum(x, y)", "x >> 1", "x << 2", "-x"),
    *("torch.where(x > y, x, y)", "x // 3", "x % 5", "torch.div(x, 7, rounding_mode='trunc')", "~x", "x.abs()"),
]
VIEWS = [
    *("x.flatten()", "x.unsqueeze(0)", "x.transpose(0, -1)", "x.flip(0)", "x[..., ::2]", "x[..., 1:]", "x.mT"),
    *("x.expand(3, *x.shape)", "x.roll(1, -1)", "x.reshape(-1, x.shape[-1])", "x.select(0, -1)", "x.contiguous()"),
    *(
        "F.pad(x, (1, 2))",
        "torch.cat([x, x * 2], 0)",
        "torch.stack([x, x + 1], -1)",
        "x.repeat(2, *[1] * (x.dim() - 1))",
    ),
    *(
        "x.narrow(0, 0, 1)",
        "x.diagonal(0, 0, -1)",
        "x.unfold(0, 1, 1)",
        "torch.tril(x)",
        "x.squeeze()",
        "x.ravel()[::3]",
    ),
    *("x.index_select(0, torch.arange(x.shape[0] - 1, -1, -1, device=x.device))", "x.movedim(0, -1)"),
    *("x[torch.arange(2, device=x.device) % x.shape[0]]", "x.gather(0, torch.zeros_like(x, dtype=torch.int64))"),
]
# Results that do not depend on the order of additions.
EXACT = [
    *("x.amax(-1)", "x.amin(0)", "x.amax()", "(x > 0).any(-1)", "(x > 0).sum(0)", "x.argmax(-1)", "(x > -1).all()"),
    *("x.max(0).values", "x.min(-1).indices", "torch.cummax(x, 0).values", "(x > 0).cumsum(0)"),
]
SUMS = [
    *("x.sum(-1)", "x.mean(0)", "x.sum()", "x.mean(-1, keepdim=True)", "x.var(-1, correction=0)", "x.softmax(-1)"),
    *(
        "F.layer_norm(x, x.shape[-1:])",
        "x.logsumexp(0)",
        "torch.linalg.vector_norm(x, dim=-1, keepdim=True)",
        "F.log_softmax(x, 0)",
    ),
    *("F.rms_norm(x, x.shape[-1:])", "x.cumsum(-1)", "x.sum((0, -1))", "torch.var_mean(x, 0, correction=0)[0]"),
]
PRODUCTS = ["x @ x.mT", "F.linear(x, x[..., :1, :].flatten(0, -2)[:1])", "(x @ x.mT).relu() + 1", "x.mT @ x * 0.1"]
IN_PLACE = ["x.mul_(2)", "x.add_(y)", "x[..., 0] = 1", "x.copy_(y)", "x[..., ::2] += 1", "x.clamp_(min=-1)"]


@dataclass
class Case:
    """A function and its inputs."""

    number: int
    # Whether compiled and other results have the same bits.
    exact: bool
    inputs: Tensors
    # Expressions of `t`, the list of tensors so far, each of which is appended to it.
    lines: list[str] = field(default_factory=list)
    dynamic: bool = False
    gradients: bool = False

    def function(self) -> Callable[..., Tensors]:
        """The function, compiled by Python from its text."""
        scope: dict[str, Any] = {"torch": torch, "F": F}
        exec(self.text(), scope)
        made: Callable[..., Tensors] = scope["function"]
        return made

    def text(self) -> str:
        """The function as a program."""
        body = [f"    {line}" for line in self.lines]
        return "\n".join(
            ["def function(*inputs):", "    t = list(inputs)", *body, f"    return t[{len(self.inputs)}:]"]
        )


def _line(expression: str, number: int, x: int, y: int) -> str:
    names = {"x": f"t[{x}]", "y": f"t[{y}]"}
    text = re.sub(r"\b[xy]\b(?!=)", lambda found: names[found.group()], expression)
    return text if " = " in text or "+= " in text else f"t.append({text})"


def make(number: int, device: str) -> Case:
    """The case of a number. Its lines are chosen while they run, so that each is possible."""
    choose = random.Random(number)
    torch.manual_seed(number)
    exact = choose.random() < 0.6
    inputs = []
    for _ in range(choose.randint(1, 3)):
        shape = [choose.choice(SIZES) for _ in range(choose.randint(1, 4))]
        while torch.Size(shape).numel() > 20000:
            shape.pop()
        kind = choose.random()
        if kind < 0.75 or not exact:
            inputs.append((torch.randn(shape) * 2).to(choose.choice(FLOATS if exact else FLOATS[:1])).to(device))
        elif kind < 0.95:
            inputs.append(torch.randint(0, 50, shape).to(choose.choice(INTEGERS)).to(device))
        else:
            inputs.append((torch.randn(shape) > 0).to(device))
    case = Case(number, exact, inputs, dynamic=choose.random() < 0.25)
    case.gradients = not exact and choose.random() < 0.5
    scope: dict[str, Any] = {"torch": torch, "F": F, "t": [x.clone() for x in inputs]}
    for _ in range(40):
        if len(case.lines) >= choose.randint(3, 16):
            break
        _extend(case, choose, scope)
    return case


def _extend(case: Case, choose: random.Random, scope: dict[str, Any]) -> None:
    """Add a line, if the chosen one is possible."""
    t: Tensors = scope["t"]
    # Mostly what was computed last.
    x = len(t) - 1 - min(int(choose.expovariate(0.7)), len(t) - 1)
    y = choose.randrange(len(t))
    of = t[x]
    if of.dtype == torch.bool:
        pool = ["x.to(torch.float32)", "x & y", "~x", "x.to(torch.int64)", *VIEWS[:8]]
    elif not of.dtype.is_floating_point:
        pool = choose.choice([OF_INTEGERS, OF_INTEGERS, VIEWS, ["x.float()", "x.to(torch.int8)", "x * 0.5", "x > 2"]])
    elif case.exact:
        casts = [f"x.to({dtype})" for dtype in FLOATS] + ["x.clamp(-100, 100).to(torch.int32)", "x > 0.5"]
        pool = choose.choice([UNARY, UNARY, BINARY, STEPS, BINARY_STEPS, VIEWS, VIEWS, EXACT, casts, IN_PLACE])
    else:
        pool = choose.choice([UNARY, BINARY, VIEWS, SUMS, SUMS, PRODUCTS])
    if of.dim() == 0:
        # Inductor's lowering of flip has no result for these, on any device.
        pool = [expression for expression in pool if "flip" not in expression] or UNARY
    line = _line(choose.choice(pool), len(t), x, y)
    count = len(t)
    values = [value.clone() for value in t] if "append" not in line else []
    try:
        exec(line, scope)
        new = t[count:]
        # Values beyond these are no test of anything else.
        checked = new or [t[x]]
        fine = all(value.numel() <= 200_000 for value in checked) and (
            case.exact or all(bool(value.isfinite().all()) and float(value.abs().max()) < 1e4 for value in checked)
        )
        if fine and all(value.numel() > 0 for value in checked):
            case.lines.append(line)
            return
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        pass
    del t[count:]
    for value, before in zip(t, values, strict=False):
        # An expanded tensor cannot be written; what it is a view of is among the others.
        is_same = value.shape == before.shape and value.dtype == before.dtype
        if is_same and all(size == 1 or stride != 0 for size, stride in zip(value.shape, value.stride(), strict=True)):
            value.copy_(before)


def run(case: Case) -> str | None:
    """How a case's compiled function differs from the function itself."""
    torch.compiler.reset()
    function = case.function()
    compiled = torch.compile(function, fullgraph=True, dynamic=True if case.dynamic else None)
    results = []
    for run_it in (function, compiled):
        inputs = [x.clone() for x in case.inputs]
        if case.gradients:
            inputs = [x.requires_grad_() if x.dtype.is_floating_point else x for x in inputs]
        try:
            found = run_it(*inputs)
            if case.gradients:
                total = sum(y.square().mean() for y in found if y.requires_grad)
                leaves = [x for x in inputs if x.requires_grad]
                if isinstance(total, torch.Tensor):
                    found = [
                        *found,
                        *(g for g in torch.autograd.grad(total, leaves, allow_unused=True) if g is not None),
                    ]
            results.append([y.detach().cpu() for y in (*found, *inputs)])
        except Exception as error:
            if run_it is function or refuses_float64(error):
                return None
            return f"{type(error).__name__}: {error}"[:2000]
    for index, (expected, found) in enumerate(zip(*results, strict=True)):
        why = _difference(expected, found, case.exact)
        if why is not None:
            return f"result {index}: {why}"
    return None


def _difference(expected: torch.Tensor, found: torch.Tensor, exact: bool) -> str | None:
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        return f"{found.dtype} {tuple(found.shape)}, not {expected.dtype} {tuple(expected.shape)}"
    if exact:
        same = (expected == found) | ((expected != expected) & (found != found))
        if bool(same.all()):
            return None
        at = (~same).flatten().nonzero()[0].item()
        return (
            f"{int((~same).sum())} elements differ, the first {at}: {found.flatten()[at]}, not {expected.flatten()[at]}"
        )
    one, other = expected.double(), found.double()
    scale = max(float(one.abs().max()), 1.0)
    worst = float((one - other).abs().max())
    return None if worst <= 2e-4 * scale else f"a difference of {worst} at a magnitude of {scale}"


def smallest(case: Case) -> Case:
    """The case without the lines that its difference does not need."""
    for index in reversed(range(len(case.lines))):
        fewer = Case(case.number, case.exact, case.inputs, dynamic=case.dynamic, gradients=case.gradients)
        # A line that is left out appends what it read, so that the others' numbers stay.
        left_out = "pass" if "append" not in case.lines[index] else "t.append(t[0])"
        fewer.lines = [*case.lines[:index], left_out, *case.lines[index + 1 :]]
        try:
            if run(fewer) is not None:
                case = fewer
        except Exception:
            continue
    return case
