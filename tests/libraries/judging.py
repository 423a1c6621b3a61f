"""Whether a case gives the CPU's results in a mode, and known failures: known.toml."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .cases import Case
from .running import Outcome

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KNOWN = Path(__file__).with_name("known.toml")


@dataclass(frozen=True)
class Known:
    """Why cases whose name matches `cases` do not work in these modes, or which operators fall back
    in them.
    """

    why: str
    cases: str
    modes: tuple[str, ...]
    fallbacks: tuple[str, ...] = ()  # empty: the cases do not work

    def covers(self, case: Case, mode: str) -> bool:
        """Whether this is about a case in a mode."""
        return mode in self.modes and re.fullmatch(self.cases, case.name) is not None


@dataclass
class Verdict:
    """The result of a case in a mode. `fault` is empty if it works, possibly with fallbacks."""

    case: Case
    mode: str
    seconds: float
    fault: str = ""
    fallbacks: tuple[str, ...] = ()
    why: str = ""  # the reason of the fault, if it is known
    unexplained: tuple[str, ...] = ()  # fallbacks without a known reason

    @property
    def good(self) -> bool:
        """Whether there is nothing that known.toml does not explain."""
        return (not self.fault or bool(self.why)) and not self.unexplained

    def __str__(self) -> str:
        fallbacks = f"falls back: {', '.join(self.fallbacks)}" if self.fallbacks else ""
        known = f" (known: {self.why})" if self.why else ""
        return self.fault + known if self.fault else fallbacks or "works"


def read(path: Path = KNOWN) -> list[Known]:
    """Return the known failures of a TOML file."""
    return [
        Known(entry["why"].strip(), entry["cases"], tuple(entry["modes"]), tuple(entry.get("fallbacks", ())))
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("known", [])
    ]


def judge(case: Case, mode: str, reference: Outcome, found: Outcome, known: Iterable[Known]) -> Verdict:
    """Compare the outcome of a case in a mode with its outcome on the CPU."""
    about = [one for one in known if one.covers(case, mode)]
    fault = _fault(mode, reference, found)
    fallbacks = tuple(sorted(found.fallbacks))
    return Verdict(
        case,
        mode,
        found.seconds,
        fault,
        fallbacks,
        why=next((one.why for one in about if not one.fallbacks), "") if fault else "",
        unexplained=tuple(name for name in fallbacks if not any(name in one.fallbacks for one in about)),
    )


def _fault(mode: str, reference: Outcome, found: Outcome) -> str:
    if reference.error:
        return f"fails on the CPU: {reference.error}"
    if found.error:
        return found.error
    if found.device.partition(":")[0] != mode:
        return f"runs on {found.device}"
    if len(found.numbers) != len(reference.numbers):
        return f"{len(found.numbers)} numbers, the CPU has {len(reference.numbers)}"
    tolerance = reference.tolerance
    for index, (number, expected) in enumerate(zip(found.numbers, reference.numbers, strict=True)):
        if not math.isclose(number, expected, rel_tol=tolerance, abs_tol=tolerance):
            return f"number {index} is {number:.7g}, the CPU has {expected:.7g}"
    return ""


def outdated(verdicts: Iterable[Verdict], known: Iterable[Known]) -> list[str]:
    """Return the entries that no longer apply to any case; all cases must have run."""
    verdicts = list(verdicts)
    found = []
    for one in known:
        about = [verdict for verdict in verdicts if one.covers(verdict.case, verdict.mode)]
        if not one.fallbacks and not any(verdict.fault for verdict in about):
            found.append(f"{one.cases} in {', '.join(one.modes)} works: {one.why}")
        for name in one.fallbacks:
            if not any(name in verdict.fallbacks for verdict in about):
                found.append(f"{name} does not fall back in {one.cases}: {one.why}")
    return found
