"""The launchers: `python -m dml_robot`, and the scripts that first make an environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dml_robot import launcher

LAUNCHERS = Path(__file__).parents[1] / "launchers"
ARGUMENTS = ["train", "--out", "a folder", "--steps", "5", "it's", '"quoted"', "*", ""]

# Stands for a virtual environment's Python: records its arguments, one per line.
RECORDER = """#!/bin/sh
for argument in "$@"; do printf '%s\\n' "$argument"; done >> "$RECORD"
case "$*" in "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; "-m pip "*) exit "${PIP_STATUS:-0}";; esac
case "$*" in "-m dml_robot"*) exit 7;; esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `python3`, and the Python it creates, record their
    arguments.
    """
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text(RECORDER)
    fake.chmod(0o755)
    return {
        "PATH": f"{fake.parent}:/usr/bin:/bin",
        "RECORD": str(tmp_path / "record"),
        "DML_ROBOT_VENV": str(tmp_path / "a venv"),
    }


def shells() -> list[list[str]]:
    found = [["sh", str(LAUNCHERS / "dml-robot.sh")]]
    if shutil.which("pwsh"):
        found.append([shutil.which("pwsh") or "", "-File", str(LAUNCHERS / "dml-robot.ps1")])
    return found


@pytest.mark.parametrize("command", shells(), ids=lambda command: Path(command[-1]).name)
def test_it_installs_once_and_passes_every_argument_on(command: list[str], machine: dict[str, str]):
    record = Path(machine["RECORD"])
    first = subprocess.run([*command, *ARGUMENTS], env=machine, capture_output=True, text=True, check=False)
    assert first.returncode == 7, first.stderr  # the status of the command itself
    venv = machine["DML_ROBOT_VENV"]
    source = str(LAUNCHERS / "..")
    installed = ["-m", "venv", venv, "-m", "pip", "install", "--quiet", source, "-m", "dml_robot", *ARGUMENTS]
    assert record.read_text().split("\n")[:-1] == installed
    record.unlink()
    second = subprocess.run([*command, "eval"], env=machine, capture_output=True, text=True, check=False)
    assert second.returncode == 7 and second.stderr == ""
    assert record.read_text() == "-m\ndml_robot\neval\n"


def test_a_failed_installation_is_done_again(machine: dict[str, str]):
    command = ["sh", str(LAUNCHERS / "dml-robot.sh"), "eval"]
    failed = subprocess.run(command, env={**machine, "PIP_STATUS": "3"}, capture_output=True, check=False)
    assert failed.returncode == 3
    again = subprocess.run(command, env=machine, capture_output=True, check=False)
    assert again.returncode == 7
    assert Path(machine["RECORD"]).read_text().count("install\n") == 2


def test_without_python_it_says_so(machine: dict[str, str]):
    command = ["/bin/sh", str(LAUNCHERS / "dml-robot.sh"), "eval"]
    found = subprocess.run(
        command, env={**machine, "DML_ROBOT_PYTHON": "no-python"}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert found.stderr.count("\n") == 1 and "no Python found as 'no-python'" in found.stderr


def test_the_scripts_for_windows_say_the_same():
    """They cannot run here: the test checks that they name the same variables and pass all
    arguments.
    """
    batch = (LAUNCHERS / "dml-robot.bat").read_bytes()
    assert batch.count(b"\r\n") == batch.count(b"\n"), "cmd.exe finds no labels in files without carriage returns"
    scripts = [batch.decode("ascii"), (LAUNCHERS / "dml-robot.ps1").read_text("ascii")]
    for script, every in zip(scripts, ("%*", "@args"), strict=True):
        for variable in ("DML_ROBOT_VENV", "DML_ROBOT_PYTHON", "DML_ROBOT_SOURCE"):
            assert variable in script
        assert f"-m dml_robot {every}" in script and "-m pip install --quiet" in script


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_module_reports_and_shows_the_help():
    found = python("-m", "dml_robot")
    assert found.returncode == 0, found.stderr
    for expected in ("system ", "processor ", "device     cpu", "packages ", "train", "eval", "export"):
        assert expected in found.stdout


def test_what_is_missing_is_named_and_not_installed_unasked(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(launcher, "required", lambda: ["torch>=2.11", "no-such-package-of-robots>=3"])
    called: list[object] = []
    monkeypatch.setattr(launcher.subprocess, "run", lambda *a, **k: called.append(a))
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    assert launcher.missing() == ["no-such-package-of-robots>=3"]
    assert launcher.main(["eval"]) == 1
    error = capsys.readouterr().err
    assert "not installed: no-such-package-of-robots>=3" in error and "pip install no-such-package" in error
    assert called == []


def test_what_the_user_has_set_stays():
    headless = {"DISPLAY": ""}
    launcher.prepare(headless)
    assert headless.get("MUJOCO_GL", "egl") == "egl"
    chosen = {"MUJOCO_GL": "osmesa"}
    launcher.prepare(chosen)
    assert chosen["MUJOCO_GL"] == "osmesa"
