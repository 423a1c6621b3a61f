"""`python -m dml_robot`: reports the machine's hardware and packages, installs missing packages
after asking, and runs the command.

Only Python's standard library is imported until all packages are installed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator

DISTRIBUTION = "torch-dml-robots"
# For a checkout that is not installed: packages that the command line imports.
_LEAST = ("torch", "numpy", "gymnasium", "mujoco", "rich", "typer", "matplotlib", "psutil")


def main(arguments: list[str]) -> int:
    """Run the command with its arguments once its requirements are installed; without arguments,
    report and show the help.

    `--yes` in front of the arguments installs missing packages without asking.
    """
    sure = arguments[:1] == ["--yes"]
    arguments = arguments[1:] if sure else arguments
    absent = missing()
    if absent and not _install(absent, sure):
        return 1
    prepare()
    if not arguments:
        for line in report():
            print(line)
        print()
    from dml_robot.cli import main as run

    return run(arguments or ["--help"])


def required() -> list[str]:
    """Return the requirements, in pip's format, of the installed distribution, or the minimum for a
    checkout.
    """
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return [each for each in importlib.metadata.requires(DISTRIBUTION) or () if "extra ==" not in each]
    return list(_LEAST)


def missing() -> list[str]:
    """Return which of the requirements are not installed."""
    found = []
    for requirement in required():
        name = re.split(r"[\s<>=!~;\[(]", requirement, maxsplit=1)[0]
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found.append(requirement)
    return found


def prepare(environment: dict[str, str] | None = None) -> None:
    """Set environment variables that must be set before libraries are imported; the user's values
    have priority.

    MuJoCo draws through EGL if there is no display, and test processes on few cores are not slowed
    down by threads that wait for each other.
    """
    variables = os.environ if environment is None else environment
    if sys.platform == "linux" and not variables.get("DISPLAY") and not variables.get("WAYLAND_DISPLAY"):
        variables.setdefault("MUJOCO_GL", "egl")


def report() -> Iterator[str]:
    """Yield lines on the system, the processor, the devices with their drivers, and the
    packages.
    """
    yield f"system     {platform.platform()}, Python {platform.python_version()}"
    yield f"processor  {platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    try:
        from dml_robot import devices
    except ImportError as error:
        yield f"devices    unknown: {error}"
        return
    import torch

    for kind in devices.KINDS:
        for index in range(devices.count(kind)):
            device = torch.device(kind) if kind == "cpu" else torch.device(kind, index)
            free = devices.free_memory(device) / 2**30
            yield f"device     {device}: {devices.describe(device)}, {free:.1f} GiB free{_driver(device)}"
    names = ("torch", "torch-dml", "mujoco", "gymnasium", "stable-baselines3", "onnx", "tensorboard")
    yield "packages   " + ", ".join(f"{name} {_version(name)}" for name in names)


def _driver(device: object) -> str:
    import torch

    assert isinstance(device, torch.device)
    if device.type == "dml":
        properties = torch.dml.get_device_properties(device)  # type: ignore[attr-defined]
        driver = " ".join(str(getattr(properties, name, "")) for name in ("driver", "driver_info")).strip()
        return f", driver {driver}" if driver else ""
    return f", CUDA {torch.version.cuda}" if device.type == "cuda" else ""


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def _install(absent: list[str], sure: bool) -> bool:
    """Install the missing packages if the user agrees; return whether they are installed now."""
    command = [sys.executable, "-m", "pip", "install", *absent]
    print(f"dml-robot: not installed: {', '.join(absent)}", file=sys.stderr)
    if not sure:
        if not sys.stdin.isatty():
            print(f"dml-robot: install it with: {' '.join(command)}", file=sys.stderr)
            return False
        if input("install it now? [y/N] ").strip().lower() not in ("y", "yes"):
            return False
    return subprocess.run(command, check=False).returncode == 0 and not missing()
