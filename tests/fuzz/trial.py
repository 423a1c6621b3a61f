"""One case on the device and on the CPU, and what differs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import torch
from torch_dml import fallback_count
from torch_dml.device import get_device_properties

from ..opinfo.judging import OPEN, named
from ..opinfo.trial import UNIMPLEMENTED
from . import cases, samples
from .calls import Call, Variant, execute
from .judging import Difference, Rules
from .outcome import Error, Flat, Outcome
from .reference import Reference, ReferenceFailed

# What came of a case that shows no difference.
SAME, SKIPPED, RANDOM = "same", "skipped", "random"
CPU_FAILED = "cpu failed"
# Operators whose last result holds indices of elements, any one of several equal ones.
NAMES_ELEMENTS = {"argsort", "kthvalue", "sort", "topk", "mode", "median", "nanmedian", "msort"}
# Operators whose further results are each backend's own.
FIRST_OUTPUT_ONLY = {"log_sigmoid_forward", "_native_batch_norm_legit", "native_batch_norm", "_batch_norm_with_update"}
# Functions that have zeros or tails near which their terms cancel: docs/numerics.md.
CANCELS = re.compile(r"lgamma|digamma|polygamma|zeta|igamma|bessel_[jy]|airy")
OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemory", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """What came of a case: one of the above, or a kind of difference."""

    number: int
    operator: str
    dtype: str
    kind: str
    message: str = ""
    others: tuple[str, ...] = ()  # further kinds of difference

    @property
    def differs(self) -> bool:
        """Whether the device did something else than the CPU."""
        return self.kind not in (SAME, SKIPPED, RANDOM)


def run_case(number: int, device: torch.device, reference: Reference) -> Finding:
    """Run the case of a number, and compare."""
    try:
        case = cases.make(number)
    except samples.NoSamples as error:
        return Finding(number, cases.subject(number).name, "", SKIPPED, str(error))
    finding = Finding(number, case.subject.name, case.call.dtype, SAME)
    try:
        reference.ask(number, Variant())
        got = run_device(case.call, device)
        want = reference.answer()
        difference = judge(case, want, got, reference, flushes(device))
    except ReferenceFailed as failure:
        return replace(finding, kind=CPU_FAILED, message=str(failure))
    return replace(finding, kind=difference[0].kind, message=difference[0].message, others=_others(difference))


def flushes(device: torch.device) -> bool:
    """Whether sums and products of the device may flush subnormal numbers."""
    return device.type == "dml" and not get_device_properties(device).subnormals


def run_device(call: Call, device: torch.device) -> Outcome:
    """Run a call on the device, counting what fell back to the CPU."""
    before = fallback_count()
    outcome = execute(call, device)
    outcome.fallbacks = fallback_count() - before
    return outcome


def _others(found: list[Difference]) -> tuple[str, ...]:
    return tuple(sorted({difference.kind for difference in found} - {found[0].kind}))


def judge(
    case: cases.Case, want: Outcome, got: Outcome, reference: Reference, flushes: bool = False
) -> list[Difference]:
    """What differs, the most telling first; at least one, which may be none. `flushes`: as of Rules."""

    def run(variant: Variant) -> Outcome:
        reference.ask(case.number, variant)
        return reference.answer()

    if got.fallbacks:
        return [Difference("fallback", f"{got.fallbacks} operators ran on the CPU")]
    if want.error or got.error:
        return [_errors(want.error, got.error)]
    if case.subject.base in FIRST_OUTPUT_ONLY:
        want, got = (replace(one, results=one.results[:1], storages=[]) for one in (want, got))
    rules = Rules(
        run,
        case.subject.is_pointwise(),
        values=case.subject.name not in OPEN,
        strides=not _converts(case.call, want),
        cancels=CANCELS.search(case.subject.name) is not None,
        precision=case.call.precision,
        flushes=flushes,
    )
    found = list(rules.differences(want, got))
    if found and case.subject.base in NAMES_ELEMENTS and case.call.kwargs.get("stable") is not True:
        found = [difference for difference in found if not _of_ties(difference, case.call, want, got)]
    if any(_of_values(difference) for difference in found):
        again = run(Variant(reseeded=True))
        if _data(again) != _data(want):
            found = list(replace(rules, values=False).differences(want, got))
            return found or [Difference(RANDOM, "")]
    return found or [Difference(SAME, "")]


def _converts(call: Call, want: Outcome) -> bool:
    """Whether inputs are first converted to another dtype: then the CPU's strides are those of the converted ones."""
    results = {result.dtype for result in want.results[:1] if isinstance(result, Flat)}
    return len({tensor.dtype for tensor in call.tensors()} | results - {torch.bool}) > 1


def _of_ties(difference: Difference, call: Call, want: Outcome, got: Outcome) -> bool:
    """Whether only the indices of equal elements differ."""
    expected, actual = want.results[-1], got.results[-1]
    if not isinstance(expected, Flat) or not isinstance(actual, Flat) or expected.shape != actual.shape:
        return False
    if difference.kind not in ("value", "argument: value") or "inf" in difference.message:
        return False
    if difference.kind == "value" and not difference.message.startswith(f"results {len(want.results) - 1}:"):
        return False
    source = call.tensors()[0]
    if source.dim() == 0:
        return True
    if expected.data == actual.data or len(expected.shape) not in (source.dim(), source.dim() - 1):
        return False
    pairs = zip(*(named(source, flat.values.reshape(flat.shape)) for flat in (expected, actual)), strict=True)
    return any(a is not None and b is not None and bool(((a == b) | (a.isnan() & b.isnan())).all()) for a, b in pairs)


def _of_values(difference: Difference) -> bool:
    return difference.kind.rpartition(": ")[2] in ("value", "nan", "infinity", "zero sign", "subnormal")


def _data(outcome: Outcome) -> list[bytes | float | None]:
    return [one.data if isinstance(one, Flat) else one for one in (*outcome.results, *outcome.storages)]


def _errors(want: Error | None, got: Error | None) -> Difference:
    if got is not None and OUT_OF_MEMORY.search(got.type + got.message):
        return Difference(SKIPPED, got.message)
    if want is None:
        assert got is not None
        return Difference("refused", f"{got.type}: {got.message}")
    lacking = want.type == "NotImplementedError" or UNIMPLEMENTED.search(want.message)
    if lacking:
        return Difference(SKIPPED, f"cpu: {want.message}")
    if got is None:
        return Difference("accepted", f"want {want.type}: {want.message}")
    # A dtype that is not taken may be found before or after another fault.
    if want.type != got.type and (want.type, got.type) != ("RuntimeError", "NotImplementedError"):
        return Difference("exception", f"{got.type}: {got.message}; want {want.type}: {want.message}")
    return Difference(SAME, "")
