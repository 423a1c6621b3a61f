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
