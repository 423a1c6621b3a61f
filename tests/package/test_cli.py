"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch_dml
from torch_dml.cli.bench import linear, measure, peaks
from torch_dml.cli.bench.measure import Bench, Row, means

from tests.support.processes import run_python

NOWHERE = {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json"}


def python_path(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


def command(*arguments: str, timeout: float = 300, **environment: str):
    return run_python("-m", "torch_dml", *arguments, timeout=timeout, **environment)


@pytest.mark.smoke
def test_help_and_version():
    done = command("--version")
    assert done.stdout == f"torch-dml {torch_dml.__version__}\n"
    for name in ("devices", "doctor", "bench", "demo", "trace"):
        assert name in command("--help").stdout
        assert command(name, "--help").returncode == 0
    assert command("nonsense").returncode == 2
    assert command("bench", "nonsense").returncode == 2


@pytest.mark.smoke
def test_devices():
    done = command("devices", "--json")
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)
    assert [device["index"] for device in devices] == list(range(torch.dml.device_count()))
    for device in devices:
        assert device["name"] == torch.dml.get_device_name(device["index"])
        assert device["memory_total"] >= device["memory_free"] > 0
        assert {"kind", "driver", "f16", "bf16", "f64", "matrix"} <= device.keys()
    order = ["discrete", "integrated", "virtual", "software", "other"]
    kinds = [order.index(device["kind"]) for device in devices]
    assert kinds == sorted(kinds)
    table = command("devices").stdout
    for word in ("dml:0", "memory", "driver", "f16", "bf16", "f64", "matrix"):
        assert word in table


def test_devices_without_a_driver():
    done = command("devices", **NOWHERE)
    assert done.returncode == 1
    assert "/nowhere.json" in done.stderr and "doctor" in done.stderr


@pytest.mark.smoke
def test_doctor_is_content():
    done = command("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The device works." in done.stdout
    assert "FAIL" not in done.stdout
    assert "a kernel computed 1 + 2" in done.stdout
    assert f"version {torch.__version__}" in done.stdout


@pytest.mark.smoke
def test_doctor_without_a_driver():
    done = command("doctor", **NOWHERE)
    assert done.returncode == 1
    assert "FAIL  devices" in done.stdout
    for word in (
        "/nowhere.json",
        "Windows:",
        "Linux:",
        "WSL2:",
        "mesa-vulkan-drivers",
        "The device does not work here.",
    ):
        assert word in done.stdout
    assert done.stderr == ""


def test_doctor_without_libraries(tmp_path: Path):
    done = command("doctor", TORCH_DML_LIB=str(tmp_path))
    assert done.returncode == 1
    assert "FAIL  engine" in done.stdout and "FAIL  plugin" in done.stdout
    assert "ok    torch" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_with_a_broken_torch(tmp_path: Path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libtorch.so: broken on purpose')\n")
    done = command("doctor", **python_path(tmp_path))
    assert done.returncode == 1
    assert "FAIL  torch" in done.stdout and "broken on purpose" in done.stdout
    assert "a kernel computed 1 + 2" in done.stdout


def test_doctor_with_another_torch(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "from importlib import abc, machinery\n"
        "class Finder(machinery.PathFinder):\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        if name != 'torch.torch_version': return None\n"
        "        spec = machinery.PathFinder.find_spec(name, path, target)\n"
        "        run = spec.loader.exec_module\n"
        "        def changed(module):\n"
        "            run(module)\n"
        "            module.__version__ = module.TorchVersion('2.99.0')\n"
        "        spec.loader.exec_module = changed\n"
        "        return spec\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    done = command("doctor", **python_path(tmp_path))
    assert done.returncode == 1
    assert "FAIL  plugin" in done.stdout
    assert "torch 2.99.0 is installed" in done.stdout


@pytest.mark.slow
@pytest.mark.allow_fallback
def test_bench(tmp_path: Path):
    target = tmp_path / "figures.json"
    done = command("bench", "matmul", "train", "ops", "graph", "--quick", "--json", str(target), timeout=600)
    assert done.returncode == 0, done.stderr
    assert "fell back" not in done.stdout
    report = json.loads(target.read_text(encoding="utf-8"))
    assert report["fallbacks"] == {}
    assert {"dml", "cpu"} <= report["devices"].keys()
    assert {"matmul", "train", "ops", "graph"} == report["suites"].keys()
    for suite, rows in report["suites"].items():
        assert rows and all(row["values"]["dml"] > 0 for row in rows), suite
    for row in report["suites"]["matmul"] + report["suites"]["train"]:
        assert row["values"]["cpu"] > 0
        if row["unit"] == "error":
            # An element of four to eight times the root mean square is rounded to bfloat16 with an
            # error of up to 2^-6 of that.
            assert row["values"]["dml"] < (1e-5 if "float32" in row["name"] and "medium" not in row["name"] else 2e-2)
        else:
            assert row["speedup"]["cpu"] > 0


@pytest.mark.slow
@pytest.mark.allow_fallback
def test_bench_of_kernels_and_models(tmp_path: Path):
    target = tmp_path / "figures.json"
    suites = ("conv", "attention", "rows", "models", "compile")
    # No result may be missing: on a busy machine without a GPU a repeat takes long.
    arguments = ("--device", "dml", "--quick", "--limit", "120", "--json", str(target))
    done = command("bench", *suites, *arguments, timeout=600)
    assert done.returncode == 0, done.stderr
    report = json.loads(target.read_text(encoding="utf-8"))
    assert report["fallbacks"] == {}
    assert set(suites) == report["suites"].keys()
    for suite, rows in report["suites"].items():
        assert rows and all(row["values"]["dml"] > 0 for row in rows), suite


@pytest.mark.slow
def test_bench_of_layers_and_decompositions(tmp_path: Path):
    target = tmp_path / "figures.json"
    arguments = ("--device", "dml", "--device", "cpu", "--quick", "--limit", "120", "--json", str(target))
    done = command("bench", "linear", "linalg", "sparse", *arguments, timeout=600)
    assert done.returncode == 0, done.stderr
    report = json.loads(target.read_text(encoding="utf-8"))
    assert report["fallbacks"] == {}
    assert list(report["devices"]) == ["dml", "cpu"]
    for suite in ("linear", "linalg", "sparse"):
        rows = report["suites"][suite]
        assert rows and all(list(row["values"]) == ["dml", "cpu"] for row in rows), suite
        assert all(row["speedup"]["cpu"] > 0 for row in rows), suite
    assert [(mean["group"], mean["count"]) for mean in report["means"]["linear"]["cpu"]] == [
        ("float32", 8),
        ("float16", 8),
    ]
    assert "geometric mean of 8 ratios to cpu" in done.stdout


def test_layers_of_the_table_are_200_products():
    """They differ in shape or layout, and are small and large, thin and odd."""
    found = list(linear.products())
    shapes = {(product.m, product.n, product.k, product.transposed) for product in found}
    assert len(found) == len(shapes) == 200
    assert {product.transposed for product in found} == {(False, True), (False, False), (True, False)}
    assert sum(product.m == 1 for product in found) > 10 and max(product.m for product in found) > 100_000
    assert any(product.n % 8 for product in found) and any(product.k % 16 for product in found)


def test_means_are_of_rows_with_both_figures():
    rows = [
        Row("a", "TFLOP/s", more_is_better=True, values={"dml": 1.0, "cuda": 2.0}, group="half"),
        Row("b", "ms", more_is_better=False, values={"dml": 1.0, "cuda": 8.0}, group="half"),
        Row("c", "TFLOP/s", more_is_better=True, values={"dml": 1.0}, group="half"),
        Row("d", "TFLOP/s", more_is_better=True, values={"dml": 1.0, "cuda": 9.0}),
    ]
    (mean,) = means(rows, "dml", "cuda")
    assert (mean.group, mean.count, mean.worst, mean.least) == ("half", 2, "a", 0.5)
    assert mean.ratio == pytest.approx(2.0)


def test_a_figure_takes_no_longer_than_the_limit():
    calls, found = [], []
    bench = Bench([], quick=False, limit_s=0.05, tell=lambda _: None, found=found.append)
    row, cpu = Row("x", "1/s", more_is_better=True), torch.device("cpu")

    def work() -> None:
        calls.append(time.sleep(0.02))

    bench.take(row, cpu, work, 1.0)
    assert len(calls) < 2 + bench.repeats and found == [row]  # warm-up, and repeats until the limit
    calls.clear()
    assert bench.seconds(cpu, work, times=10) is None and len(calls) == 2  # compiling at the first call does not count
    calls.clear()
    slow = Row("y", "1/s", more_is_better=True)
    bench.take(slow, cpu, lambda: calls.append(time.sleep(0.06)), 1.0)
    assert len(calls) == 2 and slow.values == {}


def test_short_calls_are_repeated_until_waiting_costs_little(monkeypatch):
    """With a simulated clock, since on a busy machine a short call may take long."""
    calls: list[None] = []
    monkeypatch.setattr(measure, "time", SimpleNamespace(perf_counter=lambda: 0.0005 * len(calls)))
    bench = Bench([], quick=False, limit_s=5.0, tell=lambda _: None)
    assert bench.seconds(torch.device("cpu"), lambda: calls.append(None)) == pytest.approx(0.0005)
    assert len(calls) > 10 * bench.repeats


def test_shares_of_a_known_gpu_s_peak():
    found = peaks.peak("NVIDIA H200, NVIDIA 580.0, Vulkan 1.4")
    assert found is not None and found.of("half") == 989.4 and found.of("") is None
    assert peaks.peak("llvmpipe (LLVM 15.0.6, 256 bits)") is None


@pytest.mark.smoke
def test_demo():
    done = command("demo", "--epochs", "3", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Fallbacks to the CPU: 0" in done.stdout
    assert "Largest difference of the loss curves" in done.stdout
    assert "First training step" in done.stdout


@pytest.mark.slow
def test_demo_on_the_cpu():
    done = command("demo", "--device", "cpu", "--epochs", "1")
    assert done.returncode == 0, done.stderr
    assert command("demo", "--epochs", "0").returncode == 2
