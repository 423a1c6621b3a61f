"""Loads the plugin for the installed torch, and registers the device."""

from __future__ import annotations

import atexit
import ctypes
import os
import re
import sys
import threading
from ctypes import POINTER, c_char_p, c_int32, c_uint64, c_void_p
from pathlib import Path
from types import ModuleType

from torch_dml_autoload import has_own_accelerator

from torch_dml import engine, environment
from torch_dml.backend import AS_CUDA, DEVICE, FORCED

_PLUGIN_FILE = re.compile(r"^(?:lib)?torch_dml_(\d+)_(\d+)\.(?:so|dll)$")

_lock = threading.RLock()
_plugin: ctypes.CDLL | None = None


def supported_torch() -> list[str]:
    """Return the torch minors that this installation has plugins for, oldest first: ["2.11",
    "2.15"].
    """
    return [f"{major}.{minor}" for major, minor in sorted(_plugins())]


def is_loaded() -> bool:
    """Return whether the device is registered with torch in this process."""
    return _plugin is not None


def plugin() -> ctypes.CDLL:
    """Return the loaded plugin; load it first if needed."""
    load()
    assert _plugin is not None
    return _plugin


def load() -> None:
    """Register the device "dml" with torch, or let it replace CUDA. Calling it again does nothing.

    Raises ImportError, with the versions or files concerned in the message, if torch is missing or
    of a version for which this installation has no plugin, if a library does not load, and if CUDA
    cannot be replaced.
    """
    global _plugin
    with _lock:
        if _plugin is not None:
            return
        import torch

        check_place(torch)
        environment.warn_of_nonsense()
        path = plugin_path(torch.__version__)
        engine.library()
        library = open_plugin(path)
        initialise(library, torch.__version__)
        # Imported here: these need the engine and torch.
        from torch_dml import backward, interrupts, libraries, record, register

        register.register()
        if AS_CUDA:
            from torch_dml.cuda import install

            install.install(library)
        backward.run_in_calling_thread()
        interrupts.watch(library)
        libraries.install(library)
        atexit.register(_finish, library, os.getpid())
        _plugin = library
        record.start()


def check_place(torch: ModuleType) -> None:
    """Raise ImportError if the device type that the device is to have in PyTorch is already
    taken.
    """
    name = torch._C._get_privateuse1_backend_name()
    if AS_CUDA:
        if not FORCED and has_own_accelerator(torch):
            raise ImportError(
                "torch-dml does not take CUDA's place: PyTorch can use a GPU of its own in this process. "
                "TORCH_DML_AS_CUDA=force, or `python -m torch_dml run --force`, takes its place all the same"
            )
    elif name not in {"privateuseone", DEVICE}:
        raise ImportError(
            f'torch-dml cannot load: another backend has taken PrivateUse1 in this process, the device "{name}"'
        )


def _finish(library: ctypes.CDLL, process: int) -> None:
    # Compiled kernels are saved when the device has been idle for a while, but a short program may
    # end before that. A forked child has nothing of its own to save.
    if os.getpid() == process:
        from torch_dml import interrupts

        interrupts.stop(library)
        engine.library().dml_shutdown()


def plugin_path(torch_version: str) -> Path:
    """Return the plugin for a torch version; if there is none, raise an ImportError that names the
    versions.
    """
    plugins = _plugins()
    found = re.match(r"(\d+)\.(\d+)", torch_version)
    key = (int(found[1]), int(found[2])) if found else None
    if key in plugins:
        return plugins[key]
    if not plugins:
        raise ImportError(
            f"torch-dml has no plugin in {engine.library_folder()}: the installation is incomplete. Install the "
            "package with `pip install .`, or build with `cargo xtask build --torch <site-packages>/torch`"
        )
    have = ", ".join(supported_torch())
    raise ImportError(
        f"torch {torch_version} is installed, and this torch-dml was built for torch {have}. Install one of those "
        f'(`pip install "torch=={supported_torch()[-1]}.*"`), or a torch-dml that was built for torch '
        f"{torch_version.split('+')[0]}"
    )


def open_plugin(path: Path) -> ctypes.CDLL:
    """Load a plugin into the process and declare its functions. torch has to be imported."""
    try:
        library = ctypes.CDLL(str(path))
        library.dml_plugin_init.argtypes, library.dml_plugin_init.restype = [c_char_p, c_int32], c_int32
        library.dml_plugin_register_library.argtypes = [c_char_p]
        library.dml_plugin_register_library.restype = c_int32
        library.dml_plugin_resize_storage.argtypes = [c_void_p, c_uint64]
        library.dml_plugin_resize_storage.restype = c_int32
        for function in (
            "dml_plugin_last_error",
            "dml_plugin_torch_version",
            "dml_plugin_fallbacks_json",
            "dml_plugin_operators_json",
        ):
            getattr(library, function).argtypes = []
            getattr(library, function).restype = c_char_p
        library.dml_plugin_fallback_count.argtypes = []
        library.dml_plugin_fallback_count.restype = c_uint64
        library.dml_plugin_reset_fallbacks.argtypes = []
        library.dml_plugin_reset_fallbacks.restype = None
        library.dml_plugin_watch_signals.argtypes = [c_uint64, POINTER(c_void_p)]
        library.dml_plugin_watch_signals.restype = None
    except (OSError, AttributeError) as error:
        raise ImportError(f"torch-dml's plugin {path} does not load: {error}") from error
    return library


def initialise(library: ctypes.CDLL, torch_version: str) -> None:
    """Let a plugin register its kernels; raise ImportError if it refuses this torch."""
    if library.dml_plugin_init(torch_version.encode(), int(AS_CUDA)) != 0:
        reason = (library.dml_plugin_last_error() or b"no reason given").decode(errors="replace")
        built = (library.dml_plugin_torch_version() or b"another version").decode(errors="replace")
        raise ImportError(f"torch-dml's plugin for torch {built} refuses torch {torch_version}: {reason}")


def _plugins() -> dict[tuple[int, int], Path]:
    folder = engine.library_folder()
    if not folder.is_dir():
        return {}
    suffix = ".dll" if sys.platform == "win32" else ".so"
    found = {}
    for file in folder.iterdir():
        match = _PLUGIN_FILE.match(file.name)
        if match and file.suffix == suffix:
            found[int(match[1]), int(match[2])] = file
    return found
