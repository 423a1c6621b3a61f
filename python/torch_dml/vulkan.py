"""The Vulkan loader and drivers of this machine: whether they exist, and what to install if not."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from torch_dml import windows_drivers


def loader_name() -> str:
    """Return the file name of the Vulkan loader on this system."""
    return "vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1"


def loader_error() -> str | None:
    """Return why the Vulkan loader does not load, None if it does."""
    try:
        ctypes.CDLL(loader_name())
    except OSError as error:
        return str(error)
    return None


def loader_version() -> str | None:
    """Return the version of the Vulkan API that the loader supports, None if it cannot be
    queried.
    """
    packed = ctypes.c_uint32(0)
    try:
        loader = ctypes.CDLL(loader_name())
        if loader.vkEnumerateInstanceVersion(ctypes.byref(packed)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    value = packed.value
    return f"{value >> 22 & 0x7F}.{value >> 12 & 0x3FF}.{value & 0xFFF}"


def driver_variables() -> dict[str, str]:
    """Return the environment variables that change which drivers the loader finds."""
    names = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_DISABLE")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def system() -> str:
    """Return "windows", "wsl", "linux" or what Python calls the system otherwise."""
    if sys.platform == "win32":
        return "windows"
    if sys.platform == "linux":
        return "wsl" if _is_wsl() else "linux"
    return sys.platform


def advice(kind: str | None = None) -> list[str]:
    """Return what to install or update on `kind` of system (default: this one) to get a Vulkan
    device.
    """
    kind = kind or system()
    if kind == "windows":
        return [
            "Windows: install or update the GPU's driver; it brings Vulkan (vulkan-1.dll):",
            *(f"  {vendor:9} {page}" for vendor, page in windows_drivers.PAGES.items()),
            "Drivers that Windows Update chose may lack Vulkan: prefer the vendor's.",
        ]
    if kind == "wsl":
        return [
            "WSL2: install the loader and Mesa's drivers; GPUs are reached through Mesa's `dzn` (Direct3D 12):",
            "  sudo apt-get install libvulkan1 mesa-vulkan-drivers vulkan-tools",
            "dzn needs Mesa 24 or newer: on older Ubuntu add `ppa:kisak/kisak-mesa` first; update the GPU's driver in",
            "Windows and run `wsl --update` there. Without a GPU, Mesa's `lavapipe` runs on the processor.",
        ]
    return [
        "Linux: install the Vulkan loader and the GPU's driver:",
        "  Debian, Ubuntu  sudo apt-get install libvulkan1 mesa-vulkan-drivers",
        "  Fedora          sudo dnf install vulkan-loader mesa-vulkan-drivers",
        "  Arch            sudo pacman -S vulkan-icd-loader vulkan-radeon vulkan-intel vulkan-swrast",
        "  NVIDIA          the proprietary driver, version 525 or newer (it brings its own Vulkan driver)",
        "Mesa serves AMD, Intel and Qualcomm, and brings `lavapipe`, which runs on the processor.",
    ]


def explain_no_device(reason: str | None) -> str:
    """Return a paragraph on why there is no device and what to do, for an error message.

    `reason` is the engine's message; None if it found no adapter that it can use.
    """
    problem = loader_error()
    if problem:
        what = f"the Vulkan loader {loader_name()} is missing ({problem})"
    else:
        what = reason or "no Vulkan 1.2 device was found"
        variables = driver_variables()
        if variables:
            named = ", ".join(f"{name}={value}" for name, value in variables.items())
            what += f" (drivers are restricted by {named})"
    return "\n".join([f"torch-dml: {what}.", *advice(), "`python -m torch_dml doctor` checks every step."])


def _is_wsl() -> bool:
    try:
        release = Path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8").lower()
    except OSError:
        return False
    return "microsoft" in release
