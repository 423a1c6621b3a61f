"""Compares the model that a script trains, while the script runs unchanged.

The script runs twice, each time until the model has done its steps: once without comparing, which
finds which model is trained and how its weights change, and once with comparing.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import torch_dml
from torch_dml.compare import calls, digests, watching
from torch_dml.compare.draws import AlikeRandom
from torch_dml.compare.options import Options
from torch_dml.compare.recording import Recorder
from torch_dml.compare.report import Report
from torch_dml.compare.running import check_memory, new_report, set_runs


class _Finished(BaseException):
    """The steps are done. Not an Exception, since scripts catch those."""


class _Session:
    """One run of the script: which modules are called, which one is trained, and the weights after
    each step.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.called: list[nn.Module] = []  # modules that no other module called, in order
        self.stepped: torch.optim.Optimizer | None = None
        self.model: nn.Module | None = None
        self.start: digests.Digests = {}  # of the weights and inputs of the model's first call
        self.after: list[digests.Digests] = []
        self._firsts: dict[int, digests.Digests] = {}
        self._depth = 0

    def begins(self, module: nn.Module, inputs: Any) -> None:
        """A module is called."""
        self._depth += 1
        if self._depth > 1 or next(module.parameters(), None) is None:
            return
        if not any(module is one for one in self.called):
            self.called.append(module)
            given = [(f"input {number}", one) for number, one in enumerate(calls.tensors(inputs))]
            self._firsts[id(module)] = digests.of_model(module) | digests.digest(given)
            self.first_call(module)

    def ends(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """A module has returned, or raised."""
        self._depth -= 1

    def optimizer_begins(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """An optimizer is about to change weights."""
        if self.model is None:
            self.stepped = optimizer
            held = {id(one) for group in optimizer.param_groups for one in group["params"]}
            trained = [one for one in self.called if any(id(weight) in held for weight in one.parameters())]
            self.model = next(iter(trained), None)
            if watching.named:
                self.model = watching.named[0]

    def optimizer_ends(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """An optimizer has changed weights."""
        if self.model is None or not self.changes(optimizer):
            return
        self.after.append(digests.of_model(self.model))
        if len(self.after) >= self.steps:
            raise _Finished

    def changes(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether an optimizer holds weights of the model."""
        mine = {id(one) for one in self.model.parameters()} if self.model is not None else set()
        return any(id(one) in mine for group in optimizer.param_groups for one in group["params"])

    def first_call(self, module: nn.Module) -> None:
        """A module is called for the first time, and not by another module."""

    def begun(self, model: nn.Module) -> digests.Digests:
        """The fingerprints of a model's weights and inputs at its first call."""
        return self._firsts.get(id(model), {})


class _Observed(_Session):
    """The second run, in which the model that the first run found is compared."""

    def __init__(self, steps: int, number: int | None, recorder: Recorder) -> None:
        super().__init__(steps)
        self._number = number
        self._recorder = recorder

    def first_call(self, module: nn.Module) -> None:
        """Begin if it is the model's."""
        named = watching.named[0] if watching.named else None
        if module is named or (named is None and len(self.called) - 1 == self._number):
            self.model = module
            self._recorder.begin(module, running=True)

    def begins(self, module: nn.Module, inputs: Any) -> None:
        """As in the first run, but not as a part of the program."""
        with self._recorder.uncompared():
            super().begins(module, inputs)

    def optimizer_begins(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Compare the gradients."""
        if self.changes(optimizer):
            self._recorder.optimizer_begins()

    def optimizer_ends(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Compare the weights."""
        if self.changes(optimizer):
            self._recorder.optimizer_ends()
            with self._recorder.uncompared():
                super().optimizer_ends(optimizer)


def compare_script(program: Callable[[], object], device: torch.device, steps: int, options: Options) -> Report:
    """Run a program twice and compare its model. Raises RuntimeError if it cannot be compared."""
    torch_dml.load()
    plain = _Session(steps)
    mode = AlikeRandom(device, options.seed)
    failure = _run(program, plain, mode, options.seed)
    model = plain.model or next(iter(watching.named or plain.called), None)
    if failure is not None and not plain.after:
        raise RuntimeError(f"the script failed: {type(failure).__name__}: {failure}") from failure
    if model is None:
        raise RuntimeError(
            f"the script called no module with parameters{'' if plain.stepped is None else ' that it trains'}: "
            "name the model with torch_dml.compare.watch(model)"
        )
    place = next(model.parameters()).device
    if place.type != device.type:
        raise RuntimeError(
            f"the script's {type(model).__name__} is on {place}, so nothing of it runs on {device.type}: "
            f'have the script put model and inputs on "{device.type}"'
        )
    if options.accumulated:
        check_memory(model)
    report = new_report(type(model).__name__, _why(plain, model), device, options.seed, steps)
    number = next((number for number, one in enumerate(plain.called) if one is model), None)
    begun, after = plain.begun(model), plain.after
    del plain, model  # Free the memory of the first run's model for the second run.
    torch_dml.reset_fallbacks()
    recorder = Recorder(device, report, options)
    observed = _Observed(steps, number, recorder)
    with contextlib.redirect_stdout(io.StringIO()):  # The output has already been printed.
        failure = _run(program, observed, recorder, options.seed)
    report.fallbacks = torch_dml.fallbacks()
    if observed.model is None:
        raise RuntimeError(
            "the script did not call the model again when it ran for the second time: seed what it draws"
        )
    if failure is not None:
        report.notes.append(f"the script failed after {len(after)} steps: {type(failure).__name__}: {failure}")
    report.steps = len(observed.after)
    unlike = digests.difference([begun], [observed.begun(observed.model)])
    if unlike is not None:
        report.notes.append(
            "the script does not begin alike in two runs, so that runs are not compared bit for bit: "
            f"{unlike.removeprefix('step 1: ')} differ at the model's first call; seed what it draws"
        )
    elif after:
        set_runs(report, after, [("the run with every operator observed", observed.after)])
    return report


def _why(session: _Session, model: nn.Module) -> str:
    if any(model is one for one in watching.named):
        return "the script named it with torch_dml.compare.watch"
    if session.stepped is not None:
        return f"the first module that was called and has weights that {type(session.stepped).__name__} changes"
    return "no optimizer made a step; it is the first module that was called"


def _run(program: Callable[[], object], session: _Session, mode: AlikeRandom, seed: int) -> BaseException | None:
    """Run to the end of the steps or of the program; return what it raised."""
    watching.named.clear()
    _seed(seed)
    arguments, path = list(sys.argv), list(sys.path)
    try:
        with _hooks(session), mode:
            program()
    except _Finished:
        return None
    except SystemExit as end:
        return None if not end.code else end
    except Exception as failure:
        return failure
    finally:
        sys.argv[:], sys.path[:] = arguments, path
        if isinstance(mode, Recorder):
            mode.close()
    return None


@contextlib.contextmanager
def _hooks(session: _Session) -> Iterator[None]:
    handles = [
        register_module_forward_pre_hook(session.begins),
        register_module_forward_hook(session.ends, always_call=True),
        register_optimizer_step_pre_hook(session.optimizer_begins),
        register_optimizer_step_post_hook(session.optimizer_ends),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _seed(seed: int) -> None:
    """Seed the generators that scripts draw from without seeding."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
