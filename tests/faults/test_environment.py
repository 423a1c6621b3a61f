"""Environment variables with invalid values."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest
from torch_dml import environment

from tests.support.environment import ROOT
from tests.support.processes import run_python

NONSENSE = ["nonsense!", "-1", "1e999", "\u00e9\u4e2d", "0x10"]
SOURCES = [*(ROOT / "crates").rglob("src/**/*.rs"), *(ROOT / "plugin").rglob("*.cpp"), *(ROOT / "python").rglob("*.py")]
# Any value may be valid.
ANYTHING = {name for name, variable in environment.VARIABLES.items() if variable.check is None}
JUDGED = [name for name in environment.VARIABLES if name not in ANYTHING]


def test_every_variable_is_in_the_table() -> None:
    read = {name for file in SOURCES for name in re.findall(r"\bTORCH_DML_[A-Z_]+\b", file.read_text("utf-8"))}
    assert read == set(environment.VARIABLES)
    assert {
        "TORCH_DML_PROFILE",
        "TORCH_DML_IMITATED_FAULTS",
        "TORCH_DML_PIPELINE_STATISTICS",
        "TORCH_DML_KNOWN_PIPELINES",
        "TORCH_DML_LIB",
        "TORCH_DML_TORCH",
    } == ANYTHING


def is_folder(name: str) -> bool:
    return environment.VARIABLES[name].values == "a folder"


@pytest.mark.parametrize("name", JUDGED)
def test_which_values_make_sense(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    folder = is_folder(name)
    for value in [str(file)] if folder else NONSENSE:
        monkeypatch.setenv(name, value)
        assert environment.get(name) is None, value
        with pytest.warns(RuntimeWarning, match=f"{name}={re.escape(value)} is ignored"):
            environment.warn_of_nonsense()
    monkeypatch.setenv(name, "")
    assert environment.get(name) is None
    meaning = environment.VARIABLES[name].meaning
    values = re.findall(r"`([^`]+)`" if name == "TORCH_DML_LOG" else r"`([^`]+)`:", meaning)
    for value in [str(tmp_path)] if folder else values:
        monkeypatch.setenv(name, value)
        assert environment.get(name) == value, "what the table names is understood"


def test_words_are_understood_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DML_FUSION", " Wait ")
    assert environment.get("TORCH_DML_FUSION") == "wait"


def test_a_misspelt_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DML_FUSON", "0")
    with pytest.warns(RuntimeWarning, match="TORCH_DML_FUSON is ignored: .*; there is TORCH_DML_FUSION"):
        environment.warn_of_nonsense()


def test_what_makes_sense_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TORCH_DML_FUSION", "wait")
    assert [name for name in os.environ if name.startswith("TORCH_DML_")] == ["TORCH_DML_FUSION"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environment.warn_of_nonsense()


def test_nonsense_in_all_of_them_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    values = {name: str(file) if is_folder(name) else "nonsense!" for name in JUDGED}
    code = """
import torch, torch_dml
x = torch.arange(10.0, device="dml")
y = [x * 2, x + 1]
torch._foreach_add_(y, 1)
print((y[0] + y[1]).relu().sum().item(), torch.dml.device_count())
print(torch.linalg.eigvals(torch.diag(x)).shape[0])
"""
    done = run_python("-c", code, **values)
    assert done.stdout == "165.0 1\n10\n", done.stderr
    for name in values:
        assert done.stderr.count(f"{name}={values[name]} is ignored") == 1, (name, done.stderr)


@pytest.mark.parametrize("name", ["TORCH_DML_LIB", "TORCH_DML_PROFILE"])
def test_what_a_program_cannot_run_without_is_an_error(name: str) -> None:
    done = run_python("-c", "import torch, torch_dml; torch.ones(1, device='dml')", **{name: "nonsense!"})
    assert done.returncode != 0
    assert "nonsense!" in done.stderr, done.stderr
