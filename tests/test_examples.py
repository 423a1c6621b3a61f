"""The examples, and what README.md says to type."""

from __future__ import annotations

import re

import pytest
from support.environment import ROOT
from support.processes import run_python


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["linear_regression", "perceptron", "recurrence"])
def test_example_agrees_with_the_cpu(name: str):
    done = run_python(f"examples/{name}.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fallbacks to the CPU: 0" in done.stdout
    assert "largest relative difference of the final weights" in done.stdout


def test_disagreement_is_an_error():
    done = run_python("examples/linear_regression.py", "--tolerance", "-1")
    assert done.returncode == 1
    assert "differ by more than" in done.stderr


def readme_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("code", readme_blocks("python"))
def test_readme_python(code: str):
    done = run_python("-c", code, TORCH_DML_AUTOLOAD="1")  # also beside a CUDA device
    assert done.returncode == 0, done.stderr


def test_readme_commands_exist():
    text = "\n".join(readme_blocks("sh"))
    targets = set(re.findall(r"^make (\w+)", text, re.M))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target
    for command in set(re.findall(r"^python -m torch_dml (\w+)", text, re.M)):
        assert run_python("-m", "torch_dml", command, "--help").returncode == 0
    for file in set(re.findall(r"^python (\S+\.py)", text, re.M)):
        assert (ROOT / file).is_file()
