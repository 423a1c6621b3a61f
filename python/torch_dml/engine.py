"""The engine through its C ABI (abi.py). Works without torch."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
from ctypes import c_int32, c_uint64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_dml import abi
from torch_dml.abi import DmlStatus

# Keys of a device's description.
_WORDS = ("name", "vendor", "kind", "driver", "driver_info", "api_version", "uuid")
_FLAGS = ("f16", "bf16", "f64", "i64", "matrix", "timestamps", "subnormals", "software")


@dataclass(frozen=True)
class DeviceProperties:
    """A device's properties as the engine reports them. Memory is in bytes; the flags are what the
    hardware supports.
    """

    name: str
    vendor: str
    kind: str
    driver: str
    driver_info: str
    api_version: str
    total_memory: int
    f16: bool
    bf16: bool
    f64: bool
    i64: bool
    matrix: bool
    timestamps: bool
    subnormals: bool  # whether sums and products keep them; if not, they may be flushed to zero
    software: bool
    uuid: str

    @property
    def is_integrated(self) -> bool:
        """Whether the memory is the processor's; the name is CUDA's."""
        return self.kind == "integrated"


def library_folder() -> Path:
    """Return the folder of the engine and the plugins: $TORCH_DML_LIB, or `lib` in this package."""
    chosen = os.environ.get("TORCH_DML_LIB")
    return Path(chosen) if chosen else Path(__file__).parent / "lib"


def library_name() -> str:
    """Return the engine's file name on this system."""
    return "dml_torch.dll" if sys.platform == "win32" else "libdml_torch.so"


@functools.cache
def library() -> ctypes.CDLL:
    """Return the loaded engine; raise ImportError if it is missing, broken or of another
    version.
    """
    path = library_folder() / library_name()
    if not path.is_file():
        raise ImportError(
            f"torch-dml's engine is missing: {path}. Install the package with `pip install .`, or build the "
            "libraries with `cargo xtask build --torch <site-packages>/torch`"
        )
    try:
        engine = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"torch-dml's engine does not load: {error}") from error
    try:
        for name, (result, arguments) in abi.FUNCTIONS.items():
            function = getattr(engine, name)
            function.argtypes, function.restype = arguments, result
    except AttributeError as error:
        raise ImportError(f"{path} is not the engine of this package: {error}") from error
    if (version := engine.dml_abi_version()) != abi.ABI_VERSION:
        raise ImportError(f"{path} has ABI {version}, this package needs {abi.ABI_VERSION}: reinstall torch-dml")
    _set_child_command(engine, path)
    return engine


# Run by a child process, in which the driver may crash. It imports nothing of this package.
_CHILD = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).dml_answer_child_query(sys.argv[2].encode()))"


def _set_child_command(engine: ctypes.CDLL, path: Path) -> None:
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").stem.lower().startswith(("python", "pypy")):
        return  # A program of its own, which would start again: nothing is asked in a child process.
    words = [sys.executable, "-I", "-c", _CHILD, str(path)]
    engine.dml_set_child_command((ctypes.c_char_p * len(words))(*map(str.encode, words)), len(words))


def call(name: str, *arguments: Any) -> None:
    """Call a function that returns a status; raise the exception for a failure."""
    status = getattr(library(), name)(*arguments)
    if status != 0:
        raise error_of(name, status)


def error_of(name: str, status: int) -> Exception:
    """Return the exception for the status that a function of this thread has just returned.

    What a signal handler raised while the function waited is raised unchanged.
    """
    if status == DmlStatus.INTERRUPTED:
        from torch_dml import interrupts

        interrupts.raise_held()
    return exception_type(status)(last_error() or f"{name} failed with status {status}")


def exception_type(status: int) -> type[Exception]:
    """Return the exception type of a DmlStatus."""
    torch = sys.modules.get("torch")
    names: dict[int, str] = {
        DmlStatus.OUT_OF_MEMORY: "OutOfMemoryError",
        DmlStatus.DEVICE_LOST: "AcceleratorError",
    }
    named = names.get(status)
    if named is not None and hasattr(torch, named):
        found: type[Exception] = getattr(torch, named)
        return found
    errors: dict[int, type[Exception]] = {
        DmlStatus.INDEX_ERROR: IndexError,
        DmlStatus.TYPE_ERROR: TypeError,
        DmlStatus.VALUE_ERROR: ValueError,
        DmlStatus.NOT_IMPLEMENTED: NotImplementedError,
        DmlStatus.OUT_OF_MEMORY: MemoryError,
    }
    return errors.get(status, RuntimeError)


def last_error() -> str:
    """Return the message of this thread's last failed call."""
    return _text(library().dml_last_error())


def version() -> str:
    """Return the engine's version."""
    return _text(library().dml_version())


def device_count() -> int:
    """Return the number of devices; raise if the drivers cannot be queried."""
    count = c_int32(0)
    call("dml_device_count", ctypes.byref(count))
    return count.value


def why_no_device() -> str | None:
    """Return the engine's message if the drivers cannot be queried for devices, None if they
    can.
    """
    try:
        device_count()
    except RuntimeError as error:
        return str(error)
    return None


def device_info(device: int) -> dict[str, Any]:
    """Return the engine's description of a device, as the engine wrote it."""
    text = library().dml_device_info_json(device)
    if text is None:
        raise RuntimeError(last_error() or f"no description of device {device}")
    info: dict[str, Any] = json.loads(text)
    return info


def device_properties(device: int) -> DeviceProperties:
    """Return the description of a device."""
    info = device_info(device)
    words = {key: str(info.get(key, "")) for key in _WORDS}
    flags = {key: bool(info.get(key, False)) for key in _FLAGS}
    values: dict[str, Any] = {**words, **flags, "total_memory": int(info.get("memory_total", 0))}
    return DeviceProperties(**values)


def unsupported_adapters() -> list[Any]:
    """Return the adapters that the engine found and cannot use, with the reasons."""
    text = library().dml_unsupported_adapters_json()
    found: list[Any] = json.loads(text) if text else []
    return found


def memory_info(device: int) -> tuple[int, int]:
    """Return free and total memory of a device in bytes."""
    free, total = c_uint64(0), c_uint64(0)
    call("dml_memory_info", device, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def memory_stats(device: int) -> dict[str, Any]:
    """Return the allocator's statistics."""
    text = library().dml_memory_stats_json(device)
    if text is None:
        raise RuntimeError(last_error() or f"no memory statistics of device {device}")
    stats: dict[str, Any] = json.loads(text)
    return stats


def queue_stats(device: int = 0) -> dict[str, int]:
    """Return a device's queue statistics: commands, fused_launches, fused_kernels, barriers,
    submits, waits.
    """
    text = library().dml_queue_stats_json(device)
    if text is None:
        raise RuntimeError(last_error() or f"no queue statistics of device {device}")
    stats: dict[str, int] = json.loads(text)
    return stats


def kernel_stats() -> dict[str, int]:
    """Return this process's kernel statistics: the number of kernels, and the nanoseconds emit_ns,
    compile_ns, longest_ns, wait_ns.
    """
    text = library().dml_kernel_stats_json()
    if text is None:
        raise RuntimeError(last_error() or "no kernel statistics")
    stats: dict[str, int] = json.loads(text)
    return stats


def validation_messages() -> list[dict[str, Any]]:
    """Return the messages of Vulkan's validation layer in this process: for each kind its id, the
    text of the first one, and the count.
    """
    text = library().dml_validation_json()
    if text is None:
        raise RuntimeError(last_error() or "no validation messages")
    messages: list[dict[str, Any]] = json.loads(text)
    return messages


def memory_snapshot(device: int) -> list[dict[str, Any]]:
    """Return the segments of a device's memory, with their blocks."""
    text = library().dml_memory_snapshot_json(device)
    if text is None:
        raise RuntimeError(last_error() or f"no memory snapshot of device {device}")
    segments: list[dict[str, Any]] = json.loads(text)
    return segments


def host_memory_stats() -> dict[str, int]:
    """Return the statistics of pinned memory, with `torch.cuda.host_memory_stats`' keys."""
    pool = abi.DmlPoolStats()
    call("dml_host_stats", ctypes.byref(pool))
    figures: dict[str, abi.DmlStat] = {
        "active_requests": pool.allocation,
        "allocations": pool.segment,
        "active_bytes": pool.allocated_bytes,
        "allocated_bytes": pool.reserved_bytes,
    }
    parts = ("current", "peak", "allocated", "freed")
    stats = {f"{name}.{part}": getattr(stat, part) for name, stat in figures.items() for part in parts}
    stats["num_host_alloc"] = stats["allocations.allocated"]
    stats["num_host_free"] = stats["allocations.freed"]
    return stats


def generator_state(device: int) -> tuple[int, int]:
    """Return seed and offset of a device's default generator."""
    seed, offset = c_uint64(0), c_uint64(0)
    call("dml_generator_get", 0, device, ctypes.byref(seed), ctypes.byref(offset))
    return seed.value, offset.value


def is_capturing(device: int) -> bool:
    """Return whether this thread is capturing a graph of a device."""
    capturing = c_int32(0)
    call("dml_is_capturing", device, ctypes.byref(capturing))
    return capturing.value != 0


def kernel_interface(kernel: int) -> dict[str, Any]:
    """Return a kernel's name, workgroup, bytes and params: name, kind, dtype and offset."""
    text = library().dml_kernel_interface_json(kernel)
    if text is None:
        raise RuntimeError(last_error() or "there is no kernel")
    interface: dict[str, Any] = json.loads(text)
    return interface


def graph_stats(graph: int) -> dict[str, int]:
    """Return the contents of a graph, as numbers."""
    text = library().dml_graph_stats_json(graph)
    if text is None:
        raise RuntimeError(last_error() or "no graph was captured")
    stats: dict[str, int] = json.loads(text)
    return stats


def operators() -> list[str]:
    """Return the names of the aten overloads that the engine has kernels for."""
    engine = library()
    return [_text(engine.dml_operator_name(index)) for index in range(engine.dml_operator_count())]


def schemas() -> list[str]:
    """Return the schemas of those overloads, as PyTorch prints them, in the same order."""
    engine = library()
    return [_text(engine.dml_operator_schema(index)) for index in range(engine.dml_operator_count())]


def _text(value: bytes | None) -> str:
    return value.decode(errors="replace") if value else ""
