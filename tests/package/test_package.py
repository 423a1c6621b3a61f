"""The package: how it loads, what it refuses, and that it does not affect other packages."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch_dml
import torch_dml_autoload
from torch_dml import engine, loader, vulkan

from tests.support.environment import ROOT

sys.path.insert(0, str(ROOT / "python" / "build_backend"))
sys.path.insert(0, str(ROOT / "scripts" / "release"))
import torch_headers
import torches
import version as build_version

from tests.support.processes import run_python

USE = "print(torch.ones(2, device='dml').sum().item())"


@pytest.mark.smoke
def test_import_torch_alone_is_enough():
    done = run_python("-W", "error", "-c", f"import torch; {USE}", TORCH_DML_AUTOLOAD="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.0\n"


@pytest.mark.smoke
@pytest.mark.parametrize("first", ["torch", "torch_dml", "torch_directml"])
def test_any_order_of_imports(first: str):
    others = "import torch_directml, torch_dml, torch"
    for setting in ("0", "1"):
        done = run_python("-W", "error", "-c", f"import {first}; {others}; {USE}", TORCH_DML_AUTOLOAD=setting)
        assert done.stdout == "2.0\n", done.stderr


@pytest.mark.parametrize("variable", ["TORCH_DEVICE_BACKEND_AUTOLOAD", "TORCH_DML_AUTOLOAD"])
def test_autoload_can_be_turned_off(variable: str):
    code = "import torch, sys; print(hasattr(torch, 'dml'), 'torch_dml' in sys.modules)"
    done = run_python("-c", code, **{variable: "0"})
    assert done.stdout == "False False\n", done.stderr


def test_broken_installation_does_not_break_torch(tmp_path: Path):
    environment = {"TORCH_DML_LIB": str(tmp_path), "TORCH_DML_AUTOLOAD": "1"}
    done = run_python("-c", "import torch; print(torch.ones(2).sum().item())", **environment)
    assert done.stdout == "2.0\n"
    assert done.stderr.count("RuntimeWarning") == 1
    assert "torch-dml did not load" in done.stderr and "doctor" in done.stderr
    done = run_python("-c", "import torch_dml", **environment)
    assert done.returncode != 0
    assert "ImportError: torch-dml has no plugin in" in done.stderr


def fake_torch(**versions: str | None) -> SimpleNamespace:
    version = SimpleNamespace(**{"cuda": None, "hip": None, "xpu": None, **versions})
    return SimpleNamespace(
        version=version, _C=SimpleNamespace(_get_privateuse1_backend_name=lambda: versions.get("name", "privateuseone"))
    )


def test_cuda_users_are_left_alone(monkeypatch: pytest.MonkeyPatch):
    has = torch_dml_autoload.has_own_accelerator
    monkeypatch.setattr(torch_dml_autoload, "nvidia_gpus", lambda: 1)
    assert has(fake_torch(cuda="13.0"))
    assert not has(fake_torch())  # a CPU build on a machine with an NVIDIA GPU
    monkeypatch.setattr(torch_dml_autoload, "nvidia_gpus", lambda: 0)
    assert not has(fake_torch(cuda="13.0"))  # PyPI's build on a machine without a GPU
    assert has(fake_torch(name="npu"))  # another backend came first


def test_hidden_nvidia_gpus_do_not_count(monkeypatch: pytest.MonkeyPatch):
    for value in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert torch_dml_autoload.nvidia_gpus() == 0


@pytest.mark.smoke
def test_plugin_of_another_torch_is_refused():
    running = torch.__version__
    for wrong in ("2.99.0", "3.0.0+cu999", "2.10.1"):
        with pytest.raises(ImportError) as error:
            loader.plugin_path(wrong)
        assert wrong in str(error.value)
        assert torch_dml.supported_torch()[-1] in str(error.value)
        # The plugin itself refuses too, in case a file was renamed.
        with pytest.raises(ImportError) as error:
            loader.initialise(loader.plugin(), wrong)
        assert wrong in str(error.value)
        assert ".".join(running.split(".")[:2]) in str(error.value)
    assert loader.plugin_path(running).is_file()
    loader.initialise(loader.plugin(), running)


def test_import_under_another_torch_names_the_versions():
    code = """
import os, torch
torch.__version__ = "2.99.1+cpu"
import torch_dml
"""
    done = run_python("-c", code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode != 0
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError: torch 2.99.1+cpu is installed")
    assert torch_dml.supported_torch()[0] in message


def test_another_backend_in_our_place_is_named():
    code = "import torch; torch.utils.rename_privateuse1_backend('npu'); import torch_dml"
    done = run_python("-c", code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert "ImportError" in done.stderr and '"npu"' in done.stderr


def test_a_foreign_engine_is_refused(tmp_path: Path):
    (tmp_path / engine.library_name()).write_bytes(b"not a library")
    code = "from torch_dml import engine; engine.library()"
    done = run_python("-c", f"import sys; sys.argv[0] = '-m'; {code}", TORCH_DML_LIB=str(tmp_path))
    assert done.returncode != 0 and "ImportError" in done.stderr


def test_one_version_number():
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "([^"]+)"', cargo, re.M)[1]
    assert build_version.read() == version
    assert importlib.metadata.version("torch-dml") == torch_dml.__version__ == version
    assert engine.version() == version


def test_one_range_of_torch():
    assert torches.of("torch>=2.11,<2.13") == ("2.11.0", "2.12.0")
    with pytest.raises(RuntimeError, match="not a range"):
        torches.of("torch>=2.11")
    # Everything that repeats the range, or its newest version, agrees.
    pages = [
        ROOT / "README.md",
        ROOT / "README.zh.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "scripts").rglob("demo.*"),
    ]
    stated = {
        page.name: re.findall(r"torch>=2[\d.]*(?:,<[\d.]+)?", page.read_text("utf-8"))
        for page in pages
        if page.is_file()
    }
    assert {text for texts in stated.values() for text in texts} == {build_version.TORCH}, stated
    if (ROOT / "Makefile").is_file():
        assert f"TORCH ?= {torches.TORCHES[-1]}\n" in (ROOT / "Makefile").read_text("utf-8")
        release = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
        assert f"torch: {list(torches.TORCHES)}".replace("'", '"') in release


def test_entry_point():
    points = importlib.metadata.entry_points(group="torch.backends")
    assert [point.value for point in points if point.name == "torch_dml"] == ["torch_dml_autoload:autoload"]


def test_no_libpython_in_the_libraries():
    for library in engine.library_folder().glob("*.so"):
        assert b"libpython" not in library.read_bytes()


def test_counters():
    assert torch_dml.fallback_count() == 0
    assert torch.dml.fallbacks() == {}


@pytest.mark.allow_fallback
def test_a_fallback_is_counted_and_warned_of_once():
    # No GPU library has a kernel for this operator.
    code = """
import warnings, torch, torch_dml
a = torch.eye(3, device="dml")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.linalg.eigvals(a), torch.linalg.eigvals(a)
print(torch_dml.fallbacks().get("aten::linalg_eig", torch_dml.fallback_count()) > 0, torch_dml.fallback_count())
print(sum("CPU" in str(w.message) and "linalg_eig" in str(w.message) for w in caught))
torch.dml.reset_fallbacks()
print(torch.dml.fallback_count(), torch.dml.fallbacks())
"""
    done = run_python("-c", code, TORCH_DML_AUTOLOAD="1")
    first, warned, reset = done.stdout.splitlines()
    assert first.startswith("True") and int(first.split()[1]) >= 2, done.stderr
    assert int(warned) >= 1
    assert reset == "0 {}"


def test_advice_for_every_system():
    for system, word in (("windows", "vulkan-1.dll"), ("linux", "libvulkan1"), ("wsl", "WSL2")):
        assert word in "\n".join(vulkan.advice(system))


def test_torch_is_found_for_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv(torch_headers.VARIABLE, raising=False)
    assert torch_headers.installed().resolve() == Path(torch.__file__).parent.resolve()
    monkeypatch.setenv(torch_headers.VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(RuntimeError, match="nothing"):
        torch_headers.find()
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv(torch_headers.VARIABLE, str(folder))
    assert torch_headers.find() == [folder]


def test_a_short_program_leaves_its_kernels_behind(tmp_path: Path) -> None:
    code = "import torch, torch_dml; print((torch.ones(3).to('dml') + 1).sum().item())"
    done = run_python("-c", code, TORCH_DML_CACHE_DIR=str(tmp_path))
    assert done.stdout.strip() == "6.0", done.stderr
    # The driver decides how much it writes.
    assert any(file.stat().st_size > 0 for file in tmp_path.rglob("*") if file.is_file())
