"""`python -m torch_dml report`, the record that it reads, and what it omits."""

from __future__ import annotations

import getpass
import json
import socket
from pathlib import Path

import pytest
import torch
import torch_dml
from torch_dml.scrub import scrub

from tests.support.processes import run_python

NOWHERE = {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json"}
# A program with a fallback to the CPU, which ends with an error that contains files and addresses.
PROGRAM = """
import torch, torch_dml, warnings
warnings.simplefilter("ignore")
torch.linalg.eigvals(torch.eye(2, device="dml"))
raise ValueError("/home/jane doe/secret.pt: no such tensor; see C:\\\\Users\\\\jane\\\\notes.txt or jane@example.org")
"""


def report(folder: Path, **environment: str) -> str:
    file = folder / "report.txt"
    variables = {"TORCH_DML_CACHE_DIR": str(folder), **environment}
    done = run_python("-m", "torch_dml", "report", "--output", str(file), **variables)
    assert done.returncode == 0, done.stderr
    text = file.read_text(encoding="utf-8")
    assert done.stdout.startswith(text), "what is written is shown"
    assert "not sent anywhere" in done.stdout
    return text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cannot open '/home/jane doe/a b.pt'", "cannot open <path>"),
        ("cannot open /home/jane/x: no", "cannot open <path> no"),
        ("C:\\Users\\jane\\x.py, line 3", "<path>, line 3"),
        ("\\\\server\\share\\x and ~/models/y and ./z", "<path> and <path> and <path>"),
        ("data/train.csv in model.safetensors", "<path> in <path>"),
        ("https://jane@example.org/x or jane@example.org from 10.0.0.17", "<address> or <address> from <address>"),
        (
            "a tensor of 2/3 in float16, Mesa 22.3.6 (LLVM 15.0.6)",
            "a tensor of 2/3 in float16, Mesa 22.3.6 (LLVM 15.0.6)",
        ),
        ("aten::add.Tensor of [2, 3] and [4]", "aten::add.Tensor of [2, 3] and [4]"),
    ],
)
def test_what_is_left_out(text: str, left: str):
    assert scrub(text) == left


def test_names_are_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "jane")
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop-7.example.org")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/jdoe"))
    assert scrub("Jane, jdoe and laptop-7: janet") == "<name>, <name> and <name>: janet"


@pytest.mark.smoke
def test_report(tmp_path: Path):
    text = report(tmp_path, TORCH_DML_FUSION="wait")
    for line in (f"torch        {torch.__version__}", f"torch-dml    {torch_dml.__version__}", "TORCH_DML_FUSION=wait"):
        assert f"  {line}\n" in text
    assert torch.dml.get_device_name(0) in text and "computed 1 + 2" in text
    assert "run on the device" in text and "not recorded" in text
    assert "TORCH_DML_CACHE_DIR is set" in text and str(tmp_path) not in text
    assert torch.dml.get_device_properties(0).uuid not in text
    assert not list(tmp_path.glob("last-run*")), "making a report records nothing"


def test_report_without_a_driver(tmp_path: Path):
    text = report(tmp_path, **NOWHERE)
    assert "VK_DRIVER_FILES is set" in text and "nowhere" not in text


def test_nothing_is_recorded_until_asked(tmp_path: Path):
    run_python("-c", PROGRAM, TORCH_DML_CACHE_DIR=str(tmp_path))
    assert not list(tmp_path.glob("last-run*"))


@pytest.mark.slow
def test_record_of_the_last_run(tmp_path: Path):
    asked = {"TORCH_DML_RECORD": "1", "TORCH_DML_CACHE_DIR": str(tmp_path)}
    done = run_python("-c", PROGRAM, **asked)
    assert "no such tensor" in done.stderr, "the error is shown as ever"
    (file,) = tmp_path.glob("last-run*")
    assert "jane" not in file.read_text(encoding="utf-8")
    text = report(tmp_path, TORCH_DML_RECORD="1")
    assert "ended with ValueError: " in text and "no such tensor" in text
    assert "ran on the CPU: aten::_linalg_eigvals (1)" in text
    assert "jane" not in text and "secret" not in text
    # The next run replaces it.
    run_python("-c", "import torch, torch_dml; torch.ones(2, device='dml')", **asked)
    last = json.loads(file.read_text(encoding="utf-8"))
    assert (last["error"], last["fallbacks"]) == (None, {})


def test_a_program_does_not_fail_for_want_of_its_record(tmp_path: Path):
    (tmp_path / "file").touch()
    program = "import torch, torch_dml; print(torch.ones(2, device='dml').sum().item())"
    # Independent of the cache folder of a run of all tests.
    where = str(tmp_path / "file")
    variables = {"TORCH_DML_CACHE_DIR": "", "XDG_CACHE_HOME": where, "LOCALAPPDATA": where}
    done = run_python("-c", program, TORCH_DML_RECORD="1", **variables)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr
    assert done.stderr.count("no record of this run") == 1
