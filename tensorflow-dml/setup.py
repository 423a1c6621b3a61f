"""Builds the library with cargo, and puts it where TensorFlow looks for plugins:
`site-packages/tensorflow-plugins`.

One wheel serves every CPython (`py3-none-<platform>`): the library uses no libpython.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIBRARY = "tensorflow_dml.dll" if sys.platform == "win32" else "libtensorflow_dml.so"
START = "tensorflow_dml.pth"
LICENCES = ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt")


def version() -> str:
    """Return the version, which is that of Cargo.toml."""
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^\[workspace\.package\]\n(?:.*\n)*?version\s*=\s*"([^"]+)"', text, re.M)
    if not found:
        sys.exit(f"no version under [workspace.package] in {ROOT / 'Cargo.toml'}")
    return found[1]


def library() -> Path:
    """Return the library that $TENSORFLOW_DML_LIBRARY names, else build it."""
    if named := os.environ.get("TENSORFLOW_DML_LIBRARY"):
        return Path(named)
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    if not Path(cargo).exists():
        sys.exit("cargo not found: the library is Rust; install it from https://rustup.rs")
    subprocess.run([cargo, "build", "--release", "--package", "dml-tensorflow"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / LIBRARY


def platform_tag() -> str:
    """Return the wheel's platform. On Linux the glibc of this machine is the oldest that the wheel
    supports.
    """
    name, libc = platform.libc_ver()
    if sys.platform == "linux" and name == "glibc":
        major, minor = libc.split(".")[:2]
        return f"manylinux_{major}_{minor}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


class BuildWithLibrary(build_py):
    """Adds the library, and the line that Python runs when it starts."""

    def run(self) -> None:
        """Build."""
        # setuptools does not remove files from here that are no longer in the sources.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        plugins = Path(self.build_lib) / "tensorflow-plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library(), plugins / LIBRARY)
        shutil.copy2(HERE / "python" / START, Path(self.build_lib) / START)


class WithLibrary(Distribution):
    """A distribution that is not the same on every platform."""

    def has_ext_modules(self) -> bool:
        """Return that."""
        return True


class PlatformWheel(bdist_wheel):
    """A wheel for one platform, and every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag."""
        return "py3", "none", platform_tag()


# setuptools takes licences from this folder alone.
for licence in LICENCES:
    shutil.copy2(ROOT / licence, HERE / licence)
setup(version=version(), distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
