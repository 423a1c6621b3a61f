"""One case on the device and on the CPU, and their differences."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import torch
from torch_dml import fallbacks
from torch_dml.device import get_device_properties

from ..opinfo.judging import OPEN
from ..opinfo.trial import UNIMPLEMENTED, lacks_doubles
from . import cases, samples
from .calls import FORWARD, Call, Variant, execute
from .judging import Difference, Rules
from .memory import changes_other, stray, with_same_storages, writes_shared
from .outcome import Error, Flat, Outcome
from .reference import Reference, ReferenceFailed
from .ties import Ties

# The kinds of cases without a difference.
SAME, SKIPPED, RANDOM = "same", "skipped", "random"
CPU_FAILED = "cpu failed"
# Operators whose last result is indices of elements, any one of several equal ones.
NAMES_ELEMENTS = {"argsort", "kthvalue", "sort", "topk", "mode", "median", "nanmedian", "msort"}
# Operators that select one of several elements: for zeros of both signs the CPU's vectorised loops
# select differently than the scalar ends of rows.
SELECTS = re.compile(r"(_foreach_)?(maximum|minimum|fmax|fmin|clamp(_max|_min)?|clip|max|min|a(max|min|minmax))_?")
# Operators that fall back to the CPU for numbers that are not finite.
FACTORISATIONS = {"aten::_linalg_svd.U"}
# Operators whose further results are internal to each backend.
FIRST_OUTPUT_ONLY = {"log_sigmoid_forward", "_native_batch_norm_legit", "native_batch_norm", "_batch_norm_with_update"}
# Functions with zeros or tails near which their terms cancel: docs/reference/numerics.md.
CANCELS = re.compile(
    r"lgamma|digamma|polygamma|zeta|igamma|bessel_[jy]|airy|polynomial|addc(mul|div)|lerp|logaddexp|(silu|mish|gelu|softplus)_backward|aten::gelu"
)
# Sums of a term and a multiple of another, which the CPU rounds once or twice.
MULTIPLES = re.compile(r"aten::(add|r?sub)_?\.(Tensor|Scalar|out).*")
# Functions whose elements, or whose gradients' elements, are sums of products.
SUMS = re.compile(
    r"conv|linear|(batch|group|instance|layer|rms)_norm|attention|softm(ax|in)|cross_entropy|matmul|einsum|inner|tensordot"
    r"|multi_dot|vecdot|^(aten::)?_?((add|badd)?b?m[mv]|v?dot)"
)
# Functions of which each backend has a fused form, whose results may have any strides.
OWN_STRIDES = re.compile(r"scaled_dot_product_attention")
# The CPU's messages for bad indices, whose type of exception depends on dimensions and layouts.
BAD_INDEX = re.compile(r"out of (DATA )?bounds|out of range in self|out of range for tensor")
OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemory", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """The result of a case: one of the above, or a kind of difference."""

    number: int
    operator: str
    dtype: str
    kind: str
    message: str = ""
    others: tuple[Difference, ...] = ()  # further differences

    @property
    def differs(self) -> bool:
        """Whether the device's outcome differs from the CPU's."""
        return self.kind not in (SAME, SKIPPED, RANDOM)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All differences, including the first one."""
        return (Difference(self.kind, self.message), *self.others)


def run_case(number: int, device: torch.device, reference: Reference, again: bool = False) -> Finding:
    """Run the case of a number, and compare; again if the CPU's process crashes."""
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
        if again:
            return replace(finding, kind=CPU_FAILED, message=str(failure))
        # An earlier case may have damaged the process.
        return run_case(number, device, reference, again=True)
    return replace(finding, kind=difference[0].kind, message=difference[0].message, others=tuple(difference[1:]))


def flushes(device: torch.device) -> bool:
    """Whether sums and products of the device may flush subnormal numbers."""
    return device.type == "dml" and not get_device_properties(device).subnormals


def run_device(call: Call, device: torch.device) -> Outcome:
    """Run a call on the device, counting fallbacks to the CPU."""
    before = Counter(fallbacks())
    outcome = execute(call, device)
    outcome.fallbacks = tuple(Counter(fallbacks()) - before)
    return outcome


def judge(
    case: cases.Case, want: Outcome, got: Outcome, reference: Reference, flushes: bool = False
) -> list[Difference]:
    """The differences, the most significant first; at least one, which may be of kind SAME.
    `flushes` is as in Rules.
    """

    def run(variant: Variant) -> Outcome:
        reference.ask(case.number, variant)
        return reference.answer()

    if set(got.fallbacks) <= FACTORISATIONS and got.fallbacks:
        return [Difference(SKIPPED, f"factorised on the CPU: {', '.join(got.fallbacks)}")]
    # If the CPU raises an error too, the fallback to it is for its message.
    if got.fallbacks and not (want.error and got.error):
        return [Difference("fallback", f"ran on the CPU: {', '.join(got.fallbacks)}")]
    if want.error or got.error:
        return [_errors(want.error, got.error, case.call.stage != FORWARD)]
    if case.subject.base in FIRST_OUTPUT_ONLY:
        want, got = (replace(one, results=one.results[:1], storages=[]) for one in (want, got))
    once = _data(want)
    want, got = with_same_storages(case.call, want, got)
    rules = Rules(
        run,
        case.subject.is_pointwise(),
        values=case.subject.name not in OPEN and not leaves_range(case.call),
        strides=case.subject.strides and not (_converts(case.call, want) or OWN_STRIDES.search(case.subject.name)),
        cancels=CANCELS.search(case.subject.name) is not None,
        chooses=case.subject.base in NAMES_ELEMENTS,
        sums=SUMS.search(case.subject.name) is not None,
        zero_signs=case.subject.zero_signs and SELECTS.fullmatch(case.subject.base) is None,
        drawn=case.subject.drawn,
        multiples=_adds_multiples(case),
        precision=case.call.precision,
        flushes=flushes,
        terms=max((size for tensor in case.call.tensors() for size in tensor.shape), default=1),
    )
    found = list(rules.differences(want, got))
    if found and case.subject.base in NAMES_ELEMENTS and case.call.kwargs.get("stable") is not True:
        ties = Ties(case.call, want, got)
        found = [difference for difference in found if not ties.explain(difference)]
    if any(_of_values(difference) for difference in found) and _right_of_dense(case, rules, got):
        found = [difference for difference in found if not _of_values(difference)]
    if any(_of_values(difference) for difference in found) and writes_shared(case.call, want, got):
        found = list(replace(rules, values=False).differences(want, got))
    if any(_of_values(difference) for difference in found):
        again = run(Variant(reseeded=True))
        if _data(again) != once:
            found = list(replace(rules, values=False).differences(want, got))
            return found or [Difference(RANDOM, "")]
    return found or [Difference(SAME, "")]


def leaves_range(call: Call) -> bool:
    """Whether floats are converted to integers out of range, which is undefined in C++."""
    out = call.kwargs.get("out")
    dtype = call.kwargs.get("dtype", False)
    if dtype is None and isinstance(out, torch.Tensor):
        dtype = out.dtype  # without a conversion to another dtype there is one to that of `out=`
    if not isinstance(dtype, torch.dtype) or dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return False
    limit = 2.0 ** (63 if dtype == torch.int64 else 31)
    floats = [tensor for tensor in call.tensors() if tensor.is_floating_point()]
    return any(not bool((tensor.detach().double().abs() < limit).all()) for tensor in floats)


def _right_of_dense(case: cases.Case, rules: Rules, got: Outcome) -> bool:
    """Whether the results are those of the same numbers in contiguous tensors, for which the CPU's
    kernels are seldom wrong.
    """
    if all(tensor.is_contiguous() for tensor in case.call.tensors()) or stray(case.call, got):
        return False
    dense = replace(rules, strides=False, reference=lambda variant: rules.reference(replace(variant, dense=True)))
    want = dense.reference(Variant())
    if want.error or changes_other(case.call, want, got):
        return False
    return not any(dense.differences(*(replace(one, storages=[]) for one in (want, got))))


def _converts(call: Call, want: Outcome) -> bool:
    """Whether inputs are first converted to another dtype: then the CPU's strides are those of the
    converted ones.
    """
    results = {result.dtype for result in want.results[:1] if isinstance(result, Flat)}
    return len({tensor.dtype for tensor in call.tensors()} | results - {torch.bool}) > 1


def _adds_multiples(case: cases.Case) -> bool:
    """Whether the operator adds a multiple of one term to another."""
    multiple = "alpha" in case.call.kwargs or len(case.call.args) > 2
    return multiple and MULTIPLES.fullmatch(case.subject.name) is not None


def _of_values(difference: Difference) -> bool:
    return difference.kind.rpartition(": ")[2] in ("value", "nan", "infinity", "zero sign", "subnormal")


def _data(outcome: Outcome) -> list[bytes | float | None]:
    return [one.data if isinstance(one, Flat) else one for one in (*outcome.results, *outcome.storages)]


def _errors(want: Error | None, got: Error | None, several: bool) -> Difference:
    """The difference between errors of a call, which may be of several operators."""
    if got is not None and (OUT_OF_MEMORY.search(got.type + got.message) or lacks_doubles(got.message)):
        return Difference(SKIPPED, got.message)
    if want is None:
        assert got is not None
        return Difference("refused", f"{got.type}: {got.message}")
    # If torch reports an internal error, there is nothing to compare with.
    fault = "INTERNAL ASSERT FAILED" in want.message
    lacking = fault or want.type == "NotImplementedError" or UNIMPLEMENTED.search(want.message)
    if lacking:
        return Difference(SKIPPED, f"cpu: {want.message}")
    if got is None:
        return Difference("accepted", f"want {want.type}: {want.message}")
    # The device finds a bad index later than the CPU: another operator may raise an error first.
    if BAD_INDEX.search(want.message) and (several or BAD_INDEX.search(got.message)):
        return Difference(SAME, "")
    # An unsupported dtype may be found before or after another error.
    if want.type != got.type and (want.type, got.type) != ("RuntimeError", "NotImplementedError"):
        return Difference("exception", f"{got.type}: {got.message}; want {want.type}: {want.message}")
    return Difference(SAME, "")
