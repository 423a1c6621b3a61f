"""Prints the number of Vulkan devices; exits with status 1 when there is none. Needs only
Python.
"""

from __future__ import annotations

import ctypes
import sys


class InstanceCreateInfo(ctypes.Structure):
    """VkInstanceCreateInfo, without optional members."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.c_void_p),
        ("layer_count", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("extension_count", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    )


def count() -> int:
    """Return the number of devices that the loader reports, or 0 when there is no loader."""
    try:
        vulkan = ctypes.CDLL("vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1")
    except OSError:
        return 0
    info = InstanceCreateInfo(type=1)
    instance = ctypes.c_void_p()
    if vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance)) != 0:
        return 0
    found = ctypes.c_uint32(0)
    failed = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(found), None)
    vulkan.vkDestroyInstance(instance, None)
    return 0 if failed else found.value


if __name__ == "__main__":
    devices = count()
    print(devices)
    sys.exit(0 if devices else 1)
