"""What an operator accepts, and the strides of its results: the same as on the CPU, with every
dtype.

A task calls its operator with a few small samples of its dtype, including dtypes that OpInfo does
not list. What the CPU accepts is called again with tensors in other layouts, in place (also with
expanded and empty tensors), and with `out=` of the right dtype and others, of the right shape and
empty. Both devices have to raise the same type of exception, or to give the same values, dtypes,
shapes and strides; strides may instead be those of the meta device, on which torch.compile relies.
"""

from __future__ import annotations

import contextlib
import random
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy
import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch_dml import fallback_count

from .execution import ARGUMENTS_ON_CPU, other_seeds, tensors
from .judging import FIRST_OUTPUT_ONLY, NAMES_ELEMENTS, OPEN, Rules, Tolerance, is_random, tolerance
from .known import is_known
from .results import Result, Verdict
from .tasks import HALVES, Task, operators
from .trial import lacks_doubles

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
# Layouts are tested in one float and one integer dtype, since they do not depend on the dtype.
LAYOUT_DTYPES = (torch.float32, torch.int64)
OUT_DTYPES = (torch.float64, torch.float16, torch.int32, torch.bool)
# Number of samples, chosen among this many of OpInfo's first ones, and their maximum number of
# elements.
SAMPLES, FIRST, ELEMENTS = 2, 24, 4096
# Values are compared closely in `trial`; here the tolerance is multiplied by this.
SLACK = 10
CPU, META = torch.device("cpu"), torch.device("meta")
OVERLAP = "more than one element of the written-to tensor refers to a single memory location"


@dataclass(frozen=True)
class Case:
    """A call of a function of the sample's input and its other arguments."""

    label: str
    function: Callable[..., Any]
    input: Any
    args: Any
    kwargs: Any
    in_place: bool = False

    def __str__(self) -> str:
        named = (f"{name}={_text(value)}" for name, value in self.kwargs.items())
        return f"{self.label}({', '.join([_text(self.input), *map(_text, self.args), *named])[:160]})"


def run_acceptance(task: Task, device: str) -> Result:
    """Run every case of a task; the message has a line for each difference without a known
    reason.
    """
    op, dtype = operators()[task.operator], task.torch_dtype
    start = time.perf_counter()
    differing, count = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in _samples(op, dtype):
            for case in _cases(op, sample, dtype):
                count += 1
                # The last line that is printed names the case that ended the process.
                print(task, case, flush=True)
                why = _difference(op, case, dtype, torch.device(device))
                if why and not is_known(task, case.label, why):
                    differing.append(f"{case}: {why}")
    verdict = Verdict.FAIL if differing else Verdict.PASS if count else Verdict.SKIP
    seconds = round(time.perf_counter() - start, 2)
    return Result(task, verdict, "\n".join(differing), {"cases": count}, seconds=seconds)


def _samples(op: OpInfo, dtype: torch.dtype) -> list[SampleInput]:
    """Small samples of the dtype; if OpInfo has none, converted samples of another dtype."""
    for source in (dtype, torch.float32, torch.int64, torch.bool):
        for seed in (torch.manual_seed, numpy.random.seed, random.seed):
            seed(0)
        sample_inputs: Callable[..., Iterable[SampleInput]] = op.sample_inputs
        try:
            samples = list(islice(sample_inputs("cpu", source, requires_grad=False), FIRST))
        except Exception:  # OpInfo's own error, for a dtype that it does not expect.
            continue
        small = [sample for sample in samples if sum(t.numel() for t in tensors(_parts(sample))) <= ELEMENTS]
        step = max(1, len(small) // SAMPLES)
        chosen = small[step - 1 :: step][:SAMPLES]
        return [_cast(sample, source, dtype) for sample in chosen]
    return []


def _parts(sample: SampleInput) -> tuple[Any, Any, Any]:
    return sample.input, sample.args, sample.kwargs


def _cast(sample: SampleInput, source: torch.dtype, dtype: torch.dtype) -> SampleInput:
    first, args, kwargs = mapped(_parts(sample), lambda t: t.to(dtype) if t.dtype is source else t)
    make: Callable[..., SampleInput] = SampleInput
    return make(first, args=args, kwargs=kwargs)


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`value` with `change` applied to every tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def _strided(t: torch.Tensor) -> bool:
    return t.layout == torch.strided and not t.is_nested


def _transposed(t: torch.Tensor) -> torch.Tensor:
    return t.mT.contiguous().mT if _strided(t) and t.dim() > 1 else t


def _channels_last(t: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return t.contiguous(memory_format=formats[t.dim()]) if _strided(t) and t.dim() in formats else t


def _sliced(t: torch.Tensor) -> torch.Tensor:
    if not _strided(t) or not t.dim():
        return t
    wide = t.new_zeros(*t.shape[:-1], 2 * t.shape[-1] + 1)
    wide[..., 1::2] = t
    return wide[..., 1::2]


def _expanded(t: torch.Tensor) -> torch.Tensor:
    return t[:1].expand(t.shape) if _strided(t) and t.dim() and t.numel() else t


def _rotated(t: torch.Tensor) -> torch.Tensor:
    """The first dimension becomes the innermost in memory."""
    return t.movedim(0, -1).contiguous().movedim(-1, 0) if _strided(t) and t.dim() > 2 else t


LAYOUTS = (_transposed, _channels_last, _sliced, _expanded, _rotated)


def _cases(op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> Iterator[Case]:
    """The plain call first; the others only if the CPU accepts it, since the error of a call with
    two faults may be either.
    """
    given = _parts(sample)
    plain = Case("call", op, *given)
    yield plain
    accepted = _outcome(op, plain, CPU)
    if isinstance(accepted, Exception):
        return
    before = _strides(given)
    for change in LAYOUTS if dtype in LAYOUT_DTYPES else ():
        laid = mapped(given, change)
        if _strides(laid) != before:
            yield Case(change.__name__[1:], op, *laid)
    if op.inplace_variant is not None:
        in_place = Case("in place", op.inplace_variant, *given, in_place=True)
        yield in_place
        if not isinstance(_outcome(op, in_place, CPU), Exception) and _expanded(sample.input) is not sample.input:
            yield replace(in_place, label="in place, expanded", input=_expanded(sample.input))
            empty = sample.input.new_zeros(0, 1).expand(0, 3)
            yield replace(in_place, label="in place, empty and expanded", input=empty)
    results = accepted[0]
    if op.supports_out and isinstance(results, (torch.Tensor, tuple)) and all(map(_strided, tensors(results))):
        outs: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "": lambda t: t,
            " empty": lambda t: t.new_empty(0),
            " transposed": _transposed,
            " expanded": _expanded,
            **{f" {str(other).removeprefix('torch.')}": partial(_converted, other) for other in OUT_DTYPES},
        }
        for name, altered in outs.items():
            kwargs = {**sample.kwargs, "out": mapped(results, altered)}
            yield Case(f"out={name}", op.op, sample.input, sample.args, kwargs)


def _converted(dtype: torch.dtype, t: torch.Tensor) -> torch.Tensor:
    return t.to(dtype)


def _strides(value: Any) -> list[tuple[int, ...]]:
    return [t.stride() for t in tensors(value) if _strided(t)]


def _copy(value: Any, device: torch.device) -> Any:
    """A copy on a device, with the same strides; device arguments become that device."""
    if isinstance(value, torch.Tensor):
        x = value.detach()
        if not _strided(x) or x.is_neg() or x.is_conj():
            return x.to(device, copy=True)
        storage = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage())
        return storage.to(device, copy=True).as_strided(x.size(), x.stride(), x.storage_offset())
    if isinstance(value, torch.device) or value == "cpu":
        return device
    if isinstance(value, (list, tuple)):
        items = [_copy(item, device) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _copy(item, device) for key, item in value.items()}
    return value


def _outcome(op: OpInfo, case: Case, device: torch.device, seed: int = 0) -> Any:
    """The results, and the input if it was written; or the exception."""
    inputs = (case.input, case.args, case.kwargs)
    placeless = not tensors(inputs) and "device" not in case.kwargs
    rest = CPU if op.name in ARGUMENTS_ON_CPU else device
    first, args, kwargs = _copy(case.input, device), _copy(case.args, rest), _copy(case.kwargs, rest)
    torch.manual_seed(seed)
    try:
        with device if placeless else contextlib.nullcontext(), torch.no_grad():
            result = case.function(first, *args, **kwargs)
            if device not in (CPU, META):
                torch.get_device_module(device).synchronize()
        return [result, first if case.in_place else None]
    except Exception as error:
        return error


def _difference(op: OpInfo, case: Case, dtype: torch.dtype, device: torch.device) -> str | None:
    """The difference between the device and the CPU."""
    want = _outcome(op, case, CPU)
    fallbacks = fallback_count()
    got = _outcome(op, case, device)
    if isinstance(want, Exception) or isinstance(got, Exception):
        if type(want) is type(got) or (isinstance(got, Exception) and lacks_doubles(got)):
            return None
        # Half-precision operators that only GPUs have are accepted as on GPUs. Every operator
        # refuses to write a tensor whose elements share memory; the CPU allows some of them, in any
        # order.
        more = isinstance(want, Exception) and not isinstance(got, Exception)
        if (more and dtype in HALVES and dtype in op.dtypesIfCUDA) or (
            "expanded" in case.label and OVERLAP in str(got)
        ):
            return None
        return f"{_answer(got)}; cpu {_answer(want)}"
    allowed = tolerance(op, dtype)
    allowed = Tolerance(SLACK * allowed.absolute, SLACK * allowed.relative)
    values = op.full_name not in OPEN and op.name not in NAMES_ELEMENTS
    # PyTorch compares 8-bit floats by their bits only.
    values = values and not any("float8" in str(t.dtype) for t in tensors((case.input, want)))
    if values:
        with other_seeds():
            values = not is_random(want, _outcome(op, case, CPU, seed=1))
    rules = Rules(device, allowed, values=values, first_output_only=op.name in FIRST_OUTPUT_ONLY)
    # An operator that falls back to the CPU gets dense copies of its inputs, on which strides
    # depend.
    return rules.difference(want, got) or (
        None if fallback_count() > fallbacks else _other_strides(op, case, want, got)
    )


def _other_strides(op: OpInfo, case: Case, want: Any, got: Any) -> str | None:
    ours, theirs = _strides(got), _strides(want)
    if ours == theirs:
        return None
    planned = _outcome(op, case, META)
    if not isinstance(planned, Exception) and ours == _strides(planned):
        return None
    shapes = [tuple(t.shape) for t in tensors(want)]
    return f"strides {ours}, want {theirs} of {shapes}"


def _answer(outcome: Any) -> str:
    if isinstance(outcome, Exception):
        return f"{type(outcome).__name__}: {' '.join(str(outcome).split())}"[:160]
    return "accepts"


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_text, value))})"
    return str(value)
