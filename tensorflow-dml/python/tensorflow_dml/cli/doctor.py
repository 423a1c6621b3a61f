"""`doctor`: checks everything that the device depends on, in order of dependence.

What may crash, a driver or TensorFlow, runs in a child process.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from typing import Any

from tensorflow_dml import installed, library
from tensorflow_dml._version import __version__
from tensorflow_dml.cli.devices import size

_SECONDS = 300
_INFORMATION = "import json; from tensorflow_dml import library; print(json.dumps(library.information()))"
_TENSORFLOW = """
import json
import tensorflow as tf
from tensorflow_dml import library
if not tf.config.list_physical_devices("GPU") + tf.config.list_physical_devices("DML"):
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(str(library.path()))
found = tf.config.list_logical_devices("GPU") + tf.config.list_logical_devices("DML")
worst = None
if found:
    tf.config.set_soft_device_placement(False)
    x = [[0.25 * (i - j) for j in range(64)] for i in range(64)]
    products = []
    for device in ("CPU:0", found[0].name):
        with tf.device(device):
            a = tf.constant(x)
            products.append(tf.matmul(a + a, a, transpose_b=True).numpy())
    worst = float(abs(products[0] - products[1]).max() / abs(products[0]).max())
print(json.dumps({
    "version": tf.__version__,
    "cuda": bool(tf.sysconfig.get_build_info()["is_cuda_build"]),
    "devices": [device.name for device in found],
    "worst": worst,
}))
"""


class _Report:
    """The lines that are printed."""

    def __init__(self) -> None:
        self.failed = False
        try:
            from rich.console import Console

            self._console: Any = Console(highlight=False, soft_wrap=True)
        except ImportError:
            self._console = None

    def ok(self, what: str, detail: str) -> None:
        self._line("ok", "green", what, detail)

    def warn(self, what: str, detail: str) -> None:
        self._line("warn", "yellow", what, detail)

    def fail(self, what: str, detail: str) -> None:
        self.failed = True
        self._line("FAIL", "red", what, detail)

    def _line(self, mark: str, colour: str, what: str, detail: str) -> None:
        lines = detail.splitlines()[:6] or [""]
        if self._console is None:
            print(f"{mark:4}  {what:12}{lines[0]}")
        else:
            from rich.text import Text

            self._console.print(Text.assemble((f"{mark:4}", colour), f"  {what:12}{lines[0]}"))
        for line in lines[1:]:
            print(f"{'':18}{line}")


def _child(program: str) -> tuple[dict[str, Any] | None, str]:
    """What a program's last line says, or why it says nothing."""
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer in {_SECONDS} seconds"
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-4:])
        return None, f"exit status {done.returncode}\n{last}"
    said = done.stdout.strip().splitlines()
    value: dict[str, Any] = json.loads(said[-1])
    return value, done.stderr


def run() -> int:
    """Check everything, print a line for each check, and return 0 if the device works, else 1."""
    report = _Report()
    report.ok("system", f"{platform.platform()}, Python {platform.python_version()}, tensorflow-dml {__version__}")
    has_adapters = _check_library(report)
    if _check_installed(report) and has_adapters:
        _check_tensorflow(report)
    print("\nThe device does not work here." if report.failed else "\nThe device works.")
    return 1 if report.failed else 0


def _check_library(report: _Report) -> bool:
    if not library.path().exists():
        report.fail("library", f"{library.path()} is missing: pip install --force-reinstall --no-deps tensorflow-dml")
        return False
    found, why = _child(_INFORMATION)
    if found is None:
        report.fail("library", f"{library.path()}: {why}")
        return False
    if __version__ not in (found["version"], "0+unknown"):
        report.warn("library", f"is version {found['version']}, the package {__version__}")
    else:
        report.ok("library", f"version {found['version']}")
    for adapter in found["unsupported"]:
        report.warn("adapter", f"{adapter['name']}: {adapter['reason']}")
    for device in found["devices"]:
        driver = f"{device['driver']} {device['driver_info']}".strip()
        line = f"GPU:{device['index']} {device['name']}, {size(device['memory_total'])}, {driver}"
        if device["kind"] == "software":
            report.warn("adapter", f"{line}\nis no GPU, but the processor: slower than TensorFlow's CPU")
        else:
            report.ok("adapter", line)
    if not found["devices"]:
        report.fail("adapter", found["error"] or "no adapter has a Vulkan driver: install the GPU's driver")
    return bool(found["devices"])


def _check_installed(report: _Report) -> bool:
    found = installed.find()
    complaint = installed.complaint(found)
    names = ", ".join(f"{tensorflow.distribution} {tensorflow.version}" for tensorflow in found)
    if complaint:
        report.fail("TensorFlow", complaint)
        return False
    report.ok("TensorFlow", names)
    return True


def _check_tensorflow(report: _Report) -> None:
    found, why = _child(_TENSORFLOW)
    if found is None:
        report.fail("device", why)
    elif not found["devices"]:
        report.fail("device", f"TensorFlow has no device of the plugin\n{why.strip()}")
    else:
        if found["cuda"] and os.environ.get("TF_DML_DEVICE_TYPE") != "DML":
            report.warn(
                "device",
                "this TensorFlow is a build for CUDA, whose kernels do not run on the device: install tensorflow-cpu, "
                "or set TF_DML_DEVICE_TYPE=DML",
            )
        report.ok("device", ", ".join(found["devices"]))
        if found["worst"] < 1e-5:
            report.ok("computation", "a matrix product is as on the CPU")
        else:
            report.fail("computation", f"a matrix product is {found['worst']:.1e} from the CPU's")
