"""Lets signals, as Ctrl-C, end a wait for a device: plugin/core/interrupt.cpp says how."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_void_p

import torch

# Functions of Python's C API, in the order of the plugin's arguments.
_FUNCTIONS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch", "PyErr_Restore")

_operators: torch.library.Library | None = None


def watch(plugin: ctypes.CDLL) -> None:
    """Let every wait of the main thread run signal handlers, and end with what they raise."""
    global _operators
    # Through PyDLL, so that ctypes keeps the GIL and checks for an exception afterwards.
    restore = ctypes.PyDLL(plugin._name).dml_plugin_restore_interruption
    restore.argtypes, restore.restype = [], None
    _operators = torch.library.Library("torch_dml", "FRAGMENT")  # type: ignore[no-untyped-call]
    _operators.impl("raise_interruption", restore, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    functions = (c_void_p * len(_FUNCTIONS))(
        *(ctypes.cast(getattr(ctypes.pythonapi, name), c_void_p).value for name in _FUNCTIONS)
    )
    plugin.dml_plugin_watch_signals(threading.main_thread().ident, functions)


def stop(plugin: ctypes.CDLL) -> None:
    """Stop handling signals: the interpreter is shutting down."""
    plugin.dml_plugin_watch_signals(0, None)


def raise_held() -> None:
    """Raise what a signal handler raised during a wait that has just failed with
    DML_INTERRUPTED.
    """
    torch.ops.torch_dml.raise_interruption()
