"""Some of the fuzzer's cases. FUZZ_START=100000 chooses others; `make fuzz` runs as many as there
is time for.
"""

from __future__ import annotations

import math
import os

import pytest

from tests.fuzz import cases, families, known, work

START = int(os.environ.get("FUZZ_START", "0"))
# One of every `STRIDE` cases is run, so that there are more operators among them.
STRIDE, CASES = 4, 500


@pytest.mark.slow
def test_cases() -> None:
    """The device gives the CPU's results, or tests/fuzz/known explains the difference."""
    numbers = range(START, START + STRIDE * CASES, STRIDE)
    findings = list(work.run(numbers, "dml", jobs=2, timeout=120, until=math.inf))
    assert sorted(finding.number for finding in findings) == list(numbers)
    assert len({cases.subject(number).name for number in numbers}) > 100
    assert known.unexplained(findings, known.read()) == []


OF_FAMILY = {"complex": 32, "fft": 32, "sparse": 32, "linalg": 32, "random": 32}


@pytest.mark.parametrize("family", OF_FAMILY)
def test_cases_of_families(family: str) -> None:
    """The same for complex numbers, transforms, sparse tensors, decompositions and random
    numbers.
    """
    first = families.NAMES.index(family) * families.SPAN + START
    numbers = range(first, first + STRIDE * OF_FAMILY[family], STRIDE)
    findings = list(work.run(numbers, "dml", jobs=2, timeout=120, until=math.inf))
    assert sorted(finding.number for finding in findings) == list(numbers)
    assert known.unexplained(findings, known.read()) == []
