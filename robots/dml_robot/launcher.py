"""`python -m dml_robot`: says what the machine has, installs what is missing after asking, and runs
the command.

Only Python's own library is imported before everything is there.
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
# For a checkout that is not installed: what the command line itself imports.
_LEAST = ("torch", "numpy", "gymnasium", "mujoco", "rich", "typer", "matplotlib", "psutil")


def main(arguments: list[str]) -> int:
    """Run the command line's arguments after what they need is there; without any, report and show
    the help.

    `--yes` before them installs what is missing without asking.
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
    """Return the requirements, as pip takes them, of the installed distribution, or the least of a
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
    """Set what has to be set before libraries are imported; what the user has set stays.

    MuJoCo draws through EGL where there is no display, and processes of tests on few cores are not
    slowed down by threads that wait for each other.
    """
    variables = os.environ if environment is None else environment
    if sys.platform == "linux" and not variables.get("DISPLAY") and not variables.get("WAYLAND_DISPLAY"):
        variables.setdefault("MUJOCO_GL", "egl")


def report() -> Iterator[str]:
    """Give lines on the system, the processor, the devices with their drivers, and the packages."""
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
    """Install what is absent, if its user says so; return whether it is there now."""
    command = [sys.executable, "-m", "pip", "install", *absent]
    print(f"dml-robot: not installed: {', '.join(absent)}", file=sys.stderr)
    if not sure:
        if not sys.stdin.isatty():
            print(f"dml-robot: install it with: {' '.join(command)}", file=sys.stderr)
            return False
        if input("install it now? [y/N] ").strip().lower() not in ("y", "yes"):
            return False
    return subprocess.run(command, check=False).returncode == 0 and not missing()
