"""What TensorFlow's context does not ask a plugin for, and asks the library here: details of a
device that is not open yet, the memory in use, and limits of memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_dml import library


def adapt(context: Any) -> None:
    """Adapt the class of the context in TensorFlow's module `context`."""
    for name, function in _ADAPTED.items():
        original = getattr(context.Context, name)
        if not getattr(original, "_knows_tensorflow_dml", False):
            setattr(context.Context, name, _adapted(original, function))


def _adapted(original: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *arguments: Any) -> Any:
        return function(functools.partial(original, self), self, *arguments)

    method._knows_tensorflow_dml = True  # type: ignore[attr-defined]
    return method


def _details(original: Callable[..., Any], _: Any, device: Any) -> Any:
    import tensorflow as tf

    try:
        return original(device)
    except tf.errors.NotFoundError:
        # TensorFlow looks among the devices that are open.
        index = _index(device.name)
        if index is None:
            raise
        return {"device_name": library.information()["devices"][index]["name"]}


def _memory(original: Callable[..., Any], context: Any, name: str) -> Any:
    index = _index(name)
    if index is None:
        return original(name)
    context.ensure_initialized()
    current, peak = library.memory(index)
    return {"current": current, "peak": peak}


def _reset(original: Callable[..., Any], context: Any, name: str) -> Any:
    index = _index(name)
    if index is None:
        return original(name)
    context.ensure_initialized()
    library.memory(index, reset=True)
    return None


def _configure(original: Callable[..., Any], _: Any, device: Any, logical: Any) -> None:
    index = _index(device.name)
    if index is not None and len(logical) > 1:
        raise ValueError(
            f"{device.name} is one logical device: TensorFlow divides no device of a plugin. "
            "TORCH_DML_DEVICES_PER_ADAPTER=2 makes two devices of each adapter"
        )
    original(device, logical)
    if index is not None and logical and logical[0].memory_limit is not None:
        library.limit_memory(index, logical[0].memory_limit << 20)


_ADAPTED: dict[str, Callable[..., Any]] = {
    "get_device_details": _details,
    "get_memory_info": _memory,
    "reset_memory_stats": _reset,
    "set_logical_device_configuration": _configure,
}


def _index(name: str) -> int | None:
    """Return the index of a device that is the library's: of "GPU:0", "/physical_device:GPU:0"."""
    *_, kind, index = name.upper().split(":")
    return int(index) if kind in {"GPU", "DML"} and index.isdecimal() and library.is_loaded() else None
