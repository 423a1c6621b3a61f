"""`torch_dml.compare(model, inputs)`: runs a model's training steps, with and without comparing,
and reports.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import torch_dml
from torch_dml.backend import DEVICE
from torch_dml.compare import calls, digests, drift
from torch_dml.compare.draws import AlikeRandom
from torch_dml.compare.options import Options
from torch_dml.compare.recording import Recorder
from torch_dml.compare.report import Report
from torch_dml.trees import to_device

Loss = Callable[..., torch.Tensor]
Optimizer = torch.optim.Optimizer | Callable[..., torch.optim.Optimizer]


def compare(
    model: nn.Module,
    inputs: Any,
    loss: Loss | None = None,
    optimizer: Optimizer | None = None,
    steps: int = 1,
    *,
    targets: Any = None,
    device: torch.device | str | None = None,
    seed: int = 0,
    repeat: bool = True,
    accumulated: bool = True,
    max_elements: int = 1 << 26,
    folder: str | os.PathLike[str] | None = None,
    html: str | os.PathLike[str] | None = None,
) -> Report:
    """Compare training steps of a model on the device with the CPU's in float32 and float64.

    The model is not changed: copies of it are run. `inputs` are a tensor, a tuple or list of
    arguments, or a dictionary of named ones. `loss` is called with the output, and with `targets`
    if they are given; without `loss` it is a scalar output or the output's `.loss`, else the mean
    of the output's squares. `optimizer` is one with the model's parameters, of which a copy is
    used, or a function that creates one from parameters, such as a class or a `functools.partial`;
    without it the steps end with the backward pass, and there can be only one.

    `device` is the one to examine, "dml" by default. `seed` is for the random numbers of the model,
    which are the same in all runs. `repeat=False` does not call every operator twice;
    `accumulated=False` compares operators alone, without the whole runs in float64 and float32,
    whose copies of everything that is alive take four times the device's memory. Calls with more
    than `max_elements` input elements run, but are not compared. `folder` is for the script that
    reproduces a finding, `html` is the page to write.

    Raises ValueError if the model cannot be compared, and MemoryError if the copies do not fit.
    """
    target = torch.device(device or DEVICE)
    options = Options(seed, repeat, accumulated, max_elements, None if folder is None else os.fspath(folder))
    trial = _Trial(model, inputs, targets, loss, optimizer, steps, target)
    trial.check(accumulated)
    report = new_report(type(model).__name__, "the model that was given", target, seed, steps)
    torch_dml.reset_fallbacks()
    plain = [trial.run(AlikeRandom(target, seed)) for _ in range(2)]
    recorder = Recorder(target, report, options)
    observed = trial.run(recorder, recorder)
    report.fallbacks = torch_dml.fallbacks()
    set_runs(report, plain[0], [("a second run", plain[1]), ("the run with every operator observed", observed)])
    if loss is None:
        report.notes.append(f"the loss: {trial.loss_taken}")
    if html is not None:
        report.save_html(html)
    return report


def new_report(model: str, chosen: str, device: torch.device, seed: int, steps: int) -> Report:
    """A report without findings."""
    name = torch.dml.get_device_name(device) if device.type == DEVICE else str(device)  # type: ignore[attr-defined]
    return Report(
        model,
        chosen,
        device.type,
        name,
        torch.__version__,
        torch_dml.__version__,
        seed,
        steps,
        drift_allowed=drift.ALLOWED,
    )


def set_runs(report: Report, first: list[digests.Digests], others: list[tuple[str, list[digests.Digests]]]) -> None:
    """Record whether other runs agree with the first bit for bit."""
    report.runs_alike = True
    for name, run in others:
        different = digests.difference(first, run)
        if different is not None and report.runs_alike:
            report.runs_alike, report.runs_detail = False, f"{name} differs first in {different}"


def check_memory(model: nn.Module) -> None:
    """Raise MemoryError if the runs' copies of the weights and their gradients do not fit."""
    elements = sum(one.numel() for one in [*model.parameters(), *model.buffers()])
    wanted = 2 * elements * (8 + 4 + 4)
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if wanted > there:
        raise MemoryError(
            f"the runs in float64 and float32 need {wanted / 2**30:.1f} GiB for weights and gradients alone, "
            f"{there / 2**30:.1f} GiB are free: accumulated=False (--operators-only) does without them"
        )


@dataclass
class _Trial:
    """The model, inputs and optimizer, which can be run any number of times."""

    model: nn.Module
    inputs: Any
    targets: Any
    loss: Loss | None
    optimizer: Optimizer | None
    steps: int
    device: torch.device
    loss_taken: str = ""

    def check(self, accumulated: bool) -> None:
        """Raise ValueError if they cannot be compared."""
        parameters = list(self.model.parameters())
        if not parameters:
            raise ValueError(f"{type(self.model).__name__} has no parameters: there is nothing to train")
        if any(isinstance(one, nn.parameter.UninitializedParameter) for one in parameters):
            raise ValueError("the model has lazy modules that have not run: call it once before")
        if self.steps < 1:
            raise ValueError("steps must be at least 1")
        if self.steps > 1 and self.optimizer is None:
            raise ValueError("several steps need an optimizer")
        places = {one.device for one in calls.tensors((self.inputs, self.targets))}
        strange = places - {parameters[0].device, torch.device("cpu"), self.device}
        if strange := {one for one in strange if one.type != self.device.type}:
            raise ValueError(
                f"inputs are on {', '.join(map(str, strange))}, the model on {parameters[0].device}: "
                f"they have to be on the CPU, with the model, or on {self.device}"
            )
        if accumulated:
            check_memory(self.model)

    def run(self, mode: AlikeRandom, recorder: Recorder | None = None) -> list[digests.Digests]:
        """Run all steps of a copy; return the fingerprints after each."""
        model, optimizer = self._copies()
        inputs, targets = to_device((copy.deepcopy(self.inputs), self.targets), self.device)
        found = []
        torch.manual_seed(mode.seed)
        with mode:
            if recorder is not None:
                recorder.begin(model)
            try:
                for _ in range(self.steps):
                    found.append(self._step(model, optimizer, inputs, targets, recorder))
            finally:
                if recorder is not None:
                    recorder.close()
        return found

    def _step(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None,
        inputs: Any,
        targets: Any,
        recorder: Recorder | None,
    ) -> digests.Digests:
        model.zero_grad()
        output = _called(model, inputs)
        loss = self._loss(output, targets)
        if loss.requires_grad:
            loss.backward()
        if recorder is not None:
            recorder.optimizer_begins()
        if optimizer is not None:
            optimizer.step()
        if recorder is not None:
            recorder.optimizer_ends()
            with recorder.uncompared():
                return digests.of_model(model) | digests.digest([("the loss", loss)])
        return digests.of_model(model) | digests.digest([("the loss", loss)])

    def _loss(self, output: Any, targets: Any) -> torch.Tensor:
        if self.loss is not None:
            return self.loss(output) if self.targets is None else self.loss(output, targets)
        own = getattr(output, "loss", None)
        if isinstance(own, torch.Tensor):
            self.loss_taken = "the output's .loss"
            return own
        found = [one for one in calls.tensors(output) if one.is_floating_point()]
        if not found:
            raise ValueError("the output has no floating-point tensor to make a loss of: give a loss")
        if len(found) == 1 and found[0].dim() == 0:
            self.loss_taken = "the output itself"
            return found[0]
        self.loss_taken = "the mean of the output's squares, since none was given"
        return torch.stack([one.square().mean() for one in found]).sum()

    def _copies(self) -> tuple[nn.Module, torch.optim.Optimizer | None]:
        """A copy of the model on the device, and an optimizer for its parameters."""
        given = self.optimizer
        if not isinstance(given, torch.optim.Optimizer):
            model = copy.deepcopy(self.model).to(self.device)
            return model, None if given is None else given(model.parameters())
        # Copied together, so that the copied optimizer has the copied parameters.
        model, optimizer = copy.deepcopy((self.model, given))
        before = list(model.parameters())
        model = model.to(self.device)
        moved = {id(old): new for old, new in zip(before, model.parameters(), strict=True)}
        for group in optimizer.param_groups:
            if any(id(one) not in moved for one in group["params"]):
                raise ValueError("the optimizer has parameters that the model has not")
            group["params"] = [moved[id(one)] for one in group["params"]]
        state = {moved[id(old)]: values for old, values in optimizer.state.items()}
        optimizer.state.clear()
        for parameter, values in state.items():
            # As in Optimizer.load_state_dict: step counters stay on the CPU.
            optimizer.state[parameter] = {
                name: value if name == "step" else to_device(value, self.device) for name, value in values.items()
            }
        return model, optimizer


def _called(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)
