"""The wheel: the systems on which its libraries load, and that it works from any folder.

Wheels in dist/ that fit this Python are tested as well; `make release` creates them.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import torch
import torch_dml
from torch_dml import engine

from tests.support.environment import ROOT
from tests.support.processes import run_python

sys.path.insert(0, str(ROOT / "scripts" / "release"))
import symbols
import trial

WHEELS = sorted((ROOT / "dist").glob(f"torch_dml-*-manylinux_*_{platform.machine()}.whl"))
PROGRAM = """
import torch, torch_dml
from torch_dml import engine
x = torch.ones(3, device="dml", requires_grad=True)
(x * 2).sum().backward()
print(x.grad.sum().item(), engine.library_folder(), torch.dml.fallbacks())
"""
# Spaces, and letters of several languages.
ODD = "J\u00e4ne D\u00f6e's \u6587\u4ef6"


def run_from(folder: Path) -> None:
    """Run a program with the package in `folder`, and check that nothing is written there."""
    files = {file for file in folder.rglob("*")}
    for file in files:
        file.chmod(0o555)
    folder.chmod(0o555)
    try:
        # torch's own folder comes last.
        path = os.pathsep.join([str(folder), str(Path(torch.__file__).parents[1])])
        done = run_python("-c", PROGRAM, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", TORCH_DML_AUTOLOAD="1")
        assert done.stdout == f"6.0 {folder / 'torch_dml' / 'lib'} {{}}\n", done.stderr
        assert {file for file in folder.rglob("*")} == files
    finally:
        for file in {folder, *files}:
            file.chmod(0o755)


def test_versions_are_read():
    text = """
Version definition section '.gnu.version_d' contains 1 entry:
  000000: Rev: 1  Flags: BASE  Index: 1  Cnt: 1  Name: GLIBC_9.9
Version needs section '.gnu.version_r' contains 2 entries:
 Addr: 0x0000000000000e38  Offset: 0x000e38  Link: 4 (.dynstr)
  000000: Version: 1  File: libc.so.6  Cnt: 2
  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 5
  0x0020:   Name: GLIBC_2.34  Flags: none  Version: 4
  0x0030: Version: 1  File: libstdc++.so.6  Cnt: 1
  0x0040:   Name: GLIBCXX_3.4.29  Flags: none  Version: 3
"""
    assert symbols.needs(text) == {"GLIBC": {(2, 2, 5), (2, 34)}, "GLIBCXX": {(3, 4, 29)}}


def test_which_tag_serves_another():
    for needed, serves in {
        "manylinux_2_17_x86_64": True,
        "manylinux_2_28_x86_64": True,
        "manylinux_2_34_x86_64": False,
        "manylinux_2_17_aarch64": False,
        "linux_x86_64": False,
    }.items():
        assert symbols.serves(needed, "manylinux_2_28_x86_64") == serves, needed


@pytest.mark.slow
def test_the_trial_takes_along_what_its_tests_read(tmp_path: Path):
    work = tmp_path / "work"
    trial.copy_tests(work)
    # A file that cannot be imported is an error, whichever of its tests are selected.
    command = [sys.executable, "-B", "-m", "pytest", "-q", "--collect-only", "-m", "smoke", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "tests"], cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.smoke
@pytest.mark.skipif(sys.platform != "linux", reason="other systems' libraries have no versions of symbols")
@pytest.mark.skipif(
    platform.libc_ver() > ("glibc", "2.36"), reason="wheels are built on Debian 12; newer headers ask for newer symbols"
)
def test_plugins_load_on_old_systems():
    # Only in a wheel is the engine linked against an old glibc; the plugins' requirements do not
    # depend on that.
    for plugin in engine.library_folder().glob("libtorch_dml_*.so"):
        found = symbols.versions(plugin)
        assert {"GLIBC", "GLIBCXX", "CXXABI"} <= found.keys(), plugin.name
        assert symbols.too_new(plugin) == [], plugin.name


@pytest.mark.slow
def test_works_from_a_folder_with_an_odd_name_that_is_read_only(tmp_path: Path):
    folder = tmp_path / ODD
    shutil.copytree(Path(torch_dml.__file__).parent, folder / "torch_dml", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "python" / "torch_dml_autoload.py", folder)
    run_from(folder)


@pytest.mark.skipif(not WHEELS, reason="no wheel in dist/: `make release` makes one")
@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
class TestWheel:
    def test_libraries_load_on_the_systems_that_it_names(self, wheel: Path, tmp_path: Path):
        with zipfile.ZipFile(wheel) as archive:
            libraries = [Path(archive.extract(name, tmp_path)) for name in archive.namelist() if name.endswith(".so")]
        assert "libdml_torch.so" in {library.name for library in libraries}
        assert {library.name: symbols.too_new(library) for library in libraries} == {
            library.name: [] for library in libraries
        }

    def test_same_for_every_python(self, wheel: Path):
        assert "-py3-none-manylinux_2_28_" in wheel.name
        with zipfile.ZipFile(wheel) as archive:
            times = {entry.date_time for entry in archive.infolist()}
            assert len(times) == 1, "the time of the commit, whenever it was built"
            assert not [name for name in archive.namelist() if "cpython" in name or name.endswith(".pyc")]

    def test_has_the_licences(self, wheel: Path):
        with zipfile.ZipFile(wheel) as archive:
            for name in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"):
                (entry,) = [entry for entry in archive.namelist() if entry.endswith(f".dist-info/licenses/{name}")]
                assert archive.read(entry) == (ROOT / name).read_bytes(), name

    def test_has_types(self, wheel: Path):
        with zipfile.ZipFile(wheel) as archive:
            types = {"torch_dml/py.typed", "torch_directml/py.typed", "torch-stubs/py.typed", "torch-stubs/dml.pyi"}
            assert types <= set(archive.namelist())

    def test_installs_anywhere(self, wheel: Path, tmp_path: Path):
        folder = tmp_path / ODD
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--target",
            str(folder),
        ]
        subprocess.run([*command, str(wheel)], check=True)
        names = {point.value for found in metadata.distributions(path=[str(folder)]) for point in found.entry_points}
        assert {"torch_dml_autoload:autoload", "torch_dml.__main__:main"} <= names
        run_from(folder)
