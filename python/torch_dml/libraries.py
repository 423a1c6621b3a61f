"""Operators of libraries, such as torchvision's: the engine's kernels are registered after the
library's.
"""

from __future__ import annotations

import ctypes
from types import ModuleType

from torch_dml.on_import import when_imported

# Namespaces of operators, and the modules whose import defines them.
LIBRARIES = {"torchvision": "torchvision.extension"}


def install(plugin: ctypes.CDLL) -> None:
    """Let the plugin register the engine's operators of every library, now or when the program
    imports it.
    """
    for namespace, module in LIBRARIES.items():

        def register(_: ModuleType, namespace: str = namespace) -> None:
            if plugin.dml_plugin_register_library(namespace.encode()) != 0:
                reason = (plugin.dml_plugin_last_error() or b"no reason given").decode(errors="replace")
                raise ImportError(f"torch-dml cannot register its operators of {namespace}: {reason}")

        when_imported(module, register)
