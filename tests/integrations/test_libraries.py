"""Programs of other libraries, as their users write them, compared with the CPU: those whose
libraries are installed.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.libraries import cases, judging
from tests.libraries.cases import Case
from tests.libraries.judging import Known, Verdict
from tests.libraries.running import Outcome, run

KNOWN = judging.read()
CASES = cases.read()


@functools.cache
def on_cpu(case: Case) -> Outcome:
    return run(case, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "mode"),
    [pytest.param(case, mode, id=f"{case.name} {mode}") for case in CASES for mode in case.modes if mode != "cpu"],
)
def test_program_does_what_it_does_on_the_cpu(case: Case, mode: str) -> None:
    if missing := case.missing():
        pytest.skip(f"{', '.join(missing)} is not installed")
    verdict = judging.judge(case, mode, on_cpu(case), run(case, mode), KNOWN)
    assert verdict.good, str(verdict)


def test_known_speaks_of_cases() -> None:
    for known in KNOWN:
        assert any(known.covers(case, mode) for case in CASES for mode in case.modes), known


CASE = Case(Path("torch_geometric_nodes.py"), "")
REFERENCE = Outcome("cpu", [1.0, 2.0], 1e-3)


def verdict(found: Outcome, *known: Known) -> Verdict:
    return judging.judge(CASE, "dml", REFERENCE, found, known)


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (Outcome("dml:0", [1.0, 2.001]), ""),
        (Outcome("cpu", [1.0, 2.0]), "runs on cpu"),
        (Outcome("dml", [1.0]), "1 numbers, the CPU has 2"),
        (Outcome("dml", [1.0, 2.1]), "number 1 is 2.1, the CPU has 2"),
        (Outcome("dml", [1.0, float("nan")]), "number 1 is nan, the CPU has 2"),
        (Outcome(error="ValueError: no"), "ValueError: no"),
    ],
)
def test_judging(found: Outcome, fault: str) -> None:
    assert verdict(found).fault == fault
    assert verdict(found).good == (not fault)


def test_what_is_known_is_good_until_it_is_no_longer_so() -> None:
    slow = Outcome("dml", [1.0, 2.0], fallbacks={"aten::qr": 3})
    falls_back = Known("no kernel", "torch_geometric_.*", ("dml",), ("aten::qr",))
    fails = Known("a bug of theirs", "torch_geometric_nodes", ("dml",))
    assert not verdict(slow).good and verdict(slow, falls_back).good and not verdict(slow, fails).good
    assert verdict(Outcome("cpu"), fails).good and not verdict(Outcome("cpu"), falls_back).good
    works = verdict(Outcome("dml", [1.0, 2.0]))
    assert judging.outdated([works], [falls_back]) and judging.outdated([works], [fails])
    assert judging.outdated([verdict(slow)], [falls_back]) == []


def test_a_program_names_its_library_and_what_it_imports(tmp_path: Path) -> None:
    program = tmp_path / "safetensors_one.py"
    program.write_text(
        '"""One.\nmodes: cpu, cuda\narguments:\narguments: --amp x\n"""\nimport os.path\nimport nowhere.at.all\n'
    )
    plain, amp = cases.read(tmp_path)
    assert (plain.name, amp.name, plain.modes) == ("safetensors_one", "safetensors_one --amp x", ("cpu", "cuda"))
    assert plain.library == "safetensors" and plain.missing() == ["nowhere"]
    program.write_text('"""One.\nmode: cpu"""\n')
    with pytest.raises(ValueError, match="safetensors_one"):
        cases.read(tmp_path)
