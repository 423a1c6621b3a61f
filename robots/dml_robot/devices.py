"""The devices for a run: chosen by name, measured, and their failures reported in one line."""

from __future__ import annotations

import contextlib
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from dml_robot.errors import DeviceError

KINDS = ("dml", "cuda", "cpu")


def choose(name: str) -> torch.device:
    """Return the device of a name: "cpu", "dml", "cuda:1", or "auto" for the best available; raise
    DeviceError if there is none.
    """
    if name == "auto":
        return next(torch.device(kind) for kind in ("cuda", "dml", "cpu") if available(kind))
    kind, _, index = name.partition(":")
    if kind not in KINDS:
        raise DeviceError(f"unknown device '{name}': it is one of auto, {', '.join(KINDS)}")
    if not available(kind):
        missing = "" if kind != "dml" or _dml() else " (torch-dml is not installed: pip install torch-dml)"
        raise DeviceError(f"there is no device '{kind}' on this machine{missing}")
    if index and (not index.isdecimal() or int(index) >= count(kind)):
        raise DeviceError(f"there is no device '{name}': this machine has {count(kind)} of '{kind}'")
    return torch.device(name)


def available(kind: str) -> bool:
    """Return whether there is a device of this kind."""
    return kind == "cpu" or count(kind) > 0


def count(kind: str) -> int:
    """Return how many devices of a kind there are."""
    if kind == "cpu":
        return 1
    if kind == "dml" and not _dml():
        return 0
    module = getattr(torch, kind)
    return int(module.device_count()) if module.is_available() else 0


def describe(device: torch.device) -> str:
    """Return the device's name in its driver, or the processor's name."""
    if device.type == "cpu":
        with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
            return next(names, platform.machine())
        return platform.processor() or platform.machine()
    return str(_module(device).get_device_name(device))


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type != "cpu":
        _module(device).synchronize(device)


def free_memory(device: torch.device) -> int:
    """Return the bytes that a run may use: the device's free memory, or the machine's."""
    if device.type == "cpu":
        import psutil

        return int(psutil.virtual_memory().available)
    return int(_module(device).mem_get_info(device)[0])


def peak_memory(device: torch.device, *, reset: bool = False) -> int:
    """Return the peak of the device's memory in use in bytes (the process's on the CPU), optionally
    resetting it.
    """
    if device.type == "cpu":
        import psutil

        return int(psutil.Process().memory_info().rss)
    module = _module(device)
    found = int(module.max_memory_reserved(device))
    if reset:
        module.empty_cache()
        module.reset_peak_memory_stats(device)
    return found


def busy(device: torch.device) -> float | None:
    """Return the fraction of the last moments in which the GPU was busy, if its driver reports it:
    NVIDIA's, or AMD's on Linux.
    """
    if device.type == "cpu":
        return None
    if device.type == "cuda":
        with contextlib.suppress(ModuleNotFoundError, RuntimeError):
            return float(torch.cuda.utilization(device)) / 100
    name = describe(device)
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        if "NVIDIA" in name:
            query = ["nvidia-smi", "--query-gpu=name,utilization.gpu", "--format=csv,noheader,nounits"]
            lines = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout.splitlines()
            shares = [float(share) for gpu, share in (line.rsplit(",", 1) for line in lines) if gpu.strip() == name]
        elif "AMD" in name or "Radeon" in name:
            files = Path("/sys/class/drm").glob("card[0-9]*/device/gpu_busy_percent")
            shares = [float(file.read_text()) for file in files]
        else:
            shares = []
        if len(shares) == 1:  # with several GPUs it is not known which one this is
            return shares[0] / 100
    return None


def fallbacks(device: torch.device) -> dict[str, int]:
    """Return how often each operator fell back to the CPU."""
    return dict(_module(device).fallbacks()) if device.type == "dml" else {}


@contextlib.contextmanager
def told(device: torch.device, kept: str = "") -> Iterator[None]:
    """Convert the loss of a device, and a lack of memory, into a DeviceError of one line that ends
    with `kept`.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceError(f"{device} has too little memory for this: use a smaller --parallel{kept}") from error
    except torch.AcceleratorError as error:
        raise DeviceError(f"the device {device} was lost{kept}") from error


def _module(device: torch.device) -> Any:
    return getattr(torch, device.type)


def _dml() -> bool:
    """Return whether torch-dml is available; imports it, which registers its devices also next to
    another accelerator's.
    """
    try:
        import torch_dml  # noqa: F401
    except (ImportError, OSError, RuntimeError):
        return False
    return hasattr(torch, "dml")
