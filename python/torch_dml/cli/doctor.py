"""`doctor`: checks everything that the device depends on, in order of dependence.

It imports neither torch nor a library of this package: checks that may crash run in a child
process.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from torch_dml import first_served, vulkan, windows_drivers
from torch_dml._version import __version__
from torch_dml.cli.child import probe

# Where the whole test suite has passed: system, Vulkan's name of the driver, and the device.
_KNOWN_GOOD = {("Linux", "NVIDIA"): "an H100", ("Linux", "llvmpipe"): "Mesa's software adapter"}
# Mesa's drivers whose compilers took the kernels, for GPUs that were not there.
_COMPILED = ("radv", "Intel open-source Mesa driver", "turnip Mesa driver", "NVK")
_LINE, _LINES = 400, 4


@dataclass
class _Report:
    failed: bool = False
    driver_failed: bool = False
    hints: list[str] = field(default_factory=list)

    def ok(self, what: str, detail: str) -> None:
        self._line("ok", "32", what, detail)

    def warn(self, what: str, detail: str) -> None:
        self._line("warn", "33", what, detail)

    def fail(self, what: str, detail: str, *hints: str) -> None:
        self.failed = True
        self.hints += [hint for hint in hints if hint not in self.hints]
        self._line("FAIL", "31", what, detail)

    def _line(self, mark: str, colour: str, what: str, detail: str) -> None:
        if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
            mark = f"\033[{colour}m{mark:4}\033[0m"
        # The first lines of torch's long messages are enough.
        first, *rest = [line[:_LINE] for line in detail.splitlines()[:_LINES]] or [""]
        print(f"{mark:4}  {what:15}{first}")
        for line in rest:
            print(f"{'':21}{line}")


def run() -> int:
    """Check everything, print one line for each check, and return 0 if the device works, else 1."""
    report = _Report()
    report.ok("system", f"{platform.platform()}, Python {platform.python_version()}, torch-dml {__version__}")
    loader_works = _check_loader(report)
    _check_windows_drivers(report, windows_drivers.installed())
    engine_works = _check_engine(report)
    devices = _check_devices(report) if engine_works else []
    torch_works = _check_torch(report) and _check_operators(report)
    if engine_works and torch_works and devices:
        _check_tensors(report, devices)
    for hint in report.hints:
        print(f"\n{hint}")
    _print_advice(broken=not loader_works or (engine_works and not devices) or report.driver_failed, devices=devices)
    print("\nThe device does not work here." if report.failed else "\nThe device works.")
    return 1 if report.failed else 0


def _print_advice(broken: bool, devices: list[dict[str, Any]]) -> None:
    """Print how to get a driver: for every system if no device works, for this one if only a
    software adapter does.
    """
    here = vulkan.system()
    systems = sorted(("windows", "linux", "wsl"), key=lambda name: name != here) if broken else [here]
    if broken or all(device.get("software") for device in devices):
        print("\nTo get a GPU's Vulkan driver:")
        for system in systems:
            print("\n" + "\n".join(vulkan.advice(system)))


def _check_loader(report: _Report) -> bool:
    error = vulkan.loader_error()
    if error is not None:
        report.fail("Vulkan loader", f"{vulkan.loader_name()} does not load: {error}")
        return False
    report.ok("Vulkan loader", f"{vulkan.loader_name()}, Vulkan {vulkan.loader_version() or 'of unknown version'}")
    for name, value in vulkan.driver_variables().items():
        report.warn("environment", f"{name}={value} decides which drivers are found")
    return True


def _check_windows_drivers(report: _Report, drivers: list[windows_drivers.Driver]) -> None:
    for driver in drivers:
        complaint = driver.complaint(datetime.date.today())
        if complaint:
            report.warn("driver", f"{driver.description()}\n{complaint}")
        else:
            report.ok("driver", driver.description())


def _check_engine(report: _Report) -> bool:
    result = probe("engine")
    if not result["ok"]:
        report.fail("engine", result["error"], _how_to_reinstall())
        return False
    if result["value"] != __version__ and __version__ != "0+unknown":
        report.warn("engine", f"is version {result['value']}, the package {__version__}\n{_how_to_reinstall()}")
    else:
        report.ok("engine", f"version {result['value']}")
    return True


def _how_to_reinstall() -> str:
    """Return how to reinstall the libraries, in the way in which this package was installed."""
    try:
        installed = metadata.distribution("torch-dml")
    except metadata.PackageNotFoundError:
        return "The package is used from its sources. Build its libraries: `cargo xtask build --torch FOLDER_OF_TORCH`"
    # The file (PEP 610) that pip writes for packages that are not from an index.
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if "dir_info" not in origin:
        return (
            "Reinstall torch-dml from the wheel for this system and processor: "
            f"`pip install --force-reinstall --no-deps torch_dml-{installed.version}-py3-none-PLATFORM.whl`"
        )
    command = "-e . --no-build-isolation" if origin["dir_info"].get("editable") else "--force-reinstall --no-deps ."
    return f"Reinstall torch-dml from its sources, {origin['url']}: `pip install {command}` there"


def _check_devices(report: _Report) -> list[dict[str, Any]]:
    result = probe("devices")
    value = result.get("value") or {}
    for adapter in value.get("unsupported", []):
        report.warn("adapter", f"{adapter.get('name', adapter)}: {adapter.get('reason', 'not usable')}")
    devices: list[dict[str, Any]] = value.get("devices", [])
    if not devices:
        report.fail("devices", result.get("error") or "no device with Vulkan 1.2 or newer was found")
        return []
    tests = probe("kernels")
    problems = tests["value"] if tests["ok"] else [tests["error"]] * len(devices)
    for device, problem in zip(devices, problems, strict=False):
        name = f"dml:{device['index']}"
        text = f"{device.get('name')} ({device.get('kind')}, {device.get('driver')} {device.get('driver_info')})"
        if problem:
            report.driver_failed = True
            report.fail(name, f"{text}\na kernel failed: {problem}", "Update the driver of the device that failed.")
        else:
            report.ok(name, f"{text}: a kernel computed 1 + 2")
    _say_what_is_known(report, devices)
    if all(device.get("software") for device in devices):
        report.warn("devices", "only a software adapter was found: it computes on the processor, slowly")
    return devices


def _say_what_is_known(report: _Report, devices: list[dict[str, Any]]) -> None:
    """Print on which devices the tests have passed, and if there are several devices, which one
    programs get.
    """
    here = platform.system()
    for device in devices:
        name, driver = f"dml:{device['index']}", str(device.get("driver"))
        if family := first_served.family(str(device.get("name"))):
            report.ok("served first", f"{name}: {family}, which hardly anything else serves")
        tried = _KNOWN_GOOD.get((here, driver))
        if tried:
            report.ok("known good", f"{name}: all tests have passed with the driver {driver} on {here} ({tried})")
        elif driver.startswith(_COMPILED):
            report.warn(
                "known good",
                f"{name}: the tests have not been run with the driver {driver} on {here} yet; its compiler takes the\n"
                "kernels of the smoke tests, for GPUs that were not there (docs/reference/gpus.md)",
            )
        else:
            report.warn("known good", f"{name}: the tests have not been run with the driver {driver} on {here} yet")
    if len(devices) > 1:
        others = ", ".join(f"dml:{device['index']} ({device.get('name')})" for device in devices[1:])
        report.ok(
            "choice",
            f'"dml" is dml:0, {devices[0].get("name")} ({devices[0].get("kind")}); also there: {others}\n'
            'another: device="dml:1", or torch.dml.set_device(1) for all that follows in a thread\n'
            "without a change of the program: VK_DRIVER_FILES=FILE.json leaves only the devices of that driver",
        )


def _torch_requirement() -> str:
    """Return the installed distribution's requirement on torch, `torch<2.16,>=2.11`."""
    try:
        wanted = metadata.requires("torch-dml") or []
    except metadata.PackageNotFoundError:
        wanted = []
    return next((requirement for requirement in wanted if requirement.startswith("torch")), "torch")


def _check_torch(report: _Report) -> bool:
    found = probe("torch", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    if not found["ok"]:
        report.fail("torch", found["error"], f'Install a torch that it is for: `pip install "{_torch_requirement()}"`')
        return False
    report.ok("torch", f"version {found['value']}")
    plugin = probe("plugin")
    if not plugin["ok"]:
        report.fail("plugin", plugin["error"])
        return False
    report.ok("plugin", f"for torch {plugin['value']}")
    return True


def _check_operators(report: _Report) -> bool:
    """Report the operators that run on the CPU because this torch has changed their schemas."""
    result = probe("operators")
    if not result["ok"]:
        report.fail("operators", result["error"])
        return False
    registered, changed = result["value"]["registered"], result["value"]["changed"]
    if changed:
        report.warn(
            "operators",
            f"{registered} run on the device; of {len(changed)} this torch has another schema, they run on the CPU:\n"
            + " ".join(changed),
        )
    else:
        report.ok("operators", f"{registered} run on the device, with this torch's schemas")
    return True


def _check_tensors(report: _Report, devices: list[dict[str, Any]]) -> None:
    result = probe("tensors")
    problems = result["value"] if result["ok"] else [result["error"]]
    wrong = [(device["index"], problem) for device, problem in zip(devices, problems, strict=False) if problem]
    for index, problem in wrong:
        report.driver_failed = True
        report.fail(
            "tensors", f"1 + 2 on dml:{index} failed: {problem}", "Update the driver of the device that failed."
        )
    if not wrong:
        report.ok("tensors", "torch computed 1 + 2 on every device")
