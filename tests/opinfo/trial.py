"""All samples of a task, on the CPU and on the device, and their verdict."""

from __future__ import annotations

import random
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy
import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch_dml import fallbacks

from .execution import Outcome, execute, execute_in_float32, other_seeds, tensors
from .judging import FIRST_OUTPUT_ONLY, NAMES_ELEMENTS, OPEN, Rules, half_tolerance, is_random, tolerance
from .results import Result, Verdict
from .tasks import HALVES, Task, operators

CPU = torch.device("cpu")
# Messages of operators that lack a dtype or a case.
UNIMPLEMENTED = re.compile(
    r"Could not run '|not implemented for|is not currently (supported|implemented)|"
    r"not supported (for|on|by)|NotImplemented|does not support|Unsupported dtype",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Settings:
    """The settings of a run."""

    device: str = "dml"
    seed: int = 0
    max_samples: int = 0  # maximum number of a task's samples, evenly spread; 0: all
    backward: bool = True
    compile: bool = False  # compare compiled operators with the device's own


@dataclass(frozen=True)
class Finding:
    """The result of a sample."""

    verdict: Verdict
    message: str = ""
    checked: bool = True  # whether values were compared


def run_task(task: Task, settings: Settings) -> Result:
    """Run every sample of a task."""
    op, dtype = operators()[task.operator], task.torch_dtype
    start = time.perf_counter()
    backward = settings.backward and dtype is torch.float32 and op.supports_autograd and dtype in op.backward_dtypes
    result = Result(task, Verdict.SKIP, backward=backward)
    try:
        samples = samples_of(op, dtype, settings, backward)
    except Exception as error:
        return replace(result, message=f"samples: {_short(error, 120)}")
    rules = Rules(torch.device(settings.device), tolerance(op, dtype), values=task.operator not in OPEN)
    before = Counter(fallbacks())
    findings = []
    for sample in samples:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if settings.compile:
                findings.append(judge_compiled(op, sample, rules, settings.seed, backward))
            else:
                findings.append(judge_sample(op, sample, dtype, rules, settings.seed, backward))
    if findings:
        index = min(range(len(findings)), key=lambda index: findings[index].verdict.severity)
        worst = findings[index]
        result = replace(
            result, verdict=worst.verdict, message=f"sample {index}: {worst.message}" if worst.message else ""
        )
    return replace(
        result,
        samples=dict(Counter(finding.verdict.value for finding in findings)),
        unchecked=sum(not finding.checked for finding in findings),
        fallbacks=dict(Counter(fallbacks()) - before),
        seconds=round(time.perf_counter() - start, 2),
    )


def samples_of(op: OpInfo, dtype: torch.dtype, settings: Settings, backward: bool) -> list[SampleInput]:
    """OpInfo's samples of an operator on the CPU, or a reproducible selection of them."""
    for seed in (torch.manual_seed, numpy.random.seed, random.seed):
        seed(settings.seed)
    sample_inputs: Callable[..., Iterable[SampleInput]] = op.sample_inputs
    samples = list(sample_inputs("cpu", dtype, requires_grad=backward))
    if settings.max_samples and len(samples) > settings.max_samples:
        step = len(samples) / settings.max_samples
        samples = [samples[int(index * step)] for index in range(settings.max_samples)]
    return samples


def lacks_doubles(error: BaseException | str) -> bool:
    """Whether an adapter without float64 refuses a kernel that would be too large with doubles in
    software.
    """
    return re.search(r"needs 64-bit floating point \(float64\), which .+ does not have", str(error)) is not None


def judge_sample(
    op: OpInfo, sample: SampleInput, dtype: torch.dtype, rules: Rules, seed: int, backward: bool
) -> Finding:
    """Compare the device with the CPU.

    A half-precision result may instead agree with the CPU's in float32, to twice the error of the
    CPU's own; it has to if the CPU has no half-precision kernel.
    """
    half, want, exact = dtype in HALVES, None, None
    try:
        want = execute(op, sample, CPU, seed, backward)
        if rules.values:
            with other_seeds():
                again = execute(op, sample, CPU, seed + 1, backward=False)
            rules = replace(rules, values=not is_random(want.output, again.output))
    except Exception as error:
        if not half:
            return Finding(Verdict.SKIP, f"cpu: {_short(error, 120)}")
        want = None
    if half:
        try:
            exact = execute_in_float32(op, sample)
        except Exception as error:
            if want is None:
                return Finding(Verdict.SKIP, f"cpu: {_short(error, 120)}")
    try:
        got = execute(op, sample, rules.device, seed, backward)
        for tensor in tensors(got.output)[:1]:
            tensor.cpu()  # Pending errors of the device are raised here at the latest.
    except Exception as error:
        if lacks_doubles(error):
            return Finding(Verdict.SKIP, _short(error, 120))
        lacking = isinstance(error, NotImplementedError) or UNIMPLEMENTED.search(str(error))
        verdict = Verdict.UNIMPLEMENTED if lacking else Verdict.ERROR
        return Finding(verdict, _short(error, 240), rules.values)
    why = _forward_difference(op, sample, rules, want, exact, got)
    if why is None and want is not None:
        why = _backward_difference(rules, want, got)
    return Finding(Verdict.FAIL if why else Verdict.PASS, why or "", rules.values)


class Compiled:
    """An operator as `torch.compile` compiles it, for one sample."""

    def __init__(self, op: OpInfo) -> None:
        """Compile it when it is called."""
        self.name = op.name
        self._run = torch.compile(lambda *args, **kwargs: op(*args, **kwargs))

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run it."""
        return self._run(*args, **kwargs)


def judge_compiled(op: OpInfo, sample: SampleInput, rules: Rules, seed: int, backward: bool) -> Finding:
    """Compare an operator, compiled, with the operator itself, both on the device."""
    try:
        want = execute(op, sample, rules.device, seed, backward)
    except Exception as error:
        return Finding(Verdict.SKIP, f"eager: {_short(error, 120)}")
    try:
        torch.compiler.reset()
        warnings.filterwarnings("error", message="torch-dml cannot compile")
        got = execute(Compiled(op), sample, rules.device, seed, backward)
        why = _forward_difference(op, sample, rules, want, None, got) or _backward_difference(rules, want, got)
    except Exception as error:
        return Finding(Verdict.ERROR, _short(error, 240), rules.values)
    return Finding(Verdict.FAIL if why else Verdict.PASS, why or "", rules.values)


def _forward_difference(
    op: OpInfo, sample: SampleInput, rules: Rules, want: Outcome | None, exact: object, got: Outcome
) -> str | None:
    forward = replace(rules, first_output_only=op.name in FIRST_OUTPUT_ONLY)
    if want is None:
        why: str | None = "no CPU kernel"
    elif op.name in NAMES_ELEMENTS:
        why = rules.difference_by_elements(sample.input, want.output, got.output)
    else:
        why = forward.difference(want.output, got.output)
    if why and exact is not None:
        allowed = rules.tolerance if want is None else half_tolerance(rules.tolerance, exact, want.output)
        why = replace(forward, tolerance=allowed, dtypes=False).difference(exact, got.output)
    return f"forward {why}" if why else None


def _backward_difference(rules: Rules, want: Outcome, got: Outcome) -> str | None:
    if want.gradients is None:
        return None
    if got.gradients is None:
        return "backward: the output does not require a gradient"
    for index, (expected, actual) in enumerate(zip(want.gradients, got.gradients, strict=True)):
        if (expected is None) != (actual is None):
            return f"backward gradient {index}: only one of both is None"
        why = rules.difference(expected, actual)
        if why:
            return f"backward gradient {index}: {why}"
    return None


def _short(error: Exception, length: int) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:length]
