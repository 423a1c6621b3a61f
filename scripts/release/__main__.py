"""Builds the wheels of the last commit: `make release`, or `python scripts/release --help`.

A wheel contains the engine and a plugin for every supported torch, and works with every CPython.
The output also has a bill of materials (CycloneDX), SHA256SUMS and, for Windows, the launchers that
install the wheel next to them. The same commit and the same tools give the same bytes, in any
folder: the build uses a fresh copy of the commit, and all times in the wheel are the commit's.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import materials
import symbols
import torch_wheels
from torches import TORCHES

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64")
# Rust's target triple of each platform for which wheels are built.
RUST_TARGETS = {
    "manylinux_2_28_x86_64": "x86_64-unknown-linux-gnu",
    "manylinux_2_28_aarch64": "aarch64-unknown-linux-gnu",
    "win_amd64": "x86_64-pc-windows-msvc",
    "win_arm64": "aarch64-pc-windows-msvc",
}
# Files in scripts/windows.
LAUNCHERS = ("demo.bat", "demo.ps1")


def main() -> int:
    """Build the wheels and the files that accompany them."""
    parser = argparse.ArgumentParser(prog="python scripts/release", description=(__doc__ or "").partition("\n")[0])
    which = f"tags of wheels; left out: {' '.join(PLATFORMS)}"
    parser.add_argument("--platform", nargs="+", default=PLATFORMS, choices=RUST_TARGETS, metavar="TAG", help=which)
    parser.add_argument("--torch", nargs="+", default=TORCHES, help="versions that get a plugin, or folders of torch")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheels go (dist)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "release", help="where they are built")
    options = parser.parse_args()
    if git("status", "--porcelain").strip():
        print("warning: what is not committed is not in the release", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    # Read only once: HEAD may move during the build.
    commit, time = git("log", "-1", "--format=%H %ct").split()
    environment = build_environment(time)
    for platform in options.platform:
        torches = [torch_of(name, platform, options.work / "torch") for name in options.torch]
        source = options.work / platform
        check_out(commit, source)
        wheel = build_wheel(source, platform, torches, options.out, environment)
        check_wheel(wheel, platform, environment)
        materials.write(source, RUST_TARGETS[platform], wheel, int(time), wheel.with_suffix(".cdx.json"))
        if platform.startswith("win"):
            copy_launchers(source, options.out)
        shutil.rmtree(source)
    write_sums(options.out)
    return 0


def git(*arguments: str) -> str:
    """Return what a git command prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def torch_of(name: str, platform: str, downloads: Path) -> Path:
    """Return the folder for a plugin's build: `name` is a folder, or a version to download."""
    return Path(name).resolve() if Path(name).is_dir() else torch_wheels.fetch(name, platform, downloads)


def check_out(commit: str, folder: Path) -> None:
    """Extract the files of a commit, and nothing else, into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    done = subprocess.run(["git", "archive", "--format=tar", commit], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)


def build_environment(time: str) -> dict[str, str]:
    """Return the environment with this Python's tools first in PATH, and `time`, in seconds, as the
    time of every file.
    """
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": tools, "SOURCE_DATE_EPOCH": time}


def build_wheel(source: Path, platform: str, torches: list[Path], out: Path, environment: dict[str, str]) -> Path:
    """Build one wheel from `source` and return its path."""
    environment = {**environment, torch_wheels.VARIABLE: os.pathsep.join(map(str, torches))}
    command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-build-isolation", "--no-deps"]
    if platform.startswith("manylinux"):
        command += ["--config-settings", f"platform={platform}"]
    # File modes are stored in a wheel.
    umask = os.umask(0o022)
    with tempfile.TemporaryDirectory() as fresh:
        subprocess.run([*command, "--verbose", "--wheel-dir", fresh, str(source)], check=True, env=environment)
        (wheel,) = Path(fresh).glob("*.whl")
        target = out / wheel.name
        shutil.move(wheel, target)
    os.umask(umask)
    return target


def check_wheel(wheel: Path, platform: str, environment: dict[str, str]) -> None:
    """Stop if a wheel for Linux needs a newer system than its name promises."""
    if not platform.startswith("manylinux"):
        return
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        libraries = [Path(archive.extract(name, folder)) for name in archive.namelist() if name.endswith(".so")]
        too_new = symbols.main(libraries)
    command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = json.loads(done.stdout)
    # These libraries come with PyTorch.
    foreign = found["external_libs"].keys() - {"libc10.so", "libtorch_cpu.so"}
    print(
        f"auditwheel: the symbols are those of {found['sym_tag']}, other libraries needed: {sorted(foreign) or 'none'}"
    )
    if too_new or not symbols.serves(found["sym_tag"], platform) or foreign:
        raise SystemExit(f"{wheel.name} does not run where its name says")


def copy_launchers(source: Path, out: Path) -> None:
    """Copy the launchers, which make an environment with the wheel and start the demo, next to a
    wheel for Windows.
    """
    for name in LAUNCHERS:
        shutil.copy(source / "scripts" / "windows" / name, out / name)


def write_sums(out: Path) -> None:
    """Write SHA256SUMS of all files in `out`, for `sha256sum --check`."""
    files = sorted(file for file in out.iterdir() if file.suffix in {".whl", ".json"} or file.name in LAUNCHERS)
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8", newline="\n")
    print("".join(lines), end="")


if __name__ == "__main__":
    sys.exit(main())
