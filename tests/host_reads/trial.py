"""An operator's calls, on the CPU and on the device, and their results."""

from __future__ import annotations

import os
import random
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch_dml import fallbacks, reset_fallbacks

from ..fuzz.outcome import Flat, flat
from ..support.late import late
from .arguments import CannotDraw, draw
from .judging import Outcome, judged
from .registry import Operator, operators

CPU = torch.device("cpu")
# How many calls that raise are tried on the device: the first ones, and one in `SPREAD` of the
# later ones.
REFUSED, SPREAD = 3, 40
# The ways in which the device is called: with the CPU's arguments, with values that arrive late,
# with some tensors on the CPU, and with gradients.
PLAIN, LATE, MIXED, GRADIENT = "plain", "late", "mixed", "gradient"
# Findings that are, or may be, reads of device memory on the host.
FATAL = ("signal", "timeout", LATE)


@dataclass(frozen=True)
class Call:
    """Draw `number` of an operator's arguments, and the CPU's outcome."""

    number: int
    want: Outcome


@dataclass(frozen=True)
class Task:
    """An operator and what to do with it."""

    operator: str
    kind: str
    start: int = 0  # the first draw to try
    calls: tuple[Call, ...] = ()  # those for the device


@dataclass(frozen=True)
class Finding:
    """What was wrong with a call on the device."""

    what: str  # signal, timeout, late; accepts, refuses, error, value
    message: str
    operator: str
    kind: str
    number: int
    way: str


@dataclass(frozen=True)
class Result:
    """The result of a task."""

    task: Task
    calls: tuple[Call, ...] = ()
    findings: tuple[Finding, ...] = ()
    fallbacks: tuple[str, ...] = ()
    ended: int | None = None  # the draw in which the process ended
    message: str = ""


def note(way: str, number: int) -> None:
    """Print what is tried, for the case that the process crashes."""
    os.write(1, f"\n[{way} {number}]".encode())


def noted(message: str) -> tuple[str, int]:
    """What was tried when the process crashed."""
    found = re.findall(r"\[(\w+) (\d+)\]", message)
    return (found[-1][0], int(found[-1][1])) if found else ("start", 0)


def moved(value: Any, move: Callable[[torch.Tensor], torch.Tensor], device: torch.device) -> Any:
    """A copy of arguments, with `move` applied to tensors."""
    if isinstance(value, torch.Tensor):
        return move(value)
    if isinstance(value, torch.device):
        return device
    if isinstance(value, torch.Generator):
        return torch.Generator(device)
    if isinstance(value, torch.UntypedStorage):
        return value.to(device=device) if device.type != "cpu" else value.clone()
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, move, device) for item in value)
    if isinstance(value, dict):
        return {moved(key, move, device): moved(item, move, device) for key, item in value.items()}
    return value


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a nested value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.items()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


def flats(value: Any) -> list[Flat | float | str | None]:
    """The returned values: tensors' elements, numbers, and type names of others."""
    if isinstance(value, torch.Tensor):
        return [flat(part) for part in _parts(value.detach())]
    if isinstance(value, dict):
        value = [item for pair in value.items() for item in pair]
    if isinstance(value, (list, tuple)):
        return [one for item in value for one in flats(item)]
    if isinstance(value, complex):
        return [value.real, value.imag]
    if value is None or isinstance(value, (bool, int, float, str)):
        return [value]
    return [type(value).__name__]


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.device.type == "meta":
        return []
    if tensor.is_nested:
        return list(tensor.unbind())  # type: ignore[no-untyped-call]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout != torch.strided:
        return [tensor.to_dense()]
    return [tensor.int_repr() if tensor.is_quantized else tensor]


def run(operator: Operator, args: list[Any], kwargs: dict[str, Any], device: torch.device, backward: bool) -> Outcome:
    """Call the operator, and wait for its results."""
    torch.manual_seed(0)
    try:
        output = operator.call(args, kwargs)
        if backward:
            wanted = [t for t in tensors(output) if t.requires_grad and t.layout == torch.strided and not t.is_nested]
            leaves = [t for t in tensors((args, kwargs)) if t.requires_grad and t.is_leaf]
            if wanted and leaves:
                torch.autograd.grad(wanted, leaves, [torch.ones_like(t) for t in wanted], allow_unused=True)
        results = flats(output)
        if device.type != "cpu":
            torch.get_device_module(device).synchronize()
        return Outcome(tuple(results))
    except Exception as error:
        return Outcome((), type(error).__name__, " ".join(str(error).split())[:300])


@dataclass(frozen=True)
class OnCpu:
    """Finds draws of arguments with which the CPU can compute."""

    tries: int
    wanted: int  # number of calls that return

    def prepare(self, task: Task) -> None:
        """Nothing to prepare."""

    def perform(self, task: Task) -> Result:
        """Draw arguments until enough are found."""
        warnings.simplefilter("ignore")
        operator = operators()[task.operator]
        done: list[Call] = []
        refused: list[Call] = []
        for number in range(task.start, self.tries):
            note("cpu", number)
            try:
                args, kwargs = draw(operator, task.kind, number)
            except CannotDraw as error:
                return Result(task, message=f"no {error}")
            except Exception:
                continue
            want = run(operator, args, kwargs, CPU, backward=False)
            if not want.error:
                done.append(Call(number, want))
            elif len(refused) < REFUSED or (number % SPREAD == 0 and len(refused) < 2 * REFUSED):
                refused.append(Call(number, want))
            if len(done) >= self.wanted:
                break
        return Result(task, (*done, *refused))

    def crashed(self, task: Task, message: str) -> Result:
        """The CPU's own kernel crashed the process."""
        return Result(task, ended=noted(message)[1], message=message)

    def timed_out(self, task: Task, message: str) -> Result:
        """The CPU's own kernel took too long."""
        return Result(task, ended=self.tries, message=message)

    def spoils(self, result: Result) -> bool:
        """Never: nothing runs on the device."""
        return False


@dataclass(frozen=True)
class OnDevice:
    """Calls operators on the device with the CPU's arguments."""

    device: str
    late: bool

    def prepare(self, task: Task) -> None:
        """Open the device."""
        warnings.simplefilter("ignore")
        torch.zeros(1, device=self.device).cpu()

    def perform(self, task: Task) -> Result:
        """Run every call, in every way."""
        operator = operators()[task.operator]
        findings: list[Finding] = []
        reset_fallbacks()
        for call in task.calls:
            got = self._run(operator, task.kind, call.number, PLAIN)
            wrong = judged(call.want, got, values=not operator.is_random)
            if wrong is not None:
                findings.append(Finding(*wrong, operator.name, task.kind, call.number, PLAIN))
            if call.want.error:
                continue
            if self.late and wrong is None:
                found = self._run(operator, task.kind, call.number, LATE)
                stale = judged(got, found, values=not operator.is_random)
                if stale is not None:
                    findings.append(Finding(LATE, stale[1], operator.name, task.kind, call.number, LATE))
            # PyTorch lets quantised CPU tensors have storages of any device.
            for way in (GRADIENT,) if operator.takes_storage else (MIXED, GRADIENT):
                self._run(operator, task.kind, call.number, way)
        return Result(task, findings=tuple(findings), fallbacks=tuple(sorted(fallbacks())))

    def _run(self, operator: Operator, kind: str, number: int, way: str) -> Outcome:
        note(way, number)
        device, stays = torch.device(self.device), random.Random(number)

        def move(tensor: torch.Tensor) -> torch.Tensor:
            if way == LATE or (way == MIXED and stays.random() < 0.5):
                return tensor
            there = tensor.to(device)
            differentiable = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            return there.requires_grad_() if way == GRADIENT and differentiable else there

        arguments = moved(draw(operator, kind, number), move, device)
        args, kwargs = late(arguments, device) if way == LATE else arguments
        return run(operator, args, kwargs, device, backward=way == GRADIENT)

    def crashed(self, task: Task, message: str) -> Result:
        """The kind of failure that this searches for."""
        return self._ended(task, "signal", message)

    def timed_out(self, task: Task, message: str) -> Result:
        """No operator takes so long, so this is a hang."""
        return self._ended(task, "timeout", message)

    def _ended(self, task: Task, what: str, message: str) -> Result:
        way, number = noted(message)
        return Result(task, findings=(Finding(what, message, task.operator, task.kind, number, way),))

    def spoils(self, result: Result) -> bool:
        """Whether the device is lost."""
        return any("lost" in finding.message for finding in result.findings)
