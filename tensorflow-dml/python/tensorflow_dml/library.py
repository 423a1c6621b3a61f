"""The library that TensorFlow loads: where it is, and what it says of the adapters."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

NAME = "tensorflow_dml.dll" if sys.platform == "win32" else "libtensorflow_dml.so"


def path() -> Path:
    """Return the library's path: $TENSORFLOW_DML_LIBRARY, else where TensorFlow looks for it."""
    if named := os.environ.get("TENSORFLOW_DML_LIBRARY"):
        return Path(named)
    return Path(__file__).resolve().parents[1] / "tensorflow-plugins" / NAME


def information() -> dict[str, Any]:
    """Return the library's version, the adapters, those that it cannot use, and why there are
    none.

    Raises:
        OSError: if the library does not load.
    """
    library = ctypes.CDLL(str(path()))
    library.dml_tensorflow_information.restype = ctypes.c_void_p
    library.dml_tensorflow_free.argtypes = [ctypes.c_void_p]
    text = library.dml_tensorflow_information()
    try:
        found: dict[str, Any] = json.loads(ctypes.string_at(text)) if text else {}
        return found
    finally:
        library.dml_tensorflow_free(text)


def limit_memory(device: int, bytes_: int) -> None:
    """Limit what a device's allocator takes from the driver.

    Raises:
        ValueError: if the device cannot be opened.
    """
    function = ctypes.CDLL(str(path())).dml_tensorflow_limit_memory
    function.argtypes = [ctypes.c_int, ctypes.c_uint64]
    function.restype = ctypes.c_bool
    if not function(device, bytes_):
        raise ValueError(f"tensorflow-dml cannot open device {device} to limit its memory")


def memory(device: int, reset: bool = False) -> tuple[int, int]:
    """Return the bytes that a device's tensors and scratch memory take, and their peak since the
    last reset.

    Raises:
        ValueError: if the device cannot be opened.
    """
    function = ctypes.CDLL(str(path())).dml_tensorflow_memory
    function.argtypes = [ctypes.c_int, ctypes.c_bool, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)]
    function.restype = ctypes.c_bool
    current, peak = ctypes.c_uint64(), ctypes.c_uint64()
    if not function(device, reset, ctypes.byref(current), ctypes.byref(peak)):
        raise ValueError(f"tensorflow-dml cannot open device {device} to read its memory")
    return current.value, peak.value


def is_loaded() -> bool:
    """Return whether TensorFlow's devices of type GPU or DML are this library's."""
    import tensorflow as tf

    if tf.config.list_physical_devices("DML"):
        return True
    return not tf.sysconfig.get_build_info()["is_cuda_build"] and bool(tf.config.list_physical_devices("GPU"))
