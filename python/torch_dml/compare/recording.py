"""Compares every call of an operator on the device with the same call elsewhere, while the program
runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torch_dml.compare import calls, drift, judging, reproduce
from torch_dml.compare.draws import AlikeRandom
from torch_dml.compare.judging import Error, Results
from torch_dml.compare.lanes import Lane, Shadows
from torch_dml.compare.modules import Modules
from torch_dml.compare.options import Options
from torch_dml.compare.report import Call, Finding, ModuleError, Range, Report, where

EXACT = Lane("float64", torch.device("cpu"), exact=True)
CPU = Lane("cpu", torch.device("cpu"))
NUDGED = Lane("cpu, one ulp", torch.device("cpu"), nudged=True)
CUDA = Lane("cuda", torch.device("cuda"))


class Recorder(AlikeRandom):
    """The dispatch mode in which a model's steps are compared. It follows the program until the
    report has all steps.
    """

    def __init__(self, device: torch.device, report: Report, options: Options) -> None:
        """Compare nothing before `begin`."""
        super().__init__(device, options.seed)
        self.report = report
        self.options = options
        self.step = 1
        self.in_optimizer = False
        self._model: nn.Module | None = None
        self._modules: Modules | None = None
        self._own = [EXACT, CPU]
        if device.type != "cuda" and torch.cuda.is_available():
            self._own.append(CUDA)
        self._shadows: list[Shadows] = []
        self._device_name = device.type
        # Calls inside of an operator or of this class are not compared.
        self._inside = False

    def begin(self, model: nn.Module, *, running: bool = False) -> None:
        """Compare from now on; `running` means that the model's call has already begun."""
        weights = {one.untyped_storage()._cdata for one in model.parameters()}
        lanes = [*self._own, NUDGED] if self.options.accumulated else []
        self._shadows = [Shadows(lane, weights) for lane in lanes]
        self._model = model
        with self.uncompared():
            for weight in [*model.parameters(), *model.buffers()]:
                for shadows in self._shadows:
                    shadows.of(weight)
        self._modules = Modules(model, self._module_finished, running=running)

    def close(self) -> None:
        """Remove the hooks from the model."""
        if self._modules is not None:
            self._modules.remove()

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a call on the device, and compare it."""
        name = calls.base_name(func)
        given = calls.tensors((args, kwargs))
        if (
            self._inside
            or self._modules is None
            or func.is_view
            or name in calls.UNWRITTEN
            or name == "_local_scalar_dense"
        ):
            return func(*args, **kwargs)
        if any(one.layout != torch.strided for one in given):
            self._note(f"{func}: sparse tensors are not compared")
            return func(*args, **kwargs)
        phase, module = self._modules.current()
        if self.in_optimizer and not phase:
            phase = "step"
        call = Call(len(self.report.calls), self.step, phase, module, str(func), calls.shapes(args, kwargs))
        self.report.calls.append(call)
        with self.uncompared():
            return self._compared(call, func, args, kwargs, sum(one.numel() for one in given))

    def optimizer_begins(self) -> None:
        """Compare the gradients, before the optimizer uses them."""
        self.in_optimizer = True
        if self.step == 1 and self._model is not None:
            for name, parameter in self._model.named_parameters():
                if parameter.grad is not None and parameter.grad.layout == torch.strided:
                    self._keep_errors(name, "gradient", [parameter.grad])

    def optimizer_ends(self) -> None:
        """Compare the weights, and begin the next step."""
        self.in_optimizer = False
        if self._shadows and self._model is not None:
            with self.uncompared():
                weights = self._model.named_parameters()
                self.report.drift.append(drift.after(self.step, weights, self._device_name, self._shadows))
        self.step += 1
        if self._modules is not None:
            self._modules.restart()

    @contextmanager
    def uncompared(self) -> Iterator[None]:
        """Calls in here are not part of the program."""
        before = self._inside
        self._inside = True
        try:
            with torch.no_grad():
                yield
        finally:
            self._inside = before

    def _compared(self, call: Call, func: Any, args: Any, kwargs: Any, elements: int) -> Any:
        small = elements <= self.options.max_elements
        before_args, before_kwargs = calls.mapped(_snapshot, args, kwargs) if small else (args, kwargs)
        again: Results = []
        if self.options.repeat and small:
            again_args, again_kwargs = calls.mapped(_clone, args, kwargs)
            made = func(*again_args, **again_kwargs)
            again = [_host(one) for one in calls.results(func, again_args, again_kwargs, made)]
        # Shadows of the inputs have to exist before they are written: unknown ones are copied from
        # the device.
        lanes = self._in_lanes(call, func, args, kwargs)
        out = func(*args, **kwargs)
        made_here = calls.results(func, args, kwargs, out)
        for shadows, values in lanes:
            self._put(shadows, made_here, values)
        if not small:
            call.note = f"more than {self.options.max_elements:,} elements"
            return out
        got = [_host(one) for one in made_here]
        self._judge(call, func, before_args, before_kwargs, got)
        if again:
            call.repeats = all(_same_bits(one, other) for one, other in zip(got, again, strict=True))
            if not call.repeats and self.report.unlike is None:
                self.report.unlike = call
        self._accumulated(call.accumulated, made_here, got)
        return out

    def _judge(self, call: Call, func: Any, args: Any, kwargs: Any, got: Results) -> None:
        made: dict[str, Results] = {}
        for lane in self._own:
            try:
                made[lane.name] = [_host(one) for one in lane.call(func, args, kwargs, lane.copy)]
            except Exception as failure:  # Of any type: some operators are a device's alone.
                if lane is CUDA:
                    continue
                call.note = f"{lane.name} has no such operator: {_brief(failure)}"
                return
        exact = made.pop(EXACT.name)
        for name, results in [(self._device_name, got), *made.items()]:
            call.errors[name] = _errors(exact, results)

        def rounded(argument: int, number: int) -> Results:
            generator = torch.Generator().manual_seed(number)
            values = [*args, *kwargs.values()]
            moved = {id(one) for one in calls.tensors(values[argument])}

            def take(tensor: torch.Tensor) -> torch.Tensor:
                wide = EXACT.copy(tensor)
                return _rounded(wide, tensor.dtype, generator) if id(tensor) in moved else wide

            changed: Results = EXACT.call(func, args, kwargs, take)
            return changed

        wrong = judging.judge(func, args, kwargs, got, made[CPU.name], exact, rounded)
        if wrong is None:
            return
        call.wrong = str(wrong)
        if self.report.finding is None:
            script = None
            if self.options.folder is not None:
                title = f"{call.operator} {where(call)}: {wrong}"
                script = reproduce.write(Path(self.options.folder), func, args, kwargs, self._device_name, title)
            ranges = [value_range(one) for one in calls.tensors((args, kwargs))]
            self.report.finding = Finding(call, wrong, ranges, script)

    def _in_lanes(self, call: Call, func: Any, args: Any, kwargs: Any) -> list[tuple[Shadows, Results | None]]:
        """Run the call in every lane with that lane's own values; None where it failed."""
        made: list[tuple[Shadows, Results | None]] = []
        for shadows in self._shadows:
            lane = shadows.lane

            def take(tensor: torch.Tensor, shadows: Shadows = shadows) -> torch.Tensor:
                mine = tensor.device.type == self.device.type
                return shadows.of(tensor) if mine else shadows.lane.copy(tensor)

            try:
                made.append((shadows, lane.call(func, args, kwargs, take)))
            except Exception as failure:  # As in _judge.
                self._note(f"{func}: whole runs on the CPU take the device's result: {_brief(failure)}")
                made.append((shadows, None))
                for tensor in calls.written(func, args, kwargs):
                    shadows.forget(tensor)
        return made

    def _put(self, shadows: Shadows, made: Results, values: Results | None) -> None:
        for tensor, value in zip(made, values or (), strict=False):
            if tensor is None or value is None or tensor.device.type != self.device.type or not tensor.numel():
                continue
            if tensor.shape == value.shape:
                shadows.put(tensor, value)

    def _accumulated(self, into: dict[str, Error], made: Results, got: Results) -> None:
        for tensor, value in zip(made, got, strict=True):
            if tensor is None or value is None or not self._shadows or not _inexact(tensor):
                continue
            if tensor.device.type != self.device.type or not tensor.numel():
                continue
            exact = self._shadows[0].of(tensor).cpu()
            runs = {self._device_name: value} | {one.lane.name: one.of(tensor).cpu() for one in self._shadows[1:]}
            for name, run in runs.items():
                into.setdefault(name, Error()).widen(judging.error(exact, run))

    def _module_finished(self, name: str, module: nn.Module, output: Any) -> None:
        if self.step == 1 and not self._inside:
            self._keep_errors(name, type(module).__name__, calls.tensors(output))

    def _keep_errors(self, name: str, kind: str, found: list[torch.Tensor]) -> None:
        errors: dict[str, Error] = {}
        with self.uncompared():
            self._accumulated(errors, list(found), [_host(one) for one in found])
        if errors:
            self.report.modules.append(ModuleError(name, kind, errors))

    def _note(self, text: str) -> None:
        if text not in self.report.notes:
            self.report.notes.append(text)


def value_range(tensor: torch.Tensor) -> Range:
    """The range of values of a tensor."""
    text = calls.shapes((tensor,), {})
    values = tensor.detach().cpu()
    values = torch.view_as_real(values) if values.is_complex() else values
    wide = values.double()
    finite = wide[wide.isfinite()]
    tiny = torch.finfo(values.dtype).smallest_normal if values.is_floating_point() else 0.0
    return Range(
        text,
        float(finite.min()) if finite.numel() else float("nan"),
        float(finite.max()) if finite.numel() else float("nan"),
        int(wide.isnan().sum()),
        int(wide.isinf().sum()),
        int(((wide != 0) & (wide.abs() < tiny)).sum()),
        int((wide == 0).sum()),
    )


def _errors(exact: Results, got: Results) -> Error:
    largest = Error()
    for want, have in zip(exact, got, strict=False):
        if want is not None and have is not None and want.shape == have.shape and _inexact(have):
            largest.widen(judging.error(want, have))
    return largest


def _rounded(wide: torch.Tensor, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Each element changed by half a unit in its last place, up or down."""
    if not _inexact(wide):
        return wide
    up = torch.rand(wide.shape, generator=generator) < 0.5
    return wide * (1 + torch.where(up, 0.5, -0.5).double() * torch.finfo(dtype).eps)


def _inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _snapshot(leaf: Any) -> Any:
    return leaf.detach().to("cpu", copy=True) if isinstance(leaf, torch.Tensor) else leaf


def _clone(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _host(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach().cpu()


def _same_bits(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.shape != other.shape:
        return False
    return torch.equal(*(tensor.contiguous().flatten().view(torch.uint8) for tensor in (one, other)))


def _brief(failure: Exception) -> str:
    return str(failure).strip().splitlines()[0][:160] if str(failure).strip() else type(failure).__name__
