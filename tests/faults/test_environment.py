"""Environment variables with values that make no sense."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from torch_dml import environment

from tests.support.environment import ROOT
from tests.support.processes import run_python

# Read when the package is built, not when it runs.
BUILD = {"TORCH_DML_TORCH"}
PAGE = ROOT / "docs" / "reference" / "environment.md"
NONSENSE = ["nonsense!", "-1", "1e999", "\u00e9\u4e2d", "0x10"]
SOURCES = [*(ROOT / "crates").rglob("src/**/*.rs"), *(ROOT / "plugin").glob("*.cpp"), *(ROOT / "python").rglob("*.py")]


def documented() -> set[str]:
    """The variables of the table in docs."""
    return set(re.findall(r"^\| `(TORCH_DML_\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_variable_is_documented_and_checked() -> None:
    read = {name for file in SOURCES for name in re.findall(r"\bTORCH_DML_[A-Z_]+\b", file.read_text())}
    assert read == documented()
    assert documented() == set(environment.VARIABLES) | environment.REFUSED | BUILD


@pytest.mark.parametrize("name", environment.VARIABLES)
def test_which_values_make_sense(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    folder = name.endswith("_DIR")
    for value in [str(file)] if folder else NONSENSE:
        monkeypatch.setenv(name, value)
        assert environment.get(name) is None, value
        with pytest.warns(RuntimeWarning, match=f"{name}={re.escape(value)} is ignored"):
            environment.warn_of_nonsense()
    monkeypatch.setenv(name, "")
    assert environment.get(name) is None
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if f"| `{name}` |" in line)
    values = re.findall(r"`([^`]+)`" if name == "TORCH_DML_LOG" else r"`([^`]+)`:", row.split("|", 2)[2])
    for value in [str(tmp_path)] if folder else values:
        monkeypatch.setenv(name, value)
        assert environment.get(name) == value, "what the page names is understood"


def test_nonsense_in_all_of_them_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    values = {name: str(file) if name.endswith("_DIR") else "nonsense!" for name in environment.VARIABLES}
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


def test_what_is_refused_is_named() -> None:
    for name in environment.REFUSED:
        done = run_python("-c", "import torch, torch_dml; torch.ones(1, device='dml')", **{name: "nonsense!"})
        assert done.returncode != 0
        assert "nonsense!" in done.stderr, (name, done.stderr)
