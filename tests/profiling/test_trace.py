"""`python -m torch_dml trace` and `bench ops --breakdown`, run as a user runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from torch_dml.cli import main

from tests.support.environment import needs_timestamps
from tests.support.processes import run_python

pytestmark = needs_timestamps

SCRIPT = """
import sys
import torch
from helper import SIZE
x = torch.ones(SIZE, SIZE, device="dml")
y = (x @ x).tanh()
print("arguments", sys.argv[1:], "main", __name__, float(y[0, 0]))
if "fail" in sys.argv: raise ValueError("on purpose")
if "exit" in sys.argv: sys.exit(3)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("SIZE = 32\n")
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def events(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


@pytest.mark.smoke
def test_trace_of_a_script(script: Path):
    target = script.parent / "out.json"
    done = run_python("-m", "torch_dml", "trace", "-o", str(target), str(script), "--epochs", "3", "-o", "x")
    assert done.returncode == 0, done.stderr
    # The script's output is unchanged.
    assert done.stdout == "arguments ['--epochs', '3', '-o', 'x'] main __main__ 1.0\n"
    for word in ("dml::tanh", "dml::gemm", "mean µs", "perfetto", "out.json"):
        assert word in done.stderr
    found = events(target)
    kernels = [e for e in found if e.get("cat") == "kernel"]
    assert {"dml::fill", "dml::tanh"} <= {e["name"] for e in kernels}
    assert all(e["ph"] == "X" and e["dur"] > 0 for e in kernels)
    operators = [e for e in found if e.get("cat") == "cpu_op" and e["name"] == "aten::mm"]
    assert operators[0]["args"]["Input Dims"] == [[32, 32], [32, 32]]
    assert {e["pid"] for e in kernels}.isdisjoint({e["pid"] for e in operators})
    assert not any(e.get("cat") == "python_function" for e in found)


def test_trace_of_a_module_with_stacks(script: Path):
    target = script.parent / "out.json"
    done = run_python(
        "-m",
        "torch_dml",
        "trace",
        "--stacks",
        "--rows",
        "1",
        "-o",
        str(target),
        "-m",
        "script",
        "exit",
        PYTHONPATH=os.pathsep.join([str(script.parent), os.environ.get("PYTHONPATH", "")]),
    )
    assert done.returncode == 3, done.stderr
    assert "more" in done.stderr
    assert any(e.get("cat") == "python_function" for e in events(target))


@pytest.mark.slow
def test_trace_of_a_script_that_fails(script: Path):
    target = script.parent / "out.json"
    done = run_python("-m", "torch_dml", "trace", "-o", str(target), str(script), "fail")
    assert done.returncode == 1
    assert "ValueError: on purpose" in done.stderr
    assert any(e.get("cat") == "kernel" for e in events(target))


def test_trace_of_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["trace", str(tmp_path / "nothing.py")]) == 1
    assert "there is no file" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["trace"])


@pytest.mark.slow
def test_breakdown(tmp_path: Path):
    target = tmp_path / "breakdown.json"
    done = run_python("-m", "torch_dml", "bench", "ops", "--breakdown", "--quick", "--json", str(target))
    assert done.returncode == 0, done.stderr
    for word in ("Python", "dispatcher", "unpacking", "shape and dtype", "allocation", "enqueue", "record", "submit"):
        assert word in done.stdout
    report = json.loads(target.read_text(encoding="utf-8"))
    assert len(report["operators"]) == 4
    for operator in report["operators"].values():
        stages = operator["stages"]
        assert sum(stages.values()) == pytest.approx(operator["total"])
        assert all(stages[name] > 0 for name in ("unpack", "shape", "lookup", "enqueue", "submit")), stages
        assert stages["record"] + operator["beside"].get("record", 0) > 0, operator
        assert operator["clock"] > 0 and operator["measuring off"] > 0
    # fill_ allocates no tensor.
    fill = report["operators"]["x.fill_(1.0), 16 elements"]
    assert fill["stages"]["allocate"] == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("wrong", [["matmul", "--breakdown"], ["--breakdown", "--device", "cpu"]])
def test_breakdown_of_something_else(wrong: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["bench", *wrong]) == 1
    assert "--breakdown is of" in capsys.readouterr().err
