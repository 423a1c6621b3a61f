"""Installs a wheel into a fresh environment for every torch for which it has a plugin, and runs the
smoke tests there: `make test-release`, or `python scripts/release/trial.py --help`.

Only the checkout's tests are used, in a copy outside the checkout.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from rich.console import Console
from rich.table import Table
from torches import TORCHES

ROOT = Path(__file__).resolve().parents[2]
# Packages that the tests import.
NEEDED = ("numpy", "scikit-learn>=1.3", "pytest>=9", "pytest-xdist>=3", "expecttest")
# The tests and the files they read, without the package itself.
READ = (
    *("tests", "examples", "scripts", "docs", "plugin", "python/build_backend"),
    *("README.md", "pyproject.toml", "Cargo.toml"),
)


def main() -> int:
    """Try every torch, and print the results."""
    parser = argparse.ArgumentParser(
        prog="python scripts/release/trial.py", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("wheel", type=Path, nargs="?", help="left out: the one in dist/ for this machine")
    parser.add_argument("--torch", nargs="+", default=TORCHES, metavar="VERSION", help="left out: all")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1), help="processes that test (the processors)")
    options = parser.parse_args()
    wheel = options.wheel or next(iter((ROOT / "dist").glob(f"*_{platform.machine()}.whl")), None)
    if wheel is None:
        parser.error("there is no wheel in dist/ for this machine: `make release` makes it")
    console, table, failed = Console(), Table("torch", "result", title=wheel.name), False
    for version in options.torch:
        console.print(f"torch {version}")
        with tempfile.TemporaryDirectory() as folder:
            status, words = trial(wheel.resolve(), version, Path(folder), options.jobs)
        failed |= status != 0
        table.add_row(version, words)
        console.print(words)
    console.print(table)
    return int(failed)


def trial(wheel: Path, version: str, folder: Path, jobs: str) -> tuple[int, str]:
    """Install and test in `folder`; return pytest's status and the last line that it printed."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run([*install, f"torch=={version}", *NEEDED, f"torch-dml @ {wheel.as_uri()}"], check=True)
    work = folder / "work"
    copy_tests(work)
    tests = [python, "-m", "pytest", "-q", "-m", "smoke", "-n", jobs, "--dist", "loadfile", "-p", "no:cacheprovider"]
    plain = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run([*tests, "tests"], cwd=work, env=plain, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout if done.returncode else "", end="")
    return done.returncode, (done.stdout.strip().splitlines() or ["nothing was printed"])[-1]


def copy_tests(work: Path) -> None:
    """Copy the tests, and the files they read, into a new folder."""
    work.mkdir()
    for name in READ:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, work / name)


if __name__ == "__main__":
    sys.exit(main())
